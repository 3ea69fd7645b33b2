"""``RobustStrategy`` on messages of Flower's own classes: the rules' results, malformed replies, too few replies."""

from __future__ import annotations

import logging
import struct
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, MetricRecord
from flwr.serverapp.strategy import FedAvg, Krum
from flwr.serverapp.strategy.strategy_utils import aggregate_metricrecords
from flwr.supercore.task_identity import TaskIdentity

from byzadmm import aggregate, aggregators
from byzadmm.flower import RobustStrategy, median_metrics
from support.flower import Clients, flat, model, record, reply

pytestmark = pytest.mark.flower

X = np.random.default_rng(0).normal(size=(7, 9)).round(3)
X[:, 8] = np.arange(100, 107)  # the counter
SENT = np.arange(9.0)


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Flower sets in the process of a ServerApp, without which it makes no messages."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 0)


def replies(rows: Any) -> list[Any]:
    return [reply(node, model(row)) for node, row in enumerate(rows)]


def as_received(rows: Any) -> Any:
    """The rows as they are after the first layer was float32."""
    return np.array([np.concatenate([np.ravel(a).astype(float) for a in model(row).values()]) for row in rows])


def combined(strategy: RobustStrategy, messages: list[Any]) -> Any:
    arrays, _ = strategy.aggregate_train(1, messages)
    return None if arrays is None else flat(arrays)


def test_every_kind_of_rule_on_all_layers_together() -> None:
    rows = as_received(X)

    def second(rows: Any) -> Any:
        return rows[1]

    cases: list[tuple[Any, int, Any]] = [
        ("median", 3, aggregate.median(rows)),
        ("krum", 2, aggregate.krum(rows, f=2)),
        ("nnm+krum", 2, aggregators.make("nnm+krum", f=2)(rows)),
        (aggregators.TrMean(f=1), 1, aggregate.trimmed_mean(rows, f=1)),
        ([aggregators.NNM(f=2), "median"], 2, aggregators.make("nnm+median", f=2)(rows)),
        (second, 2, rows[1]),
    ]
    for rule, f, expected in cases:
        expected = np.append(expected[:8], np.rint(expected[8]))  # a counter stays whole
        for arrived in (replies(X), replies(X)[::-1], iter(replies(X))):
            np.testing.assert_allclose(
                combined(RobustStrategy(rule, f=f), arrived), expected, rtol=1e-6, err_msg=str(rule)
            )


def test_weights_count_only_if_asked_and_up_to_a_cap() -> None:
    rows = as_received(X)
    claims = [10, 10, 10, 10, 10, 10, 1e12]
    messages = [
        reply(i, model(row), {"num-examples": claim}) for i, (row, claim) in enumerate(zip(X, claims, strict=True))
    ]
    cases: list[tuple[dict[str, Any], Any]] = [
        ({}, aggregate.median(rows)),
        ({"weighted": True}, rows[6]),
        ({"weighted": True, "cap": 10}, aggregate.median(rows)),
    ]
    for settings, expected in cases:
        np.testing.assert_allclose(combined(RobustStrategy("median", f=2, **settings), messages), expected, rtol=1e-6)
    bad: list[Any] = [{"num-examples": value} for value in (0, -1, float("nan"), float("inf"), [10.0])]
    for metrics in (*bad, {"other": 10}, {}):
        strategy = RobustStrategy("median", f=2, weighted=True)
        messages = [*replies(X[:6]), reply(6, model(X[6]), metrics)]
        np.testing.assert_allclose(
            combined(strategy, messages), as_received([np.median(rows[:6], axis=0)])[0], rtol=1e-6
        )
        assert [node for node, _ in strategy.excluded] == [6], metrics


def test_flowers_krum_fails_for_close_float32_vectors_and_this_one_does_not() -> None:
    """Models of length 45 that differ by 1e-3, as in training: squared distances by products are rounding."""
    n, f, d, trials = 30, 8, 2000, 10
    right = {"Flower": 0, "byzadmm": 0}
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        center = rng.standard_normal(d)
        rows = (45 * center / np.linalg.norm(center) + 1e-3 * rng.standard_normal((n, d))).astype(np.float32)
        squared = np.array([((rows.astype(float) - row) ** 2).sum(axis=1) for row in rows.astype(float)])
        best = rows[np.sort(squared, axis=1)[:, 1 : n - f - 1].sum(axis=1).argmin()]  # n-f-2 neighbors
        messages = [reply(node, [row]) for node, row in enumerate(rows)]
        for name, strategy in (
            ("Flower", Krum(num_malicious_nodes=f, min_train_nodes=n)),
            ("byzadmm", RobustStrategy("krum", f=f)),
        ):
            made = strategy.aggregate_train(1, messages)[0].to_numpy_ndarrays()[0]
            right[name] += np.array_equal(made, best)
    assert right["byzadmm"] == trials
    assert right["Flower"] < trials / 2


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(24)


