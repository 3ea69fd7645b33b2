"""The exchange between master and workers: messages, their check, and the engine in one process."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import byzadmm
from byzadmm import _core, engines
from byzadmm.engines import Event, Expected, Experiment, Kind, LocalEngine, on_the_wire, pack, validate
from byzadmm.engines.messages import FAULTS, HEADER_BYTES, pack_notice, peek, read_notice, seconds_of
from support.arrays import same_bits
from support.runs import ALGORITHMS, ATTACKS, M, Q, quadratic, small_data, small_parts

OWED = Expected(Kind.ROUND, run=2, round=7, first=4, rows=2, dim=3, dtype="float32")
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def answer(numbers: Any = NUMBERS, **changes: Any) -> Any:
    about: dict[str, Any] = {"kind": Kind.ROUND, "run": 2, "round": 7, "first": 4} | changes
    return pack(about.pop("kind"), np.asarray(numbers), **about)


# --- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", ">f8"])
def test_numbers_arrive_as_they_were_sent(dtype: str) -> None:
    numbers = np.array([[0.0, -0.0, np.nan], [np.inf, -np.inf, 1e-40]], dtype)
    owed = OWED._replace(dtype=np.dtype(dtype).newbyteorder("=").name)
    message = answer(numbers, seconds=0.25)
    fault, came = validate(message, owed)
    assert fault is None
    assert came is not None
    assert same_bits(came, numbers.astype(numbers.dtype.newbyteorder("<")))
    assert len(message) == owed.nbytes == HEADER_BYTES + numbers.nbytes
    assert seconds_of(message) == 0.25
    header = peek(pack(Kind.MODELS, numbers, seconds=0.5, token=99, save=True, run=3))
    assert header is not None
    assert (header.seconds, header.token, header.save, header.run) == (0.5, 99, True, 3)


def spoiled(at: int, value: int) -> Any:
    message = answer()
    message[at] = value
    return message


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (np.empty(0, np.uint8), "garbage"),
        (answer()[: HEADER_BYTES - 1], "garbage"),
        (spoiled(0, ord("X")), "garbage"),
        (spoiled(4, 2), "garbage"),  # version
        (spoiled(5, 0), "garbage"),  # kind
        (spoiled(5, 99), "garbage"),
        (spoiled(6, 3), "garbage"),  # dtype
        (spoiled(7, 1), "garbage"),  # a flag that only the master sets
        (answer(round=6), "old_round"),
        (answer(run=1, round=9), "old_round"),
        (answer(round=-1), "old_round"),
        (answer(round=8), "wrong_round"),
        (answer(run=3, round=1), "wrong_round"),
        (answer(kind=Kind.MODELS), "wrong_round"),
        (answer(first=3), "wrong_worker"),
        (answer(NUMBERS.reshape(3, 2)), "wrong_worker"),
        (answer(NUMBERS.astype(np.float64)), "wrong_dtype"),
        (answer(NUMBERS.astype(np.uint8)), "wrong_dtype"),
        (answer(NUMBERS[:, :2]), "wrong_length"),
        (answer(np.ones((2, 4), np.float32)), "wrong_length"),
        (answer()[:-1], "wrong_length"),
        (np.append(answer(), np.uint8(0)), "wrong_length"),
        (answer(np.ones((2, 300), np.float32)), "oversized"),
        (np.zeros(1000, np.uint8), "oversized"),
    ],
)
def test_every_fault_is_named(message: Any, fault: str) -> None:
    assert validate(message, OWED) == (fault, None)
    assert fault in FAULTS


def test_every_named_fault_was_seen() -> None:
    marks = [mark for mark in test_every_fault_is_named.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {fault for _, fault in marks[0].args[1]} == set(FAULTS)


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(content: bytes) -> None:
    message = np.frombuffer(content, np.uint8)
    fault, numbers = validate(message, OWED)
    assert fault in FAULTS
    assert numbers is None
    notice = read_notice(message)
    assert notice is None or notice.isprintable()


@given(st.binary(max_size=60), st.integers(0, HEADER_BYTES - 1))
def test_no_change_to_a_header_does_harm(noise: bytes, at: int) -> None:
    message = answer()
    replaced = np.frombuffer(noise, np.uint8)[: len(message) - at]
    message[at : at + len(replaced)] = replaced
    fault, numbers = validate(message, OWED)
    if fault is None:
        assert numbers is not None
        assert (numbers.shape, numbers.dtype) == ((2, 3), np.float32)
    else:
        assert numbers is None


def test_a_notice_is_short_and_printable_whatever_was_sent() -> None:
    assert read_notice(pack_notice("ValueError: no")) == "ValueError: no"
    assert read_notice(pack_notice("")) == ""
    assert read_notice(pack_notice("x" * 900)) == "x" * 200
    assert read_notice(pack(Kind.NOTICE, np.array([[27, 91, 50, 74, 200, 65]], np.uint8))) == "?[2J?A"
    assert read_notice(answer()) is None
    assert read_notice(np.zeros(3, np.uint8)) is None


def test_an_event_reads_as_a_line() -> None:
    assert str(Event(3, 2, (4,), "slow")) == "round 3: worker 4 (rank 2): slow"
    assert str(Event(3, 2, (4, 5), "raised", "ValueError")) == "round 3: workers 4, 5 (rank 2): raised: ValueError"
    assert str(Event(3, 0, (4, 5, 6), "slow")) == "round 3: workers 4 to 6: slow"
    assert Event(3, 2, (4,), "slow").record() == {"round": 3, "rank": 2, "workers": (4,), "what": "slow", "text": ""}


# --- what rounding on the wire does ----------------------------------------------------------------------------------


@given(st.lists(st.floats(width=64), min_size=1, max_size=20))
def test_shrinking_never_leaves_the_range(values: list[float]) -> None:
    numbers = np.array(values)
    sent = on_the_wire(numbers, np.dtype("<f4"), shrink=True)
    assert sent.dtype == np.float32
    finite = np.isfinite(numbers)
    assert np.all(np.abs(sent[finite].astype(np.float64)) <= np.abs(numbers[finite]))
    assert same_bits(np.isfinite(sent), finite)


def test_the_own_type_travels_untouched() -> None:
    numbers = np.array([0.1, np.nan])
    assert on_the_wire(numbers, np.dtype("<f8"), shrink=True) is numbers
    wide = on_the_wire(numbers.astype(np.float32), np.dtype("<f8"), shrink=True)
    assert same_bits(wide, numbers.astype(np.float32).astype(np.float64))


# --- the engine in one process ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_local_engine_gives_the_bits_of_simulate(name: str, attack: str) -> None:
    dtype = ("float32", "float64")[(list(ALGORITHMS).index(name) + list(ATTACKS).index(attack)) % 2]
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": ATTACKS[attack], "n_byzantine": Q}
    settings |= {"iterations": 7, "eval_every": 3, "batch_size": 5, "dtype": dtype, "seed": 9}
    ours = engines.simulate(small_data(), small_parts(), **settings)
    whole = byzadmm.simulate(small_data(), small_parts(), **settings)
    assert same_bits(ours.x0, whole.x0)
    assert ours.eliminated == whole.eliminated
    for curve in ("iterations", "accuracy", "loss", "consensus_gap", "distance"):
        assert same_bits(getattr(ours, curve), getattr(whole, curve)), curve
    assert (ours.x is None) == (whole.x is None)
    assert whole.x is None or same_bits(ours.x, whole.x)


def test_float32_on_the_wire_is_a_little_different_and_nobody_is_eliminated() -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["admm"], "loss": quadratic(), "dtype": "float64"}
    settings |= {"iterations": 60, "attack": ATTACKS["dual_oscillation"], "n_byzantine": Q}
    exact = engines.simulate(None, None, **settings)
    rounded = engines.simulate(None, None, wire="float32", **settings)
    assert exact.config["wire"] == "float64"
    assert rounded.config["wire"] == "float32"
    assert rounded.eliminated == {}
    assert rounded.x0.dtype == np.float64
    assert not same_bits(exact.x0, rounded.x0)
    np.testing.assert_allclose(rounded.x0, exact.x0, atol=1e-5)


def test_a_screened_worker_is_named_with_its_reason() -> None:
    def forge(messages: Any, *, x0: Any, k: int, byzantine: Any, **_: Any) -> Any:
        rows = np.zeros((len(byzantine), len(x0)))
        rows[0, 0] = 9.0 if k >= 4 else 0.0  # the message of round 3 has index 4
        rows[1, 2] = np.inf if k >= 6 else 0.0
        return rows

    forge.sends = "dual"  # type: ignore[attr-defined]
    experiment = Experiment(
        None, None, algorithm=ALGORITHMS["admm"], loss=quadratic(), attack=forge, n_byzantine=Q, iterations=8
    )
    seen: list[int] = []
    with LocalEngine(experiment) as engine:
        result = engines.lead(experiment, engine, deadline=1.0, watch=seen.append)
        assert [str(event) for event in engine.events] == [
            f"round 3: worker {M - Q}: out_of_range",
            f"round 5: worker {M - Q + 1}: non_finite",
        ]
    assert result.eliminated == {M - Q: 3, M - Q + 1: 5}
    assert seen == list(range(1, 9))


def test_older_names_keep_working_with_a_warning() -> None:
    replies = engines.Replies(np.zeros((2, 1)), np.ones(2, np.bool_), [1])
    with pytest.warns(DeprecationWarning, match=r"Replies\.thrown_out: use eliminated"):
        assert replies.thrown_out == [1]
    assert Kind.REPORT is Kind.MODELS

    class Older:
        """An engine of a user's, with ``report`` for ``models``."""

        def __init__(self, engine: LocalEngine) -> None:
            self.events, self.start, self.exchange = engine.events, engine.start, engine.exchange
            self.rank_of, self.close, self.report = engine.rank_of, engine.close, engine.models

    run = Experiment(None, None, algorithm=ALGORITHMS["rsa"], loss=quadratic(), iterations=3)
    with pytest.warns(DeprecationWarning, match=r"Older\.report: call the method models"):
        older = engines.lead(run, Older(LocalEngine(run)), deadline=1.0)  # type: ignore[arg-type]
    assert same_bits(older.x, engines.lead(run, LocalEngine(run), deadline=1.0).x)


