"""Draw docs/bias.svg: the bias of ADMM and RSA under sign-flipping, and the speed of the medians, measured.

The predictions are ``theory.sign_flip_solution`` and ``theory.sign_flip_speed``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from byzadmm import ADMM, RSA, SGD, losses, steps, theory  # noqa: E402
from byzadmm.reference import ndtri  # noqa: E402
from support.quadratics import flipped, penalized, shared_quadratic  # noqa: E402

__all__ = ["bias_figure"]

# Okabe and Ito's palette, told apart with every kind of colour vision; dashes repeat the distinction in grey.
BLACK, ORANGE, SKY, GREEN, BLUE = "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2"
M, SCALES, RULES = 20, (-1.0, -3.0, -10.0), ("geometric_median", "median")
RHO = 0.1
#: Centers: four coordinates on which the workers nearly agree, and one on which they do not.
CENTERS, SPREADS = np.array([1.0, -0.6, 0.3, -0.1, 1.0]), np.array([0.01, 0.01, 0.01, 0.01, 0.4])
WIDE = 4
LAMBDAS = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])
#: The noisy problem of the medians: center, noise, dimension, step.
B, NOISE, DIM, STEP = 0.3, 1.0, 2000, 0.04

Array = NDArray[np.float64]


def row(what: str, predicted: str, measured: str, difference: str = "") -> None:
    print(f"{what:<45} {predicted:>9} {measured:>11} {difference:>11}")


def unequal_workers() -> tuple[Array, Array]:
    """Curvatures in [0.95, 1.05], and centers: of normal deviation where they differ much, uniform where little."""
    rng = np.random.default_rng(27)
    a = rng.uniform(0.95, 1.05, (M, CENTERS.size))
    shape = np.where(np.arange(CENTERS.size) == WIDE, rng.standard_normal(a.shape), rng.uniform(-1, 1, a.shape))
    return a, CENTERS + SPREADS * shape


def limits() -> dict[tuple[int, str, float], Array]:
    """Measured ``x0`` by number of Byzantine workers, algorithm and scale, one row per lam; print the differences."""
    a, b = unequal_workers()
    found = {}
    row("limit of x0 (lam 0.3, strength 3)", "predicted", "measured", "difference,")
    row("", "", "", "largest")
    for q in (8, 4):
        want = np.array([predicted(lam, q) for lam in LAMBDAS])
        for name in ("ADMM", "RSA"):
            for scale in SCALES:
                runs = []
                for lam in LAMBDAS:
                    algorithm, iterations, _ = penalized(lam)[name]
                    loss = losses.Quadratic(a, b)
                    runs.append(flipped(algorithm, loss, q=q, scale=scale, rho=RHO, iterations=iterations).x0)
                found[q, name, scale] = np.array(runs)
            gaps = np.abs([found[q, name, scale] - want for scale in SCALES]).max((0, 1))
            for j, center in enumerate(CENTERS):
                label = f"q = {q}, {name:<4} b = {center:+.1f}" + (", workers differ" if j == WIDE else "")
                row(label, f"{want[2, j]:+.4f}", f"{found[q, name, -3.0][2, j]:+.4f}", f"{gaps[j]:.1e}")
    return found


def predicted(lam: float, q: int) -> Array:
    a, b = unequal_workers()
    return theory.sign_flip_solution(a[: M - q], b[: M - q], lam=lam, n_byzantine=q, rho=RHO)


def noisy_limits(q: int = 8, lam: float = 0.02, step: float = 0.3, dim: int = 400) -> None:
    """Print the shift where noise of the workers, not lam, is what keeps them from the master."""
    r, b = M - q, 3.0
    spread = NOISE * (step / (2 - step)) ** 0.5
    want = q / r * lam - spread * float(ndtri((r - q) / (2 * r)))
    master = steps.constant(0.1 * step / (M * lam))
    worker = steps.constant(step)
    for name, algorithm in {
        "RSA": RSA(lam=lam, master_step=master, worker_step=worker),
        "ADMM": ADMM(lam=lam, beta=10.0, master_step=master, worker_step=worker),
    }.items():
        run = flipped(
            algorithm,
            shared_quadratic(b, dim=dim, noise=NOISE),
            q=q,
            scale=-3.0,
            iterations=1200,
            eval_every=30,
            x0_init=np.full(dim, b),
            x_init=np.full((M, dim), b),
        )
        assert run.trajectory is not None
        x0, x = (run.trajectory[key][run.iterations >= 600] for key in ("x0", "x"))
        shift, below = b - x0.mean(), (x[:, :r] < x0[:, None]).mean()
        row(f"shift under noise, {name}, lam {lam}", f"{want:.4f}", f"{shift:.4f}", f"{abs(shift - want):.4f}")
        want_below = (r - q) / (2 * r)
        row("  share of regular copies below x0", f"{want_below:.4f}", f"{below:.4f}", f"{abs(below - want_below):.4f}")


def speed(rule: str, q: int, scale: float, *, m: int = M, dim: int = DIM, b: float = 0.2, count: int = 50) -> float:
    """Measured factor of the first steps; half the difference of runs to b and to -b with the same noise."""
    ends = [
        flipped(
            SGD(rule=rule, step=steps.constant(STEP)),
            shared_quadratic(center, dim=dim, noise=NOISE, m=m),
            q=q,
            scale=scale,
            iterations=count,
        ).x0.mean()
        for center in (b, -b)
    ]
    left = 1 - (ends[0] - ends[1]) / (2 * b)
    return float((1 - left ** (1 / count)) / STEP)


def distances(rule: str, scale: float, *, q: int = 8, iterations: int = 700) -> tuple[Array, Array, float]:
    """Iterations, mean of ``(b - x0)/b`` over the coordinates, standard error of its mean over the last fifth."""
    run = flipped(
        SGD(rule=rule, step=steps.constant(STEP)),
        shared_quadratic(B, dim=DIM, noise=NOISE),
        q=q,
        scale=scale,
        iterations=iterations,
        eval_every=10,
    )
    assert run.trajectory is not None
    rest = 1 - run.trajectory["x0"] / B
    error = rest[run.iterations > 0.8 * iterations].mean(0).std() / DIM**0.5
    return run.iterations.astype(float), rest.mean(1), float(error)


def unequal_medians(q: int = 8, spread: float = 0.4) -> None:
    """Print how far the medians end from the mean of the centers if workers differ and there is no noise."""
    b = 1 + spread * np.random.default_rng(1).standard_normal((M, 400))
    optimum = b[: M - q].mean(0)
    for rule in RULES:
        sizes = []
        for part, attackers in ((b, q), (b[: M - q], 0)):
            loss = losses.Quadratic(np.ones_like(part), part)
            algorithm = SGD(rule=rule, step=steps.inv_linear(0.02, 5))
            run = flipped(algorithm, loss, q=attackers, scale=-3.0, iterations=2000)
            sizes.append(np.sqrt(np.mean((run.x0 - optimum) ** 2)) / spread)
        row(f"{rule}: rms distance/spread", "-", f"{sizes[0]:.3f}", f"{sizes[1]:.3f}")


def bias_figure(path: Path) -> None:
    """Write the figure to ``path`` and print predictions and measurements."""
    mpl.use("Agg")
    mpl.rcParams |= {
        "svg.hashsalt": "bias",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.8), layout="constrained")

    found = limits()
    fine = np.linspace(0.05, 1.05, 201)
    for q, colour, dash in ((8, BLUE, "-"), (4, ORANGE, (0, (6, 2)))):
        lines = np.array([predicted(lam, q) for lam in fine])
        for j in range(CENTERS.size):
            style = ":" if j == WIDE else dash
            left.plot(fine, lines[:, j], linestyle=style, color=colour, linewidth=1.4, zorder=1)
        for name, marker in (("ADMM", "o"), ("RSA", "x")):
            for scale in SCALES:
                x0 = found[q, name, scale]
                faces = {"markerfacecolor": "none"} if marker == "o" else {}
                size = 6 if marker == "o" else 4
                left.plot(np.repeat(LAMBDAS, CENTERS.size), x0.ravel(), marker, color=colour, markersize=size, **faces)
    handles = [
        mpl.lines.Line2D([], [], color=BLUE, label="predicted, q = 8"),
        mpl.lines.Line2D([], [], color=ORANGE, linestyle=(0, (6, 2)), label="predicted, q = 4"),
        mpl.lines.Line2D([], [], color="0.4", linestyle=":", label="the same, workers differ"),
        mpl.lines.Line2D([], [], color="0.4", marker="o", linestyle="", markerfacecolor="none", label="ADMM"),
        mpl.lines.Line2D([], [], color="0.4", marker="x", linestyle="", markersize=4, label="RSA"),
    ]
    left.legend(handles=handles, frameon=False, fontsize=7.5, loc="lower right", ncols=2)
    left.set(
        title="ADMM and RSA, strengths 1, 3 and 10",
        xlabel="penalty lam",
        ylabel="limit of $x_0$, five coordinates",
        ylim=(-1.05, 1.1),
    )

    print()
    row("speed of the medians", "predicted", "measured", "difference")
    for rule in RULES:
        for q, scale in ((8, -0.5), (8, -1.0), (8, -3.0), (8, -10.0), (4, -3.0), (2, -3.0)):
            want, got = theory.sign_flip_speed(M - q, q, scale=scale), speed(rule, q, scale)
            row(f"{rule}, q = {q}, strength {-scale:g}", f"{want:.4f}", f"{got:.4f}", f"{got - want:+.4f}")
        want, got = theory.sign_flip_speed(120, 80, scale=-10.0), speed(rule, 80, -10.0, m=200, dim=1000)
        row(f"{rule}, 120 + 80, strength 10", f"{want:.4f}", f"{got:.4f}", f"{got - want:+.4f}")
    print()
    row("mean of (b - x0)/b, last fifth of 700 steps", "predicted", "measured", "std. error")
    for scale, colour in zip(SCALES, (GREEN, BLUE, SKY), strict=True):
        factor = theory.sign_flip_speed(M - 8, 8, scale=scale)
        for rule, dash in zip(RULES, ("-", (0, (4, 1.5))), strict=True):
            k, rest, error = distances(rule, scale)
            label = f"{rule.replace('_', ' ')}, strength {-scale:g}"
            right.plot(k, np.maximum(np.abs(rest), 1e-4), linestyle=dash, color=colour, linewidth=1.4, label=label)
            late = k > 0.8 * k[-1]
            want, got = np.mean((1 - STEP * factor) ** k[late]), rest[late].mean()
            row(f"{rule}, q = 8, strength {-scale:g}", f"{want:+.4f}", f"{got:+.4f}", f"{error:.4f}")
        name = f"predicted: {', '.join(f'{theory.sign_flip_speed(12, 8, scale=s):.2f}' for s in SCALES)}"
        right.plot(
            k, (1 - STEP * factor) ** k, ":", color=BLACK, linewidth=1.1, label=name if scale == SCALES[-1] else None
        )
    right.plot(k, (1 - STEP) ** k, linestyle="-.", color=ORANGE, linewidth=1.1, label="without attack: 1")
    right.set(
        title="medians of 12 + 8 noisy gradients",
        xlabel="iteration k",
        ylabel="distance to the optimum, mean of $(b - x_0)/b$",
        yscale="log",
        ylim=(2e-3, 1.3),
    )
    right.legend(frameon=False, fontsize=7, loc="upper right")
    for axis in (left, right):
        axis.grid(alpha=0.25)

    print()
    row("outside of consensus, q = 8, strength 3", "predicted", "measured", "difference")
    noisy_limits()
    print()
    row("workers differ, no noise, q = 8, strength 3", "predicted", "measured", "no attack")
    unequal_medians()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


if __name__ == "__main__":
    bias_figure(HERE / "bias.svg")