def raw(data: bytes, stype: str = "numpy.ndarray") -> Array:
    return Array(dtype="float32", shape=(3, 2), stype=stype, data=data)


def malformed() -> dict[str, Any]:
    """What is wrong -> the content of a reply."""
    good, metrics = record(model(X[0])), MetricRecord({"num-examples": 10, "loss": 0.0})
    plain = model(X[0])
    huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,), }\n"
    layers: dict[str, dict[str, Any]] = {
        "a NaN": plain | {"bias": np.array([np.nan, 1.0])},
        "an infinity": plain | {"weight": np.full((3, 2), np.inf, np.float32)},
        "a shape": plain | {"weight": np.zeros((2, 3), np.float32)},
        "a dtype": plain | {"bias": np.zeros(2, np.float32)},
        "a further layer": plain | {"more": np.zeros(1)},
        "a missing layer": {"weight": plain["weight"], "bias": plain["bias"]},
        "another name": {"weight": plain["weight"], "bias": plain["bias"], "step": plain["steps"]},
        "text": plain | {"weight": np.array([["a", "b"]] * 3)},
        "complex numbers": plain | {"bias": np.zeros(2, complex)},
        "no layers": {},
        "no bytes": plain | {"weight": raw(b"")},
        "noise": plain | {"weight": raw(b"\x93NUMPY noise")},
        "a pickle": plain | {"weight": raw(header("{'descr': '|O', 'fortran_order': False, 'shape': (3, 2), }\n"))},
        "more than there is": plain | {"weight": raw(header(huge))},
        "deep brackets": plain | {"weight": raw(header("[" * 5000 + "\n"))},
        "an open bracket": plain | {"weight": raw(header("{'descr': (\n"))},
        "a zip": plain | {"weight": raw(b"PK\x03\x04" + bytes(40))},
        "another stype": plain | {"weight": raw(plain["weight"].tobytes(), stype="torch")},
    }
    return {
        **{name: {"arrays": record(content), "metrics": metrics} for name, content in layers.items()},
        "no arrays": {"metrics": metrics},
        "two records of arrays": {"arrays": good, "others": good, "metrics": metrics},
        "nothing": {},
    }


def test_malformed_replies_are_excluded_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("flwr").addHandler(caplog.handler)  # it does not propagate
    try:
        expected = combined(RobustStrategy("nnm+trimmed-mean", f=2), replies(X))
        for sent in (None, record(model(SENT))):
            for name, content in malformed().items():
                caplog.clear()
                strategy = RobustStrategy("nnm+trimmed-mean", f=2)
                strategy._sent = sent
                made = combined(strategy, [reply(99, None, content=content), *replies(X)])
                np.testing.assert_allclose(made, expected, rtol=1e-6, err_msg=name)
                assert [node for node, _ in strategy.excluded] == [99], name
                assert f"client 99 is excluded: {strategy.excluded[0][1]}" in caplog.text, name
    finally:
        logging.getLogger("flwr").removeHandler(caplog.handler)


def test_bytes_of_any_kind_are_read_or_refused() -> None:
    rng = np.random.default_rng(0)
    good = Array(np.zeros((3, 2), np.float32)).data
    for _ in range(100):
        data = bytearray(good)
        for _ in range(rng.integers(1, 5)):
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(0, 4))] = rng.choice([b"(", b"'", b"9", b",", b"\\", b"{", b"\xff"])
        strategy = RobustStrategy("median", f=1)
        made = combined(strategy, [reply(9, model(X[0]) | {"weight": raw(bytes(data))}), *replies(X)])
        assert np.isfinite(made).all(), bytes(data)


def test_numbers_of_any_size_poison_nothing() -> None:
    limits = np.abs(X).max(axis=0) + 1e-6
    for value in (1e-300, 3e38, -3e38, 1e300, -1.7e308):
        for sent in (None, record(model(SENT)), record(model(-np.full(9, 3e38) * np.append(np.ones(8), 0)))):
            strategy = RobustStrategy("nnm+trimmed-mean", f=2)
            strategy._sent = sent
            with np.errstate(over="ignore"):
                forged = model(np.append(np.full(8, value), 2.0**62))
            made = combined(strategy, [*replies(X[:5]), *(reply(node, forged) for node in (5, 6))])
            if sent is None or abs(flat(sent)).max() < 100:
                assert (np.abs(made)[:8] <= limits[:8]).all(), value
            else:  # differences to the model beyond float32: nothing is usable, and the model stays
                assert made is None or np.isfinite(made).all()


