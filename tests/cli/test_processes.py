"""The command as a process: streams that are closed or full, signals, disks that are full."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from byzadmm import Result
from support.commands import QUICK, environment, fits, rows_of

pytestmark = pytest.mark.slow


def test_as_a_process():
    words = [sys.executable, "-m", "byzadmm", "run", *QUICK, "--algorithm", "admm", "--no-plot"]
    ended = subprocess.run(words, capture_output=True, text=True, env=environment(), check=True, encoding="utf-8")
    assert set(rows_of(ended.stdout)) >= {"ideal", "admm"}
    assert fits(ended.stdout)
    assert ended.stderr == ""


STREAMS = {
    "closed output": ("list rules >&-", 0, ""),
    "closed output, but JSON": ("list rules --json >&-", 2, "byzadmm: error: json: standard output is closed\n"),
    "closed errors": ("list rules 2>&-", 0, ""),
    "closed errors, and one": ("list clouds 2>&-", 2, ""),
    "both closed": ("run --iterations 2 --no-plot --algorithm admm --out run.npz >&- 2>&-", 0, ""),
    "progress to closed errors": ("run --iterations 2 --no-plot --algorithm admm 2>&-", 0, ""),
    "help to closed output": ("--help >&-", 0, ""),
    "full output": ("list rules >/dev/full", 1, "byzadmm: error: standard output: No space left on device\n"),
    "full errors": ("list clouds 2>/dev/full", 2, ""),
    "full errors, and a remark": ("list rules 2>/dev/full", 0, ""),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full, /dev/full, is what Linux has")
@pytest.mark.parametrize("kind", STREAMS)
def test_closed_and_full_streams_as_a_process(kind):
    words, code, said = STREAMS[kind]
    ended = subprocess.run(
        ["sh", "-c", f'"$0" -m byzadmm {words}', sys.executable], capture_output=True, env=environment(), check=False
    )
    errors = re.sub(r"pre-aggregations, .+:\nbyzadmm run .+\n", "", ended.stderr.decode())
    assert (ended.returncode, errors) == (code, said)
    assert "pre-aggregations" not in ended.stdout.decode()  # a remark is never part of the result
    if "--out" in words:
        assert Result.load("run.npz").iterations[-1] == 2


def test_a_closed_pipe_does_not_lose_the_result():
    words = [sys.executable, "-m", "byzadmm", "run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1
    assert Result.load("run.npz").iterations[-1] == 30


def test_output_that_cannot_hold_every_character(call, tmp_path):
    words = [sys.executable, "-m", "byzadmm", "data", "path", "--data-dir", "\u00e9\udcff"]
    ended = subprocess.run(words, capture_output=True, env=environment() | {"PYTHONIOENCODING": "ascii"}, check=True)
    assert ended.stdout.decode() == f"\\xe9\\udcff\n{tmp_path / 'cache'}\n"


def test_head_as_a_process():
    with subprocess.Popen(
        [sys.executable, "-m", "byzadmm", "list", "attacks"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_ctrl_c_as_a_process():
    # A shell's background job ignores SIGINT, and so would its children: ask for the usual behavior.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from byzadmm._internal.progress import Bar; Bar.PLAIN_INTERVAL = 0.0\n"
        "from byzadmm.cli import main\n"
        "sys.exit(main(['run', '--iterations', '100000000', '--eval-every', '50', '--no-plot']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stderr.readline().startswith("iterations: ")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1] == "byzadmm: interrupted; 0 of 6 runs were finished"
    assert "Traceback" not in err


def test_reproduce_keeps_what_is_finished_on_ctrl_c(tmp_path):
    """A real signal to a real process, sent as soon as the first panel is there."""
    slow = tmp_path / "slow.toml"
    slow.write_text(
        'title = "slow"\ndataset = "digits"\npartition = "iid"\nn_workers = 20\nn_byzantine = 8\n'
        'iterations = 100000000\neval_every = 100\n[attack]\nname = "sign-flip"\n'
        "[algorithms.ideal]\nstep = { power = 1.0 }\n"
    )
    # A shell's background job ignores SIGINT, and so would its children: ask for the usual behavior.
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from byzadmm.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    out = str(tmp_path / "out")
    words = [sys.executable, "-c", script, "reproduce", "example", str(slow), "--seeds", "1", "--out", out]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), encoding="utf-8"
    ) as process:
        try:
            deadline = time.monotonic() + 120
            while not (tmp_path / "out" / "example.png").exists():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert "interrupted; what was finished is in" in err
    assert "Traceback" not in err
    assert "parts: 5 reproduced" in out


@pytest.mark.skipif(os.name != "posix", reason="the size of files is limited by setrlimit, which POSIX systems have")
def test_a_full_disk_as_a_process(tmp_path):
    """More than trying needs, less than the result."""
    # The limit ends with the command: what measures coverage writes a file of its own when the process ends.
    script = "import resource, sys; from byzadmm.cli import main; size = resource.RLIMIT_FSIZE\n"
    script += "usual = resource.getrlimit(size); resource.setrlimit(size, (10_000, usual[1]))\n"
    script += "code = main(sys.argv[1:]); resource.setrlimit(size, usual); sys.exit(code)"
    words = [sys.executable, "-c", script, "run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--no-plot"]
    (tmp_path / "run.npz").write_bytes(b"old")
    (tmp_path / "tmp").mkdir()
    surroundings = environment() | {"TMPDIR": str(tmp_path / "tmp")}
    ended = subprocess.run(words, capture_output=True, text=True, env=surroundings, check=False, encoding="utf-8")
    assert ended.returncode == 1
    assert "admm" in rows_of(ended.stdout)
    why = "[Errno 27] File too large"
    assert ended.stderr == f"byzadmm: error: out: cannot write 'run.npz' (nor in a temporary folder: {why}): {why}\n"
    assert Path("run.npz").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["run.npz", "tmp"]
    assert os.listdir("tmp") == []
