"""Draw docs/theory.svg: the bound of Theorem thm:conv above the V^k of runs on noisy quadratics."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from byzadmm import theory  # noqa: E402
from support.quadratics import measure_quadratic, quadratic_problem  # noqa: E402

__all__ = ["theory_figure"]

# Okabe and Ito's palette, told apart with every kind of colour vision; dashes repeat the distinction in grey.
BLACK, ORANGE, SKY, GREEN, BLUE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2"
ITERATIONS = 10000


def heterogeneous(q: int) -> tuple[theory.Problem, NDArray[np.float64], NDArray[np.float64]]:
    a, b, rho = quadratic_problem()
    lam_0 = theory.lambda_0(theory.quadratic_solution(a, b, rho=rho)[1])
    worker: dict[str, Any] = {"mu": a.min(1), "L": a.max(1), "delta": [0.5] * 4}
    return (
        theory.Problem(
            **worker, mu_0=rho, L_0=rho, lam=1.05 * lam_0, beta=0.5, c=0.3, n_byzantine=q, dim=3, lam_0=lam_0
        ),
        a,
        b,
    )


def noise_decides() -> tuple[theory.Problem, NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.9, 1.1, (4, 3)), 5e-4 * rng.standard_normal((4, 3))
    worker: dict[str, Any] = {"mu": [0.9] * 4, "L": [1.1] * 4, "delta": [1.0] * 4}
    return theory.Problem(**worker, mu_0=1, L_0=1, lam=1e-3, beta=0.05, c=0.3, dim=3), a, b


def theory_figure(path: Path) -> None:
    """Write the figure to ``path`` and print the ratios bound/measured."""
    mpl.use("Agg")
    mpl.rcParams |= {
        "svg.hashsalt": "theory",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    import matplotlib.pyplot as plt

    panels = [
        ("no Byzantine worker (r = 4)", heterogeneous(0), {"constant": ("measured", BLUE, "-")}),
        (
            "two Byzantine workers (r = 4, q = 2)",
            heterogeneous(2),
            {
                "constant": ("measured, constant", BLUE, "-"),
                "oscillating": ("measured, oscillating", GREEN, "-."),
                "random": ("measured, random", SKY, ":"),
            },
        ),
        ("small penalty, noise decides (r = 4)", noise_decides(), {"constant": ("measured", BLUE, "-")}),
    ]
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, (title, (problem, a, b), attacks) in zip(axes, panels, strict=True):
        for attack, (label, colour, dash) in attacks.items():
            run = measure_quadratic(problem, a, b, rho=1.0, attack=attack, iterations=ITERATIONS)
            shown = np.unique(np.geomspace(1, ITERATIONS, 160).astype(int))
            axis.loglog(run.k[shown], run.v[shown], dash, color=colour, label=label, linewidth=1.6)
            con = theory.constants(problem, v_start=float(run.v[0]))
            closed, recursion = theory.bound(run.k, con), theory.bound(run.k, con, form="recursion")
            at = [10, 100, 1000, ITERATIONS]
            print(title, attack, "k_0 =", con.k_0, "radius =", f"{con.radius:.4g}")
            print("  V        ", " ".join(f"{x:.3g}" for x in run.v[at]))
            print(
                "  closed   ",
                " ".join(f"{x:.3g}" for x in (closed / run.v)[at]),
                "least",
                f"{(closed / run.v).min():.3g}",
            )
            ratio = (recursion / run.v)[1:]
            print("  recursion", " ".join(f"{x:.3g}" for x in (recursion / run.v)[at]), "least", f"{ratio.min():.3g}")
            slope = np.polyfit(np.log(run.k[1000:]), np.log(run.v[1000:]), 1)[0]
            print("  slope of log V against log k, k >= 1000:", f"{slope:.3f}")
        axis.loglog(
            run.k[shown], closed[shown], linestyle=(0, (8, 2)), color=BLACK, label="bound, closed form", linewidth=1.6
        )
        axis.loglog(
            run.k[shown], recursion[shown], linestyle=(0, (2, 1)), color=ORANGE, label="bound, recursion", linewidth=1.6
        )
        axis.set(title=title, xlabel="iteration k")
        axis.grid(alpha=0.25)
        axis.legend(frameon=False, fontsize=7.5, loc="best")
    axes[0].set_ylabel("$V^k$, mean over 200 seeds")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    theory_figure(HERE / "theory.svg")