def test_f_is_lowered_for_excluded_replies_only_and_only_if_needed() -> None:
    """Krum tolerates ``f`` of ``2f + 3``."""
    nan, failed = model(np.append(np.full(8, np.nan), 0)), Error(0, "no answer")
    cases = [  # good, malformed, failed -> the f that is used, or None
        (7, 0, 0, 2),
        (7, 3, 0, 2),
        (6, 1, 0, 1),
        (5, 1, 0, 1),
        (5, 2, 0, 1),
        (4, 2, 0, 0),
        (3, 5, 0, 0),
        (6, 0, 1, None),
        (5, 0, 2, None),
        (4, 1, 1, None),
        (2, 2, 0, None),
        (0, 3, 0, None),
        (0, 0, 0, None),
    ]
    for good, bad, silent, f in cases:
        messages = replies(X[:good])
        messages += [reply(50 + node, nan) for node in range(bad)]
        messages += [reply(80 + node, None, content=failed) for node in range(silent)]
        strategy = RobustStrategy("multi-krum", f=2)
        made, metrics = strategy.aggregate_train(3, messages)
        assert len(strategy.excluded) == bad
        case = f"{good} good, {bad} malformed, {silent} silent"
        if f is None:
            assert (made, metrics) == (None, None), case
        else:
            expected = aggregate.multi_krum(as_received(X[:good]), f=f)
            np.testing.assert_allclose(flat(made)[:8], expected[:8], rtol=1e-6, err_msg=case)


