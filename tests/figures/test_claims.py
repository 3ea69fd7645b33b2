"""The claims of the paper, checked on synthetic curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm.figures import claims, words

TIMES = np.arange(0, 1001, 100)


def rising(final: float, at: int = 100) -> np.ndarray[Any, Any]:
    """Three seeds of a curve that grows linearly until iteration ``at`` and then stays."""
    return np.tile(final * np.minimum(1.0, TIMES / at), (3, 1))


GOOD: dict[str, dict[str, Any]] = {
    "fig1a": {"sgd": 0.1, "admm": 0.91, "rsa": 0.91, "geometric-median": 0.915, "median": 0.89, "ideal": 0.92},
    "fig1b": {
        "sgd": 0.3,
        "admm": (0.71, 200),
        "rsa": (0.70, 400),
        "geometric-median": (0.71, 400),
        "median": (0.70, 400),
        "ideal": 0.715,
    },
    "fig2a": {"sgd": 0.1, "admm": 0.91, "rsa": 0.91, "geometric-median": 0.91, "median": 0.87, "ideal": 0.92},
    "fig2b": {"sgd": 0.1, "admm": 0.71, "rsa": 0.71, "geometric-median": 0.69, "median": 0.68, "ideal": 0.715},
    "fig4a": {"sgd": 0.92, "admm": 0.915, "rsa": 0.915, "geometric-median": 0.918, "median": 0.90, "ideal": 0.92},
    "fig4b": {"sgd": 0.71, "admm": 0.72, "rsa": 0.71, "geometric-median": 0.70, "median": 0.69, "ideal": 0.715},
    "fig3a": {"sgd": 0.5, "admm": 0.74, "rsa": 0.63, "geometric-median": 0.41, "median": 0.30, "ideal": 0.75},
    "fig3b": {"sgd": 0.5, "admm": 0.56, "rsa": (0.55, 500), "geometric-median": 0.1, "median": 0.14, "ideal": 0.57},
}


def curves(name: str, **changes: Any) -> dict[str, np.ndarray[Any, Any]]:
    table = GOOD[name] | {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: rising(*value) if isinstance(value, tuple) else rising(value) for key, value in table.items()}


def claim_of(name: str, **columns: dict[str, np.ndarray[Any, Any]]) -> claims.Claim:
    """The claim about a figure; readings -> curves."""
    return claims.check_curves(name, {reading: words.Curves(TIMES, values) for reading, values in columns.items()})


@pytest.mark.parametrize("name", GOOD)
def test_claims_hold_on_curves_that_show_them(name: str) -> None:
    good = curves(name)
    claim = claim_of(name, printed=good, tuned=good | {"admm": rising(0.05)})
    assert claim.printed is True
    assert claim.tuned is False
    assert claim.holds("blind") is None
    assert {claim.verdict(number) for number in range(len(claim.statements))} == {"reproduced"}


@pytest.mark.parametrize(
    ("name", "changes", "wrong", "strict"),
    [
        ("fig1a", {"sgd": 0.62}, "sgd fails", False),
        ("fig1a", {"sgd": 0.5}, "sgd fails", True),
        ("fig1a", {"rsa": 0.879}, "rsa close to ideal", False),
        ("fig1a", {"rsa": 0.899}, "rsa close to ideal", True),
        ("fig1a", {"median": 0.909}, "median a little worse", False),
        ("fig1a", {"median": 0.5}, "median a little worse", False),
        ("fig1b", {"sgd": 0.70}, "sgd worst", False),
        ("fig1b", {"rsa": (0.70, 100)}, "admm faster than rsa", False),
        ("fig2a", {"geometric_median": 0.871, "median": 0.87}, "geometric-median better than median", False),
        ("fig2b", {"median": 0.71}, "admm better than median", False),
        ("fig4a", {"admm": 0.909}, "admm very similar to ideal", False),
        ("fig4b", {"ideal": 0.721}, "admm best", False),
        ("fig3a", {"rsa": 0.74}, "admm better than rsa", False),
        ("fig3a", {"median": 0.51}, "median fails", False),
        ("fig3a", {"median": 0.4}, "median fails", True),
        ("fig3b", {"rsa": 0.5}, "rsa works", False),
        ("fig3b", {"admm": (0.56, 600)}, "admm faster than rsa", False),
    ],
)
def test_a_claim_that_does_not_hold_says_which_part(name: str, changes: Any, wrong: str, strict: bool) -> None:
    """``strict``: only by the strict words."""
    claim = claim_of(name, printed=curves(name, **changes))
    number = claim.statements.index(wrong)
    assert claim.printed is strict
    assert claim.cell("printed", number) == ("yes*" if strict else "no")
    assert claim.verdict(number) == ("reproduced" if strict else "not reproduced")
    assert not claim.strict["printed"][number].holds


def test_verdicts() -> None:
    good, bad = curves("fig2b"), curves("fig2b", rsa=0.5)
    for columns, verdict in [
        ({"published": good, "printed": good}, "reproduced"),
        ({"published": good, "printed": bad}, "not reproduced"),
        ({"published": good, "printed": bad, "blind": good}, "only when tuned"),
        ({"published": good, "printed": bad, "tuned": good}, "only when tuned"),
        ({"published": bad, "printed": good}, "unsupported"),
        ({"published": bad, "printed": bad}, "unsupported"),
    ]:
        claim = claim_of("fig2b", **columns)
        assert claim.verdict(claim.statements.index("rsa close to ideal")) == verdict, columns
        assert claim.verdict(claim.statements.index("admm close to ideal")) == "reproduced"
    counted = claims.count_parts([claim_of("fig2b", published=bad, printed=good)])
    assert counted == {"reproduced": 3, "unsupported": 3}
    apart = [claim_of("fig1a", printed=curves("fig1a", rsa=0.899))]
    assert claims.count_parts(apart) == {"reproduced": 5}
    assert claims.count_parts(apart, strict=True) == {"reproduced": 4, "not reproduced": 1}
    assert "by the strict words: 4 reproduced, 1 not reproduced" in claims.claims_table(apart)


def test_better_is_by_more_than_two_standard_errors_of_the_paired_difference() -> None:
    noise = np.array([[0.0], [0.02], [-0.02]])
    apart = {"a": rising(0.71) + noise, "b": rising(0.70) + noise, "c": rising(0.70) - noise, "ideal": rising(0.8)}
    words_of = words.Curves(TIMES, apart)
    assert words_of.difference("a", "b") == pytest.approx((0.01, 0.0))
    assert words_of.is_better("a", "b")
    assert words_of.difference("a", "c")[1] == pytest.approx(0.04 / np.sqrt(3))
    assert not words_of.is_better("a", "c")
    assert words.Curves(TIMES, apart, words.STRICT).is_better("a", "c")
    assert not words_of.is_better("b", "a")


def test_time_to_a_level_is_linear_between_evaluations() -> None:
    found = words.Curves(TIMES, {"ideal": rising(1.0), "slow": rising(1.0, 1000), "never": rising(0.5)})
    assert found.time("slow") == pytest.approx(900)
    assert found.time("slow", 0.95) == pytest.approx(950)
    assert found.time("never") == np.inf
    at_once = words.Curves(TIMES, {"ideal": np.ones((1, len(TIMES)))})
    assert at_once.time("ideal") == 0


def test_the_sweep() -> None:
    def held(*finals: float) -> list[bool]:
        claim = claims.check_sweep("fig5a", {"tuned": dict(zip((0.1, 0.001, 1.0), finals, strict=True))})
        return [part.holds for part in claim.parts["tuned"]]

    assert held(0.9, 0.8, 0.85) == [True, True]
    assert held(0.9, 0.89, 0.85) == [False, True]
    assert held(0.9, 0.8, 0.89) == [True, False]


def test_the_example_claim() -> None:
    flat = {(0, "admm"): 0.375, (0, "rsa"): 0.25, (1, "admm"): 0.5, (1, "rsa"): 0.5}
    values = {key: np.array([0.0, limit, limit]) for key, limit in flat.items()}
    values[0, "rsa"] = np.array([0.0, 0.5, 0.25])
    assert claims.check_example(values).printed is True
    assert claims.check_example(values | {(1, "rsa"): np.array([0.0, 0.502])}).printed is False
    assert claims.check_example(values | {(0, "rsa"): np.array([0.25, 0.25])}).printed is False


def test_the_table_fits_80_columns() -> None:
    found = [claim_of(name, published=curves(name), printed=curves(name, admm=0.2)) for name in GOOD]
    found.append(claims.check_sweep("fig5a", {"tuned": {0.1: 0.9, 0.001: 0.8, 1.0: 0.85}}))
    table = claims.claims_table(found)
    assert max(map(len, table.splitlines())) <= 80
    failed = sum(claim.verdict(i) == "not reproduced" for claim in found for i in range(len(claim.statements)))
    assert f"{failed} not reproduced" in table
    assert "never" in claims.claims_table(found, markdown=True)
