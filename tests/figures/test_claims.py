"""The claims of the paper, checked on synthetic curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm.figures import claims

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


@pytest.mark.parametrize("name", GOOD)
def test_claims_hold_on_curves_that_show_them(name: str) -> None:
    values = curves(name)
    claim = claims.check_curves(name, TIMES, values | {"admm-tuned": rising(0.05)})
    assert claim.printed is True
    assert claim.tuned is False
    assert claim.record()["printed"] == "holds"
    assert claim.record()["tuned"] == "not reproduced"
    del values["admm"]
    assert claims.check_curves(name, TIMES, values | {"admm-tuned": curves(name)["admm"]}).printed is None


@pytest.mark.parametrize(
    ("name", "changes", "wrong"),
    [
        ("fig1a", {"sgd": 0.5}, "sgd fails"),
        ("fig1a", {"rsa": 0.899}, "rsa close to ideal"),
        ("fig1a", {"median": 0.909}, "median a little worse"),
        ("fig1a", {"median": 0.5}, "median a little worse"),
        ("fig1b", {"sgd": 0.70}, "sgd worst"),
        ("fig1b", {"rsa": (0.70, 100)}, "admm faster than rsa"),
        ("fig2a", {"geometric_median": 0.871, "median": 0.87}, "geometric-median better than median"),
        ("fig2b", {"median": 0.71}, "admm better than median"),
        ("fig4a", {"admm": 0.909}, "admm very similar to ideal"),
        ("fig4b", {"ideal": 0.721}, "admm best"),
        ("fig3a", {"rsa": 0.74}, "admm better than rsa"),
        ("fig3a", {"median": 0.4}, "median fails"),
        ("fig3b", {"rsa": 0.5}, "rsa works"),
        ("fig3b", {"admm": (0.56, 600)}, "admm faster than rsa"),
    ],
)
def test_a_claim_that_does_not_hold_says_which_part(name: str, changes: dict[str, Any], wrong: str) -> None:
    claim = claims.check_curves(name, TIMES, curves(name, **changes))
    assert claim.printed is False
    assert (wrong, False) in claim.parts["printed"]
    assert wrong in " ".join(claims.claims_table([claim]).split())


def test_time_to_a_level_is_linear_between_evaluations() -> None:
    words = claims.Curves(TIMES, {"ideal": rising(1.0), "slow": rising(1.0, 1000), "never": rising(0.5)})
    assert words.time("slow") == pytest.approx(950)
    assert words.time("never") == np.inf
    at_once = claims.Curves(TIMES, {"ideal": np.ones((1, len(TIMES)))})
    assert at_once.time("ideal") == 0


def test_the_sweep() -> None:
    lams = (0.1, 0.001, 1.0)
    assert claims.check_sweep("fig5a", [0.9, 0.8, 0.85], lams).tuned is True
    assert claims.check_sweep("fig5a", [0.9, 0.89, 0.85], lams).tuned is False
    assert claims.check_sweep("fig5a", [0.9, 0.8, 0.89], lams).tuned is False


def test_the_example_claim() -> None:
    flat = {(0, "admm"): 0.375, (0, "rsa"): 0.25, (1, "admm"): 0.5, (1, "rsa"): 0.5}
    values = {key: np.array([0.0, limit, limit]) for key, limit in flat.items()}
    values[0, "rsa"] = np.array([0.0, 0.5, 0.25])
    assert claims.check_example(values).printed is True
    assert claims.check_example(values | {(1, "rsa"): np.array([0.0, 0.502])}).printed is False
    assert claims.check_example(values | {(0, "rsa"): np.array([0.25, 0.25])}).printed is False


def test_the_table_fits_80_columns() -> None:
    found = [claims.check_curves(name, TIMES, curves(name, admm=0.2)) for name in GOOD]
    found.append(claims.check_sweep("fig5a", [0.9, 0.8, 0.85], (0.1, 0.001, 1.0)))
    table = claims.claims_table(found)
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("not reproduced") == len(GOOD)
    assert "never" in claims.claims_table(found, markdown=True)
