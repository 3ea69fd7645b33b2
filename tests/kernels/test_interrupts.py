"""Ctrl-C, cancelled threads, the end of the interpreter and sub-interpreters: what a process does around a kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import SGD, _core, aggregate, losses, simulate, steps
from byzadmm._internal.npz import read_npz
from support.arrays import same_bits
from support.kernel_calls import NAMES, calls

pytestmark = pytest.mark.slow

#: Seconds after which a process that should have ended long ago counts as hanging. All the work below takes longer.
HANGS = 120

#: Rows that overlap in one array: as much work as wanted, in little memory.
WINDOWS = """
base = np.random.default_rng(0).normal(size={d} + {n}).astype(np.float32)
X = [base[i : i + {d}] for i in range({n})]
"""
PIXELS = """
rng = np.random.default_rng(0)
X, y = rng.integers(0, 256, (60_000, 784), dtype=np.uint8), rng.integers(0, 10, 60_000)
"""
TRAINING = """
def settings(attack, algorithm):
    return dict(loss=losses.Quadratic(np.ones((40, 1)), np.ones((40, 50_000)), noise=1.0), algorithm=algorithm,
                attack=attack, n_byzantine=9, iterations=1_000_000, eval_every=1_000_000)
half = steps.constant(0.5)
"""
FUSED = "simulate(None, None, **settings({attack}, {algorithm}))"

#: Work of minutes to hours: what comes before it, and the call.
LONG = {
    "median": (WINDOWS.format(n=20_000, d=4_000_000), "aggregate.median(X)"),
    "krum": (WINDOWS.format(n=2000, d=8_000_000), "aggregate.krum(X, f=5)"),
    "krum, 1 thread": (WINDOWS.format(n=2000, d=8_000_000), "aggregate.krum(X, f=5, threads=1)"),
    "smea": (WINDOWS.format(n=180, d=400), "aggregate.smea(X, f=3)"),
    "geometric_median": (WINDOWS.format(n=512, d=10_000_000), "aggregate.geometric_median(X)"),
    "softmax_gradient": (PIXELS + "W = np.zeros((4000, 10, 785), np.float32)", "kernels.softmax_gradient(W, X, y)"),
    "softmax_loss": (PIXELS + "W = np.zeros((4000, 10, 785), np.float32)", "kernels.softmax_loss(W, X, y)"),
    "softmax_predict": (PIXELS + "W = np.zeros((50_000, 785), np.float32)", "kernels.softmax_predict(W, X)"),
    "SGD": (TRAINING, FUSED.format(attack="attacks.Gaussian()", algorithm="SGD(step=half)")),
    "RSA": (
        TRAINING,
        FUSED.format(attack="attacks.SignFlip()", algorithm="RSA(lam=0.1, master_step=half, worker_step=half)"),
    ),
    "ADMM": (
        TRAINING,
        FUSED.format(attack="attacks.ALIE()", algorithm="ADMM(lam=1, beta=1, master_step=half, worker_step=half)"),
    ),
    "own attack": (
        TRAINING,
        FUSED.format(attack="lambda honest, *, byzantine, **rest: honest[byzantine]", algorithm="SGD(step=half)"),
    ),
    "simulate_many": (TRAINING, "simulate_many([settings(attacks.Gaussian(), SGD(step=half))] * 5, jobs=3)"),
}


def run(body: str, *, when: Callable[[Any], None] | None = None) -> tuple[int, str]:
    """Exit code and output of a process; ``when(process)`` gets it as soon as it has said that it starts."""
    head = """
        import signal, sys, time
        import numpy as np
        from byzadmm import ADMM, RSA, SGD, aggregate, attacks, kernels, losses, simulate, simulate_many, steps
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    """
    script = textwrap.dedent(head) + textwrap.dedent(body)
    # Not measured: an interrupt inside of coverage's tracer leaves its lock taken, and the process hangs.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=plain
    ) as process:
        try:
            assert process.stdout is not None
            said = ""
            while when is not None and said != "start\n":
                said = process.stdout.readline()
                assert said, f"ended before it started: {process.wait(HANGS)}"
            if when is not None:
                when(process)
            out, _ = process.communicate(timeout=HANGS)
        finally:
            process.kill()
    return process.returncode, out


def interrupt(process: Any) -> None:
    time.sleep(0.3)  # into the kernel
    process.send_signal(signal.SIGINT)


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_ends_a_long_call(name: str) -> None:
    before, call = LONG[name]
    body = f"""
{before}
print("start", flush=True)
sent = time.monotonic() + 0.3
try:
    {call}
except KeyboardInterrupt:
    print(f"interrupted after {{time.monotonic() - sent:.2f}} s")
