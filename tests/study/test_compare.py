"""compare: what its arguments stand for, every cell against simulate, and what happens to cells that cannot run."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import ADMM, RSA, SGD, aggregators, algorithms, attacks, datasets, losses, partition, simulate, steps
from byzadmm.study import AXES, Cell
from support.runs import equal_runs

Array = npt.NDArray[Any]
SHORT: dict[str, Any] = {"iterations": 20, "eval_every": 10}


def bias(messages: Array, *, byzantine: list[int], **_: Any) -> Array:
    out: Array = messages[byzantine] + 1.0
    return out


def fails(messages: Array, *, k: int, **_: Any) -> Array:
    raise ZeroDivisionError(f"at {k}")


def first(X: Array) -> Array:
    row: Array = X[0]
    return row


class Slow(algorithms.Algorithm):
    def answer(self, group: Any, state: Any, x0: Array, k: int) -> Array:
        out: Array = group.gradients(x0, k)
        return out

    def update(self, run: Any, state: Any, heard: Any, k: int) -> None:
        state["x0"] -= 0.01 * heard.rows.mean(axis=0)


def test_every_cell_is_the_run_that_simulate_gives() -> None:
    data = datasets.load("digits")
    study = byzadmm.compare(
        data,
        ["iid", "dirichlet:0.5"],
        algorithms=["ideal", "admm", "nnm+krum"],
        attacks=[None, "gaussian:std=50", bias],
        n_workers=10,
        n_byzantine=[1, 3],
        seeds=[4, 2],
        batch_size=8,
        rho=0.02,
        **SHORT,
    )
    assert study.axes == {
        "algorithm": ["ideal", "admm", "nnm+krum"],
        "attack": ["none", "gaussian:std=50", "bias"],
        "n_byzantine": [1, 3],
        "partition": ["iid", "dirichlet:0.5"],
        "seed": [4, 2],
    }
    assert len(study.results) == 3 * 3 * 2 * 2 * 2
    assert not study.missing
    made = {
        "ideal": lambda q: SGD.for_dataset(data, ideal=True),
        "admm": lambda q: ADMM.for_dataset(data),
        "nnm+krum": lambda q: SGD.for_dataset(data, rule="nnm+krum", f=q),
    }
    forged = {"none": None, "gaussian:std=50": attacks.Gaussian(std=50), "bias": bias}
    for cell, result in study.results.items():
        divide = partition.iid if cell.partition == "iid" else lambda *a, **k: partition.dirichlet(*a, alpha=0.5, **k)
        run = simulate(
            data,
            divide(data.train_y, 10, seed=cell.seed),
            algorithm=made[cell.algorithm](cell.n_byzantine),
            attack=forged[cell.attack],
            n_byzantine=cell.n_byzantine,
            seed=cell.seed,
            batch_size=8,
            rho=0.02,
            **SHORT,
        )
        run.x = None
        assert equal_runs(result, run), cell


def test_an_ideal_algorithm_runs_once_for_all_attacks() -> None:
    study = byzadmm.compare("digits", algorithms=["ideal", "rsa"], attacks=["none", "alie", bias], seeds=2, **SHORT)
    ideal = [study.results[cell] for cell in study.cells(algorithm="ideal", seed=0)]
    assert len(ideal) == 3
    assert all(result is ideal[0] for result in ideal)
    assert len({id(study.results[cell]) for cell in study.cells(algorithm="rsa")}) == 6
    assert len(study.rows()) == 12


def test_algorithms_are_names_objects_classes_rules_or_a_dict() -> None:
    given: list[Any] = [
        "admm",
        RSA,
        SGD(rule="median"),
        ADMM(lam=0.1),
        ADMM(lam=0.2),
        first,
        aggregators.Krum(f=2),
        Slow(),
    ]
    study = byzadmm.compare("digits", algorithms=given, attacks=None, n_workers=9, n_byzantine=2, seeds=1, **SHORT)
    names = ["admm", "rsa", "median", "admm (lam=0.1)", "admm (lam=0.2)", "first", "krum", "Slow"]
    assert study.axes["algorithm"] == names
    settings = {name: study.results[study.cells(algorithm=name)[0]].config["algorithm"] for name in names}
    assert settings["admm"]["lam"] == ADMM.for_dataset(datasets.load("digits")).lam
    assert settings["admm (lam=0.2)"]["lam"] == 0.2
    assert settings["first"]["rule"] == "first"
    assert settings["Slow"] == {"name": "Slow"}
    colors = [style.color for style in study.styles().values()]
    assert len(set(colors)) == len(colors)
    assert study.styles()["rsa"].color == byzadmm.catalogue.STYLES["rsa"].color
    labelled = byzadmm.compare(
        "digits", algorithms={"mine": Slow(), "theirs": "admm"}, attacks={"push": bias}, seeds=1, **SHORT
    )
    assert labelled.axes["algorithm"] == ["mine", "theirs"]
    assert labelled.axes["attack"] == ["push"]
    assert labelled.styles()["theirs"].color == byzadmm.catalogue.STYLES["admm"].color


def test_labels_that_coincide_are_names() -> None:
    def Median(X: Array) -> Array:
        out: Array = np.median(X, axis=0)
        return out

    study = byzadmm.compare("digits", algorithms=["median", Median, "admm"], attacks=None, seeds=1, **SHORT)
    assert study.labels["algorithm"] == {"median": "median", "Median": "Median", "admm": "ADMM"}
    assert list(study.record()["algorithms"]) == ["median", "Median", "ADMM"]


def test_attackers_of_one_kind_are_told_apart_by_their_settings() -> None:
    given = [attacks.SignFlip(-1.0), attacks.SignFlip(-3.0), attacks.ALIE(), bias]
    study = byzadmm.compare("digits", algorithms="sgd", attacks=given, seeds=1, **SHORT)
    assert study.axes["attack"] == ["sign-flip (scale=-1.0)", "sign-flip (scale=-3.0)", "alie", "bias"]
    assert study.label("attack", "alie") == "ALIE"
    beside = byzadmm.compare("digits", algorithms="sgd", attacks=[None, none], seeds=1, **SHORT)
    assert beside.axes["attack"] == ["none", "none (own)"]


def none(messages: Array, *, byzantine: Array, **_: Any) -> Array:
    return messages[byzantine]


def test_labels_tell_apart_what_has_two_names(tmp_path: Path) -> None:
    """The tables and the page know a value by its label."""
    for axis, given in {
        "algorithm": {"algorithms": ["trimmed-mean", "trimmed_mean", "sgd"]},
        "attack": {"attacks": ["alie", "ALIE"]},
        "partition": {"partition": ["dirichlet:0.3", "dirichlet:alpha=0.3"]},
    }.items():
        settings: dict[str, Any] = {"algorithms": "sgd", "attacks": None, **given}
        study = byzadmm.compare("digits", n_byzantine=2, seeds=1, **settings, **SHORT)
        assert [study.label(axis, name) for name in study.axes[axis][:2]] == study.axes[axis][:2], axis
        study.report(tmp_path / "page.html")


class Growing:
    """An attack with state: every call is stronger."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Array, *, byzantine: list[int], **_: Any) -> Array:
        self.calls += 1
        out: Array = self.calls * messages[byzantine]
        return out