def test_where_the_models_begin_is_checked_and_used() -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["rsa"], "loss": quadratic(dim=2), "iterations": 3}
    settings |= {"x_init": np.arange(2.0 * M).reshape(M, 2), "x0_init": [1.0, 2.0], "record": "trajectory"}
    ours, whole = (run(None, None, **settings) for run in (engines.simulate, byzadmm.simulate))
    assert ours.trajectory is not None
    assert whole.trajectory is not None
    assert same_bits(ours.trajectory["x"], whole.trajectory["x"])
    with pytest.raises(ValueError, match=r"x_init: expected shape \(7, 2\), got \(1, 2\)"):
        engines.simulate(None, None, **settings | {"x_init": [[1.0, 2.0]]})


def test_bad_arguments_are_named() -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["mean"], "loss": quadratic()}
    large = {"algorithm": byzadmm.ADMM(lam=1e60), "dtype": "float64", "wire": "float32"}
    with pytest.raises(ValueError, match=r"the bound of a message: expected .* in float32, got 1e\+60"):
        engines.simulate(None, None, **settings | large)
    with pytest.raises(ValueError, match="wire: expected one of float32, float64; got 'float16'"):
        engines.simulate(None, None, wire="float16", **settings)
    with pytest.raises(TypeError, match=r"checkpoint: not taken by engines.simulate"):
        engines.simulate(None, None, checkpoint="x.npz", **settings)
    with pytest.raises(TypeError, match="no_such"):
        engines.simulate(None, None, no_such=1, **settings)