print(aggregate.median([[1.0], [2.0], [4.0]]), "afterwards")
"""
    code, out = run(body, when=interrupt)
    assert code == 0, out
    assert out.startswith("interrupted after"), out
    assert out.endswith("[2.] afterwards\n"), out


def problem() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        "loss": losses.Quadratic(np.ones((20, 1)), rng.normal(size=(20, 2000)), noise=1.0),
        "algorithm": SGD(step=steps.constant(0.01)),
        "eval_every": 200,
    }


def test_a_run_goes_on_from_its_checkpoint_after_ctrl_c(tmp_path: Path) -> None:
    body = f"""
        sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1])]!r}
        from test_interrupts import problem
        print("start", flush=True)
        try:
            simulate(None, None, **problem(), iterations=100_000_000, checkpoint={str(tmp_path / "run")!r})
        except KeyboardInterrupt:
            again = simulate(None, None, **problem(), iterations=100)
            np.save({str(tmp_path / "again.npy")!r}, again.x0)
    """

    def after_a_checkpoint(process: Any) -> None:
        while not (tmp_path / "run").exists() and process.poll() is None:
            time.sleep(0.05)
        interrupt(process)

    code, out = run(body, when=after_a_checkpoint)
    assert code == 0, out
    done = int(read_npz(tmp_path / "run")[1]["done"])
    resumed = simulate(None, None, **problem(), iterations=done + 200, checkpoint=tmp_path / "run")
    assert same_bits(resumed.x0, simulate(None, None, **problem(), iterations=done + 200).x0)
    assert same_bits(np.load(tmp_path / "again.npy"), simulate(None, None, **problem(), iterations=100).x0)


MANY = np.random.default_rng(1).normal(size=(131, 1031))
SQUARES = _core.squared_distances(MANY, 1)[:2]
SELECTING: dict[str, Callable[[int], Any]] = {
    "krum": lambda count: aggregate.krum(MANY, f=9, threads=count),
    "medoid": lambda count: aggregate.medoid(MANY, threads=count),
    "bulyan": lambda count: aggregate.bulyan(MANY, f=9, threads=count),
    "least_diameter": lambda _: _core.least_diameter(*SQUARES, 9),
    "least_variance": lambda _: _core.least_variance(*SQUARES, 1),
    "filtered_weights": lambda _: _core.filtered_weights(*SQUARES, 9, 1e-12)[0],
    "nearest_neighbor_mixing": lambda count: aggregate.nearest_neighbor_mixing(MANY, f=9, threads=count),
    "centered_clip": lambda count: aggregate.centered_clip(MANY, tau=1.0, threads=count),
    "clip": lambda count: aggregate.clip(MANY, max_norm=1.0, threads=count),
    "meamed": lambda count: aggregate.meamed(MANY, f=9, threads=count),
    "weighted median": lambda count: aggregate.median(MANY, weights=np.arange(1.0, 132.0), threads=count),
}


@pytest.mark.parametrize("count", [1, 2], ids=lambda count: f"threads{count}")
@pytest.mark.parametrize("name", [*NAMES, *SELECTING])
def test_a_cancelled_kernel_ends(name: str, count: int) -> None:
    call = (SELECTING | calls("float32", 8 * 1024 + 11))[name]
    expected = call(count)
    cancellation = _core.Cancellation()
    with cancellation:
        assert same_bits(call(count), expected)
        cancellation.cancel()
        with pytest.raises(InterruptedError):
            call(count)
    assert same_bits(call(count), expected)


def test_kernels_release_the_lock_in_one_way(root: Path) -> None:
    for path in (root / "cpp" / "bindings").iterdir():
        assert "gil_scoped" not in path.read_text(), f"{path.name}: Unlocked also hears Ctrl-C"


def test_the_master_s_passes_over_messages_can_be_cancelled() -> None:
    messages = np.ones((3, 5), np.float32)
    flags = [np.zeros(3, np.bool_), np.zeros(3, np.bool_)]
    envelope = (messages.reshape(-1).view(np.uint8), messages.nbytes, b"", 0, 3)
    cancellation = _core.Cancellation()
    cancellation.cancel()
    with cancellation:
        with pytest.raises(InterruptedError):
            _core.acceptable(messages, 0.0)
        with pytest.raises(InterruptedError):
            _core.take_messages([envelope], 0, 0.0, np.empty_like(messages), *flags)


def test_a_handler_that_raises_nothing_changes_nothing() -> None:
    called = []
    before = signal.signal(signal.SIGALRM, lambda *_: called.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        got = simulate(None, None, **problem(), iterations=2000).x0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert called
    assert same_bits(got, simulate(None, None, **problem(), iterations=2000).x0)


def test_a_daemon_thread_in_a_kernel_when_the_interpreter_ends() -> None:
    code, out = run("""
        import threading

        class Lasting:
            def __del__(self, sleep=time.sleep):  # the interpreter is ending; others may run
                sleep(1)

        def work(median=aggregate.median, X=np.zeros((2000, 2000))):
            while True:
                median(X)

        kept = Lasting()
        for _ in range(3):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
        print("end", flush=True)
    """)
    assert (code, out) == (0, "end\n")


@pytest.mark.parametrize("first", ["pass", "import byzadmm"], ids=["alone", "after the main interpreter"])
def test_a_sub_interpreter_gets_an_import_error(first: str) -> None:
    script = f"""
{first}
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
interpreters.run_string(interpreters.create(), '''
try:
    import byzadmm
except ImportError as error:
    print(error)
''')
"""
    words = [sys.executable, "-W", "ignore", "-c", script]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=HANGS, check=True)
    assert "sub-interpreter" in ended.stdout.replace("subinterpreter", "sub-interpreter")