class Buffered:
    """A loss that returns its own memory, which a second thread would write over."""

    n_workers, dim = 5, 200

    def __init__(self) -> None:
        self.room = np.empty(self.dim)

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        self.room[:] = x - worker
        for _ in range(10):
            self.room[:] = self.room + 0.0
        return self.room


def test_objects_with_state_are_the_run_s_own() -> None:
    attack, loss = Growing(), Buffered()
    settings: dict[str, Any] = {"algorithms": SGD(step=steps.constant(0.1)), "attacks": attack, "seeds": 6, **SHORT}
    for given in ({"dataset": "digits"}, {"dataset": None, "loss": loss}):
        alone, beside = (byzadmm.compare(**given, **settings, jobs=jobs) for jobs in (1, 4))
        for cell, result in alone.results.items():
            assert equal_runs(result, beside.results[cell]), cell
    assert attack.calls == 0
    assert alone.settings["loss"] == "Buffered"


class Logged(Growing):
    """One that cannot be copied: it holds a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Guarded(Growing):
    """One that refuses to be copied with an error of its own."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise ValueError("one of a kind")


def test_an_object_that_cannot_be_copied_is_shared_and_one_that_refuses_fails() -> None:
    settings: dict[str, Any] = {"algorithms": "sgd", "seeds": 1, **SHORT}
    shared = Logged()
    study = byzadmm.compare("digits", attacks=shared, **settings)
    assert len(study.results) == 1
    assert shared.calls == SHORT["iterations"]
    with pytest.raises(ValueError, match="one of a kind"):
        byzadmm.compare("digits", attacks=Guarded(), **settings)