def test_rows_are_relative_to_the_model_that_was_sent(task: None) -> None:
    clip = [aggregators.Clipping(max_norm=0.5), "mean"]
    strategy = RobustStrategy(clip, f=0, min_train_nodes=7, min_available_nodes=7)
    grid = Clients([lambda k, layers: None] * 7)
    sent = list(strategy.configure_train(1, record(model(SENT)), ConfigRecord(), grid))
    assert len(sent) == 7
    rows = as_received(X) - SENT
    shortened = rows * np.minimum(1, 0.5 / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(combined(strategy, replies(X))[:8], (SENT + shortened.mean(axis=0))[:8], rtol=1e-5)
    strategy = RobustStrategy(clip, f=0, relative=False)
    strategy._sent = record(model(SENT))
    rows = as_received(X)
    shortened = rows * np.minimum(1, 0.5 / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(combined(strategy, replies(X))[:8], shortened.mean(axis=0)[:8], rtol=1e-5)


def test_training_from_start_to_end_under_attack(task: None) -> None:
    """Clients move half of the way to their own optimum: the model goes to the median of those of regular clients."""
    optima = X.copy()

    def regular(node: int) -> Any:
        return lambda k, layers: model((np.concatenate([a.ravel() for a in layers.values()]) + optima[node]) / 2)

    attackers = [
        lambda k, layers: model(np.full(9, -1e6)),
        lambda k, layers: {"weight": np.zeros(1)} if k % 2 else reply(8, None, content=Error(0, "gone")),
    ]
    grid = Clients([*(regular(node) for node in range(7)), *attackers])
    for rule, tolerance in (("trimmed-mean", 0.5), ("geometric-median", 0.7)):
        strategy = RobustStrategy(rule, f=2, min_available_nodes=9, min_train_nodes=9, fraction_evaluate=0.0)
        result = strategy.start(grid, record(model(SENT)), num_rounds=8)
        made = flat(result.arrays)
        assert np.abs(made - X.mean(axis=0))[:8].max() < tolerance, rule
        assert len(result.train_metrics_clientapp) == 8
        again = strategy.start(grid, record(model(SENT)), num_rounds=8)
        assert np.array_equal(flat(again.arrays), made), "not the same bits in the second run"


def test_bucketing_draws_by_seed_and_round() -> None:
    made = [
        flat(RobustStrategy("bucketing+mean", f=0, seed=seed).aggregate_train(k, replies(X))[0]).tolist()
        for seed, k in ((0, 1), (0, 1), (1, 1), (0, 2))
    ]
    assert made[0] == made[1]
    assert len({tuple(values) for values in made}) == 3


def test_metrics_are_medians_of_replies_that_make_sense() -> None:
    def metrics(*contents: dict[str, Any]) -> Any:
        messages = [reply(node, model(X[node]), content) for node, content in enumerate(contents)]
        _, trained = RobustStrategy("median", f=0).aggregate_train(1, messages)
        evaluated = RobustStrategy("median", f=0).aggregate_evaluate(1, messages)
        assert (trained is None) == (evaluated is None)
        assert trained is None or dict(trained) == dict(evaluated)
        return None if trained is None else dict(trained)

    one = {"num-examples": 10, "loss": 1.0, "parts": [1.0, 2.0]}
    many = {"num-examples": 10**9, "loss": 5.0, "parts": [5.0, -5.0]}
    two = one | {"loss": 2.0}
    assert metrics(one, many, two) == {"loss": 2.0, "parts": [1.0, 2.0]}
    nan, longer, fewer = one | {"loss": float("nan")}, one | {"parts": [1.0]}, {"num-examples": 10}
    assert metrics(one, two, many, nan, longer, fewer, {}) == {"loss": 2.0, "parts": [1.0, 2.0]}
    assert metrics({}, {}, {}) is None
    asked: list[Any] = []

    def own(contents: list[Any], key: str) -> MetricRecord:
        asked.append((len(contents), key))
        return aggregate_metricrecords(contents, key)

    strategy = RobustStrategy("median", f=1, train_metrics_aggr_fn=own)
    _, made = strategy.aggregate_train(1, [reply(0, model(X[0]), nan), *(reply(i, model(X[i]), one) for i in (1, 2))])
    assert asked == [(2, "num-examples")]
    assert made["loss"] == 1.0
    assert isinstance(median_metrics([reply(0, model(X[0])).content], "num-examples"), MetricRecord)


def test_layers_are_those_of_most_replies_or_of_the_model_that_was_sent() -> None:
    strange = {"weight": np.zeros(1, np.float32)}
    strategy = RobustStrategy("median", f=1)
    assert list(strategy.aggregate_train(1, [*replies(X[:1]), *(reply(i, strange) for i in (1, 2))])[0]) == ["weight"]
    strategy._sent = record(model(SENT))
    strategy.aggregate_train(1, [*replies(X[:2]), *(reply(i, strange) for i in (2, 3))])
    assert [node for node, _ in strategy.excluded] == [2, 3]  # of equally many
    backwards = dict(reversed(list(model(X[0]).items())))
    np.testing.assert_allclose(  # the order of the layers says nothing
        combined(RobustStrategy("median", f=0), [reply(0, backwards), *replies(X)[1:]])[:8],
        aggregate.median(as_received(X))[:8], rtol=1e-6,
    )  # fmt: skip


def test_dtypes_and_limits_of_layers_are_kept() -> None:
    layers = {
        "half": np.array([1.5, -65504.0], np.float16),
        "byte": np.array([0, 255], np.uint8),
        "long": np.array([2**62, -(2**62)], np.int64),
        "flag": np.array([True, False]),
        "big-endian": np.array([1.0], ">f4"),
        "empty": np.zeros((0, 3), np.float32),
    }
    strategy = RobustStrategy("median", f=1)
    strategy._sent = ArrayRecord({name: Array(array) for name, array in layers.items()})
    arrays, _ = strategy.aggregate_train(1, [reply(node, layers) for node in range(3)])
    assert arrays is not None
    for name, array in layers.items():
        made = arrays[name].numpy()
        assert made.dtype == array.dtype.newbyteorder("="), name
        np.testing.assert_array_equal(made, array, err_msg=name)


def test_settings_are_checked_when_it_is_built() -> None:
    def rows_to_nothing(rows: Any) -> Any:
        return rows

    strategy = RobustStrategy("nnm+krum", f=2, fraction_train=0.5, weighted_by_key="n")
    assert isinstance(strategy, FedAvg)
    assert (strategy.min_train_nodes, strategy.min_available_nodes, strategy.fraction_train) == (7, 7, 0.5)
    assert RobustStrategy("median", f=0).min_train_nodes == 1
    assert RobustStrategy("bucketing+krum", f=2).min_train_nodes == 13
    strategy.summary()
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"rule": "krumm", "f": 1}, ValueError, "^rule: expected one of mean, median"),
        ({"rule": "krum", "f": -1}, ValueError, "^f: expected an integer >= 0, got -1$"),
        ({"rule": "krum", "f": 0.5}, TypeError, "^f: expected an integer, got float$"),
        ({"rule": "krum", "f": 1, "weighted_by": "n"}, TypeError, "weighted_by"),
        ({"rule": rows_to_nothing, "f": 1, "weighted": True}, ValueError, "^weighted: the last rule takes no weights$"),
        ({"rule": "nnm+mda", "f": 1, "weighted": True}, ValueError, "^weighted: the last rule takes no weights$"),
        (
            {"rule": "bucketing+median", "f": 1, "weighted": True},
            ValueError,
            "^weights: expected the workers' own rows",
        ),
        ({"rule": "median", "f": 1, "cap": 5}, ValueError, "^cap: "),
        ({"rule": "median", "f": 1, "weighted": True, "cap": 0}, ValueError, "^cap: "),
        ({"rule": "median", "f": 1, "threads": -1}, ValueError, "^threads: "),
    ]
    for settings, kind, message in cases:
        with pytest.raises(kind, match=message):
            RobustStrategy(**settings)
    bad = RobustStrategy(rows_to_nothing, f=1)
    assert bad.aggregate_train(1, replies(X)) == (
        None,
        None,
    )  # no vector: the model stays
