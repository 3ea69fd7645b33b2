"""Files written whole or not at all, with the permissions that the umask allows."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from byzadmm._internal import npz
from byzadmm._internal.atomic_files import prepare, replacing
from byzadmm.datasets import _load
from byzadmm.figures._files import write_text

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")

WRITERS: dict[str, Callable[[Path], object]] = {
    "npz": lambda path: npz.write_npz(path, {"a": np.zeros(3)}, {}),
    "text": lambda path: write_text(path, "text"),
    "cache": lambda path: _load._write_cache(path, np.zeros((2, 2), np.int16)),
}


@pytest.fixture(params=[0o022, 0o077, 0o002], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.parametrize("kind", WRITERS)
def test_the_umask_says_who_may_read(kind: str, umask: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    WRITERS[kind](path)
    WRITERS[kind](path)  # over a file that is there
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as file:  # noqa: PT012
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"), replacing(tmp_path / "folder") as file:
        file.write(b"new")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "file"):
        pass


# --- links, parts of killed writers, and trying ----------------------------------------------------------------------


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "file"
    link.symlink_to("there/file")
    for content in (b"first", b"second"):  # the target comes into being, then is replaced
        with replacing(link) as file:
            file.write(content)
        prepare(link, "out")
        assert target.read_bytes() == content
        assert link.is_symlink()
        assert os.listdir(target.parent) == ["file"]
    ring = tmp_path / "ring"
    ring.symlink_to("ring")
    with pytest.raises(OSError, match="symbolic links"), replacing(ring):
        pass
    assert ring.is_symlink()


def test_only_a_regular_file_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name in ("pipe", "socket"):
        with pytest.raises(OSError, match="not a regular file"), replacing(tmp_path / name):
            pass
        with pytest.raises(OSError, match=f"out: cannot write '.*{name}': not a regular file"):
            prepare(tmp_path / name, "out")
    assert sorted(os.listdir(tmp_path)) == ["pipe", "socket"]
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "nowhere" / "file"):
        pass
    assert caught.value.filename == str(tmp_path / "nowhere" / "file"), "what was asked for, not its part"


KILLED = """
import os, signal, sys
from byzadmm._internal.atomic_files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"a part")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_while_writing(path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -signal.SIGKILL


@pytest.mark.slow
def test_parts_of_killed_writers_are_removed_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    path.write_bytes(b"old")
    for name in ("run.npz", "run.npz", "run.npz.50.w0-3.npz", "other.npz", "run.npz2"):
        kill_while_writing(tmp_path / name)
    mine = tmp_path / ".run.npz.part"  # not a name that is ever given
    mine.write_bytes(b"mine")
    assert len(os.listdir(tmp_path)) == 7
    with replacing(path) as file:  # a living writer
        prepare(path, "checkpoint")
        left = sorted(item.name.split(".")[1:3] for item in tmp_path.glob(".*"))
        assert left == [["other", "npz"], ["run", "npz"], ["run", "npz"], ["run", "npz2"]]
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert mine.read_bytes() == b"mine"


def test_trying_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    prepare(path, "out")
    assert os.listdir(tmp_path) == []
    path.write_bytes(b"old")
    before = path.stat()
    prepare(path, "out")
    assert path.stat() == before
    for wrong, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "file", "No such file"), (path / "x", "Not a")):
        with pytest.raises(OSError, match=f"out: cannot write '{wrong}': {why}"):
            prepare(wrong, "out")


def test_a_full_disk_is_found_by_trying(tmp_path: Path) -> None:
    path = tmp_path / "file"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match=f"out: cannot write '{path}': File too large"):
            prepare(path, "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir(tmp_path) == []