def test_classes_of_attacks_and_rules_and_partial_functions() -> None:
    def scaled(messages: Array, *, byzantine: list[int], scale: float, **_: Any) -> Array:
        out: Array = scale * messages[byzantine]
        return out

    given = [attacks.ALIE, functools.partial(scaled, scale=2.0), functools.partial(scaled, scale=3.0)]
    rules = [aggregators.Krum, aggregators.make("nnm+median")]
    study = byzadmm.compare("digits", algorithms=rules, attacks=given, n_byzantine=[2, 4], seeds=1, **SHORT)
    assert study.axes["attack"] == ["alie", "scaled (scale=2.0)", "scaled (scale=3.0)"]
    assert not study.missing
    for cell, result in study.results.items():
        about = result.config["algorithm"]
        assert about["f"] == cell.n_byzantine, cell
        if cell.algorithm != "krum":  # the links of a chain without f, too
            assert f"f={cell.n_byzantine}" in about["rule"][0], cell
    by_name = byzadmm.compare("digits", algorithms="krum", attacks="alie", n_byzantine=4, seeds=1, **SHORT)
    [cell] = by_name.cells()
    assert equal_runs(by_name.results[cell], study.results[cell])


def test_settings_are_plain_values_whatever_was_given() -> None:
    start = np.full(650, 0.01)
    study = byzadmm.compare(
        "digits", algorithms="sgd", attacks=None, seeds=np.array([3, 1]), n_byzantine=np.array([2]), x0_init=start,
        batch_size=np.int64(8), rho=np.float32(0.5), dtype=np.float64, **SHORT,
    )  # fmt: skip
    assert study.axes["seed"] == [3, 1]
    assert {"batch_size": 8, "rho": 0.5, "dtype": "float64"}.items() <= study.settings.items()
    assert json.loads(json.dumps(study.settings)) == study.settings
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=3)
    run = simulate(data, parts, algorithm=SGD.for_dataset(data), n_byzantine=2, seed=3,
                   x0_init=start, batch_size=8, rho=0.5, dtype="float64", **SHORT)  # fmt: skip
    assert equal_runs(study.results[study.cells(seed=3)[0]], run)


def test_a_partition_is_a_name_a_function_index_arrays_or_several() -> None:
    data = datasets.load("digits")
    own = partition.iid(data.train_y, 6, seed=9)

    def halves(labels: Array, n_workers: int, seed: int) -> list[Array]:
        return np.array_split(np.arange(len(labels)), n_workers)

    for given, names, m in [
        (own, ["given"], 6),
        ([part.tolist() for part in own], ["given"], 6),
        (halves, ["halves"], 20),
        (["iid", "by-label"], ["iid", "by-label"], 20),
        ([own, "iid", halves], ["given", "iid", "halves"], 6),
        ({"a": own, "b": partition.iid(data.train_y, 6, seed=1)}, ["a", "b"], 6),
    ]:
        study = byzadmm.compare(data, given, algorithms="sgd", attacks=None, n_byzantine=1, seeds=1, **SHORT)
        assert study.axes["partition"] == names, given
        assert study.settings["n_workers"] == m, given
    [cell] = study.cells(partition="a")
    run = simulate(data, own, algorithm=SGD.for_dataset(data), n_byzantine=1, **SHORT)
    assert equal_runs(study.results[cell], run)


def test_a_rule_by_name_gets_its_f_and_illegal_cells_are_said_not_run() -> None:
    study = byzadmm.compare(
        "digits", algorithms=["sgd", "krum"], attacks=["none", "alie"], n_byzantine=[8, 9], seeds=2, **SHORT
    )
    assert {cell.n_byzantine for cell in study.missing} == {9}
    assert {cell.algorithm for cell in study.missing} == {"krum"}
    assert {why.status for why in study.missing.values()} == {"illegal"}
    assert all("at most 8" in why.reason for why in study.missing.values())
    assert len(study.rows()) == 16
    assert [row["status"] for row in study.rows()].count("illegal") == 4
    [cell] = study.cells(algorithm="krum", n_byzantine=8, attack="alie", seed=1)
    assert study.results[cell].config["algorithm"]["f"] == 8


