"""Files written whole or not at all, for whoever the umask allows."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from byzadmm import results
from byzadmm._atomic import replacing
from byzadmm.datasets import _load
from byzadmm.figures._files import write_text

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")

WRITERS: dict[str, Callable[[Path], object]] = {
    "npz": lambda path: results.write_npz(path, {"a": np.zeros(3)}, {}),
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
