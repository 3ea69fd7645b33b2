"""One registration per rule: everything that lists rules has it, and a new rule goes through the same door."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzadmm
from byzadmm import SGD, _core, aggregate, aggregators, attacks, reference, simulate
from byzadmm.aggregate._call import Call
from support.arrays import same_bits
from support.judges import JUDGES
from support.rules import ALL_RULES, registered
from support.runs import quadratic


def test_every_rule_has_its_names_twin_and_judge() -> None:
    functions = set(aggregate.__all__) - {"Info", "cap_weights", "max_f"}
    assert set(ALL_RULES) == functions
    assert set(aggregate.__all__) <= set(byzadmm.__all__)
    assert {kind.__name__ for kind in ALL_RULES.values()} <= set(aggregators.__all__)
    assert functions <= set(reference.__all__)
    assert set(JUDGES) == functions


@pytest.mark.parametrize("rule", ALL_RULES)
@pytest.mark.parametrize("page", ["rules.md", "api.md"])
def test_the_tables_of_the_documents_have_every_rule(rule: str, page: str, root: Path) -> None:
    text = (root / "docs" / page).read_text("utf-8")
    assert f"\n| `{rule}`, `{ALL_RULES[rule].__name__}` | " in text


def test_the_package_names_a_rule_in_two_files(root: Path) -> None:
    """CONTRIBUTING counts the places that a new rule touches; in the package these are its function and its twin."""
    package = root / "python" / "byzadmm"
    files = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py*")
        if path.suffix in (".py", ".pyi") and re.search(r"\bphocas\b|\bPhocas\b", path.read_text("utf-8"))
    }
    assert files == {"aggregate/centered.py", "reference/centered.py"}


def test_a_rule_of_a_few_lines_goes_through_the_same_door() -> None:
    def half_mean(
        X: Any, *, f: int, share: float, nonfinite: str = "exclude", return_info: bool = False, out: Any = None,
        threads: int = 0,
    ) -> Any:  # fmt: skip
        """``share`` times the mean of the rows."""
        call = Call("half_mean", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
        declared = call.check_f(f)
        call.compute(lambda: _core.mean(call.rows, call.out, None, call.kept, call.threads), declared)
        call.out *= share
        return call.result(lambda: {"iterations": 1})

    X = np.random.default_rng(0).standard_normal((7, 13))
    expected = 0.5 * X.mean(axis=0)
    with registered(half_mean, "HalfMean", max_f=lambda n: n // 4, named={"share": 0.5}) as HalfMean:
        assert aggregate.max_f("half_mean", 7) == 1
        assert repr(HalfMean(1, 0.5)) == "HalfMean(nonfinite='exclude', f=1, share=0.5)"
        np.testing.assert_allclose(HalfMean(f=1, share=0.5)(X), expected, rtol=1e-14)
        for name in ("half_mean", "half-mean", "HalfMean"):
            assert aggregators.make(name, f=1).links == (HalfMean(f=1, share=0.5),)
        chain = aggregators.make("nnm+half_mean", f=1)
        mixed = aggregate.nearest_neighbor_mixing(X, f=1)
        assert same_bits(chain(X), half_mean(mixed, f=1, share=0.5))
        result, info = HalfMean(f=1, share=0.5)(np.where(np.arange(7)[:, None] == 3, np.nan, X), return_info=True)
        assert info.excluded.tolist() == [3]
        np.testing.assert_allclose(result, 0.5 * np.delete(X, 3, axis=0).mean(axis=0), rtol=1e-14)
        with pytest.raises(ValueError, match="half_mean: f=2 is too large for n=7 workers; at most 1"):
            aggregators.make("half_mean", f=2).check(7)
        settings: dict[str, Any] = {"loss": quadratic(), "attack": attacks.NonFinite(), "n_byzantine": 1}
        run = simulate(None, None, algorithm=SGD(rule="half_mean", f=1), iterations=3, **settings)
        assert run.eliminated == {6: 1}
        assert run.x0.any()
    assert "half_mean" not in ALL_RULES
    with pytest.raises(ValueError, match="rule: expected one of mean"):
        aggregators.make("half_mean")