def test_participation_decides_which_f_is_legal() -> None:
    study = byzadmm.compare(
        "digits",
        algorithms=["sgd", "trimmed-mean"],
        attacks="alie",
        n_byzantine=[2, 3],
        seeds=1,
        participation=0.3,
        **SHORT,
    )
    assert {(cell.algorithm, cell.n_byzantine): why.status for cell, why in study.missing.items()} == {
        ("trimmed-mean", 3): "illegal"
    }


def test_one_failing_cell_does_not_lose_the_others() -> None:
    with pytest.warns(RuntimeWarning, match="2 of 6 runs failed, the first with ZeroDivisionError: at "):
        study = byzadmm.compare("digits", algorithms=["ideal", "sgd"], attacks=["none", fails], seeds=2, **SHORT)
    assert len(study.results) == 6
    assert {cell.attack for cell in study.missing} == {"fails"}
    assert {why.status for why in study.missing.values()} == {"failed"}
    assert "ZeroDivisionError: at" in study.table()
    with pytest.raises(ZeroDivisionError, match="at "):
        byzadmm.compare("digits", algorithms="sgd", attacks=fails, seeds=1, **SHORT)


def test_on_evaluation_names_the_cell_and_can_stop_it() -> None:
    seen: Counter[tuple[Any, ...]] = Counter()
    lock = threading.Lock()

    def watch(k: int, metrics: dict[str, Any]) -> bool:
        with lock:
            seen[tuple(metrics[axis] for axis in AXES)] += 1
        assert metrics["accuracy"] >= 0
        return metrics["algorithm"] == "sgd" and k >= 10

    study = byzadmm.compare("digits", algorithms=["sgd", "rsa"], attacks="alie", seeds=2, on_evaluation=watch, **SHORT)
    assert {cell: count for cell, count in seen.items()} == {
        tuple(cell): 2 if cell.algorithm == "sgd" else 3 for cell in study.cells()
    }
    assert [row["iterations"] for row in study.rows()] == [10, 10, 20, 20]


def test_losses_by_name_class_function_and_object() -> None:
    data = datasets.load("digits")
    pairs = datasets.from_arrays(data.train_x, data.train_y % 2, data.test_x, data.test_y % 2, scale=data.scale)
    settings: dict[str, Any] = {"algorithms": SGD(step=steps.constant(0.1)), "attacks": None, "seeds": [3], **SHORT}
    by_name = byzadmm.compare(pairs, loss="logistic", **settings)
    for given in (losses.Logistic, lambda data, parts, **more: losses.Logistic(data, parts, **more)):
        study = byzadmm.compare(pairs, loss=given, **settings)
        assert equal_runs(study.results[study.cells()[0]], by_name.results[by_name.cells()[0]])
    quadratic = losses.Quadratic(np.ones(5), np.full((5, 2), 3.0))
    study = byzadmm.compare(None, loss=quadratic, n_byzantine=2, **settings)
    assert study.cells() == [Cell("sgd", "none", 2, "given", 3)]
    assert study.metric() == "loss"
    assert study.final(study.cells()[0]) < quadratic.value(np.zeros(2))
    assert study.settings["loss"] == repr(quadratic)


class Absolute:
    """Mean absolute residual of workers that have all samples; ``evaluate`` gives one metric, of its own name."""

    def __init__(self, dataset: datasets.Dataset, parts: Any, batch_size: int, seed: int) -> None:
        self.data, self.n_workers, self.dim = dataset, len(parts), dataset.n_features

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        a, y = self.data.train_x, self.data.train_y
        return np.asarray(np.sign(a @ x - y) @ a / len(a))

    def evaluate(self, x: Array) -> dict[str, float]:
        return {"mae": float(np.mean(np.abs(self.data.test_x @ x - self.data.test_y)))}


def test_the_metric_of_a_custom_loss_is_what_tables_and_searches_go_by() -> None:
    x = np.random.default_rng(0).standard_normal((120, 3))
    y = x @ [1.0, -2.0, 3.0]
    data = datasets.from_arrays(x[:100], y[:100], x[100:], y[100:])
    given: dict[str, Any] = {"loss": Absolute, "algorithms": ["admm", "sgd"], "attacks": None, "n_byzantine": 0}
    study = byzadmm.compare(data, seeds=1, tune=3, **given, **SHORT)
    assert study.metric() == "mae"
    assert "final mae" in study.table()
    assert study.finals()[1] < np.mean(np.abs(y[100:]))
    assert all(found["score"] < 0 for found in study.tuned.values()), "minus the error on samples set aside"
    assert study.record()["higher_is_better"] is False