def test_importing_the_engines_needs_no_mpi() -> None:
    code = "import sys, byzadmm, byzadmm.engines, byzadmm.cli; sys.exit('mpi4py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- taken natively --------------------------------------------------------------------------------------------------


def envelope(numbers: Any, first: int, owed: Expected, cut: int = 0, shift: int = 0) -> Any:
    """A message in a buffer with room to spare, as the master holds it; ``cut`` bytes short, ``shift`` bytes in."""
    message = pack(Kind.ROUND, numbers, round=7, first=first)
    buffer = np.zeros(len(message) + 16, np.uint8)[shift:]
    buffer[: len(message)] = message
    return buffer, len(message) - cut, owed.header(), owed.first, owed.rows


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_messages_are_checked_copied_and_screened_in_one_pass(dtype: str) -> None:
    rng = np.random.default_rng(0)
    sent = rng.uniform(-0.4, 0.4, (7, 13)).astype(dtype)
    sent[2, 5], sent[3, 0], sent[4, 12] = np.nan, 0.6, -np.inf
    owed = {first: Expected(Kind.ROUND, 0, 7, first, rows, 13, dtype) for first, rows in ((0, 2), (2, 3), (5, 1))}
    other = Expected(Kind.ROUND, 0, 8, 6, 1, 13, dtype)
    for bound, expected in ((0.5, [1, 1, 0, 0, 0, 1, 0]), (0.0, [1, 1, 0, 1, 0, 1, 0])):
        out, present, good = np.zeros((7, 13), dtype), np.zeros(7, np.bool_), np.zeros(7, np.bool_)
        envelopes = [
            envelope(sent[:2], 0, owed[0]),
            envelope(sent[2:5], 2, owed[2]),
            envelope(sent[5:6], 5, owed[5]),
            envelope(sent[6:], 6, other),  # another round
        ]
        assert _core.take_messages(envelopes, HEADER_BYTES, bound, out, present, good) == [True, True, True, False]
        assert present.tolist() == [True] * 6 + [False]
        assert good.tolist() == [bool(flag) for flag in expected]
        np.testing.assert_array_equal(out[:6], sent[:6])
        assert not out[6].any()


def test_what_is_not_exactly_owed_is_left_alone() -> None:
    numbers = np.ones((1, 4))
    owed = Expected(Kind.ROUND, 0, 7, 1, 1, 4, "float64")
    beyond = Expected(Kind.ROUND, 0, 7, 2, 1, 4, "float64")
    for wrong in (
        envelope(numbers, 1, owed, cut=1),
        envelope(numbers, 1, owed, shift=4),  # numbers across their borders
        envelope(numbers, 0, owed),
        envelope(numbers.astype(np.float32), 1, owed),
        envelope(numbers, 2, beyond),  # no such worker
        (np.zeros(80, np.uint8), 10**6, owed.header(), 1, 1),
        (np.zeros((80, 1), np.uint8), 80, owed.header(), 1, 1),
        (np.zeros(0, np.uint8), 0, owed.header(), 1, 1),
    ):
        out, present, good = np.zeros((2, 4)), np.zeros(2, np.bool_), np.zeros(2, np.bool_)
        assert _core.take_messages([wrong], HEADER_BYTES, 0.0, out, present, good) == [False]
        assert not out.any()
        assert not present.any()