def test_a_study_describes_what_it_was_without_addresses(tmp_path: Path) -> None:
    class Flat:
        dim, n_workers = 2, 5

        def gradient(self, x: Array, *, worker: int, k: int) -> Array:
            return np.zeros(2)

    study = byzadmm.compare(None, loss=Flat(), algorithms=SGD(), attacks=None, n_byzantine=1, seeds=1, **SHORT)
    assert study.settings["loss"] == "Flat"
    study.save(tmp_path)
    study.when = loaded_when = "2026-11-18 07:00"
    study.save(tmp_path)
    loaded = byzadmm.Study.load(tmp_path)
    assert loaded.record() == study.record(), "the page of a study is the same at any later time"
    assert loaded.record()["when"] == loaded_when
    assert "n_workers" not in loaded.record()["settings"], "the page has it as the number of workers"


def test_data_with_real_targets_are_fitted_by_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4))
    y = x @ [1.0, -2.0, 0.5, 3.0] + 0.1 * rng.normal(size=600)
    data = datasets.from_arrays(x[:500], y[:500], x[500:], y[500:])
    study = byzadmm.compare(
        data, algorithms=["ideal", "geometric-median"], attacks="sign-flip", seeds=1, iterations=300
    )
    assert study.metric() == "test_loss"
    assert all(study.final(cell, "r2") > 0.95 for cell in study.cells()), study.table()


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"algorithms": "adm"}, ValueError, "algorithm: expected one of"),
        ({"algorithms": []}, ValueError, "algorithms: expected at least one, got none"),
        ({"algorithms": [3]}, TypeError, "algorithms: expected a name, an algorithm or a rule, got int"),
        ({"algorithms": ["admm", "admm"]}, ValueError, "algorithms: two are called 'admm'"),
        ({"attacks": [7]}, TypeError, "attacks: expected a name, an attack, a function or None, got int"),
        ({"attacks": "sign"}, ValueError, "attack: expected one of"),
        ({"n_byzantine": 21}, ValueError, r"n_byzantine: expected an integer in \[0, 20\], got 21"),
        ({"n_byzantine": [4, 4]}, ValueError, "n_byzantine: expected different numbers"),
        ({"seeds": 0}, ValueError, "seeds: expected an integer >= 1, got 0"),
        ({"seeds": 1.5}, TypeError, "seeds: expected an integer, got float"),
        ({"partition": "even"}, ValueError, "partition: expected one of"),
        ({"partition": lambda labels, m, seed: [[0], [1]]}, ValueError, "partition: expected 20 index arrays, one per"),
        ({"loss": losses.Quadratic([1.0], [[2.0]]), "n_workers": 3}, ValueError, "n_workers: the loss has 1, got 3"),
        (
            {"loss": losses.Quadratic([1.0], [[2.0]]), "partition": [np.arange(3)]},
            ValueError,
            "partition: a loss that is an object has its own",
        ),
        ({"partition": 3}, TypeError, "partition: expected a name, a function, a list of index arrays"),
        (
            {"partition": [[0], [1]], "n_workers": 3},
            ValueError,
            "partition: expected 3 index arrays, one per worker, got 2",
        ),
        ({"iterations": -1}, ValueError, "iterations: expected an integer"),
        ({"dataset": 5}, TypeError, "dataset: expected a Dataset, a name or None, got int"),
        ({"dataset": "digit"}, ValueError, "dataset: expected one of"),
        ({"dataset": None}, TypeError, "dataset: None goes with a loss that is an object"),
        ({"loss": "hinge"}, ValueError, "loss: expected one of"),
        ({"loss": 3}, TypeError, "loss: expected a name, a loss, or a function that makes one; got int"),
        ({"seed": 3}, TypeError, "unexpected keyword argument 'seed'"),
        ({"colour": "red"}, TypeError, "unexpected keyword argument 'colour'"),
        ({"tune": {"budgets": 3}}, ValueError, "tune: expected one of budget"),
        ({"tune": {"ranges": {"step": (0.0, 1.0)}}}, ValueError, "tune: ranges: step: expected a finite number > 0"),
        ({"tune": {"ranges": {"step": (2.0, 1.0)}}}, ValueError, "tune: ranges: step: expected a finite number >= 2"),
        ({"tune": {"ranges": {"stap": (1.0, 2.0)}}}, ValueError, "tune: ranges: expected one of lam, beta, step"),
        ({"jobs": 0}, ValueError, "jobs: expected an integer >= 1, got 0"),
        ({"on_evaluation": 3}, TypeError, "on_evaluation: expected None or a callable, got int"),
    ],
)
def test_what_cannot_be_compared_is_said_before_anything_runs(
    changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    given: dict[str, Any] = {"dataset": "digits", "algorithms": "admm", "attacks": None, "seeds": 1, "iterations": 10}
    with pytest.raises(error, match=text):
        byzadmm.compare(**given | changes)


def test_a_search_finds_settings_on_samples_of_its_own_and_leaves_other_algorithms_alone() -> None:
    data = datasets.load("digits")
    bad = {"step": (1e-5, 1e-4), "lam": (1e-3, 1e-2), "beta": (0.1, 1.0), "slope": (0.1, 1.0)}
    settings: dict[str, Any] = {"attacks": ["sign-flip", None], "seeds": 1, "iterations": 200}
    given = ["ideal", "admm", SGD(rule="median", step=steps.constant(1e-6)), Slow()]
    poor = byzadmm.compare(data, algorithms=given, tune={"budget": 2, "ranges": bad}, **settings)
    good = byzadmm.compare(data, algorithms=given, tune=6, **settings)
    assert set(good.tuned) == {"ideal", "admm", "median"}
    for name in ("ideal", "median"):
        assert good.tuned[name]["step"] > 1e-3
        assert bad["step"][0] <= poor.tuned[name]["step"] <= bad["step"][1]
        [better] = good.finals(algorithm=name, attack="sign-flip")
        [worse] = poor.finals(algorithm=name, attack="sign-flip")
        assert better > worse + 0.1
    same = [study.results[study.cells(algorithm="Slow", attack="none")[0]] for study in (poor, good)]
    assert equal_runs(*same)
    # The score is the best of its trials', and the settings are those of every cell of the algorithm.
    found = [study.results[cell].config["algorithm"] for study in [good] for cell in good.cells(algorithm="admm")]
    assert {one["lam"] for one in found} == {good.tuned["admm"]["lam"]}
    with pytest.raises(ValueError, match="tune: needs a data set of which samples can be set aside"):
        byzadmm.compare(
            None, loss=losses.Quadratic([1.0], [[2.0]]), algorithms=SGD(), attacks=None, n_byzantine=0, tune=3, **SHORT
        )


def test_a_search_in_which_an_algorithm_fails_does_not_lose_the_others() -> None:
    with pytest.warns(RuntimeWarning, match="runs failed, the first with ValueError: local_steps"):
        study = byzadmm.compare(
            "digits", algorithms=["median", "admm"], attacks=None, seeds=1, tune=1, local_steps=2, **SHORT
        )
    assert set(study.tuned) == {"median"}
    assert {(row["algorithm"], row["status"]) for row in study.rows()} == {("median", "done"), ("admm", "failed")}
    with pytest.warns(RuntimeWarning, match="runs failed"):
        study = byzadmm.compare(
            "digits", algorithms=["admm", SGD(step=steps.constant(0.1))], attacks=None, seeds=1, tune=2, local_steps=2,
            **SHORT,
        )  # fmt: skip
    assert set(study.tuned) == {"sgd"}


def test_metrics_do_not_take_the_place_of_axes() -> None:
    class Named(Buffered):
        def evaluate(self, x: Array) -> dict[str, float]:
            return {"seed": 7.0, "status": 8.0, "top/5": float(x[0])}

    class Listed(Buffered):
        def evaluate(self, x: Array) -> list[float]:
            return [1.0]

    settings: dict[str, Any] = {"algorithms": SGD(step=steps.constant(0.1)), "attacks": None, "seeds": [3], **SHORT}
    study = byzadmm.compare(None, loss=Named(), **settings)
    [row] = study.rows()
    assert (row["seed"], row["status"]) == (3, "done")
    assert set(study.frame(curves=True)["seed"]) == {3}
    assert row["top/5"] == study.results[study.cells()[0]].metrics["top/5"][-1]
    with pytest.raises(TypeError, match=r"loss\.evaluate: expected a dict of numbers by name, got list"):
        byzadmm.compare(None, loss=Listed(), **settings)
