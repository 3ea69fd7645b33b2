"""Twin of ``decentralized.hpp``: steps of the nodes of a graph, duals of its links, and the three-variable form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float, narrow

__all__ = ["ThreeVariableDADMM", "edge_dual_steps", "node_steps", "sign_pulls", "subsequence_neighbors"]


def node_steps(
    base: npt.ArrayLike,
    x: npt.ArrayLike,
    g: npt.ArrayLike,
    pull: npt.ArrayLike,
    *,
    alpha: npt.ArrayLike,
    rho: npt.ArrayLike,
) -> Array:
    """Step of every node.

    ``base_i - alpha_i ( g_i + rho_i x_i + pull_i )``.

    Parameters
    ----------
    base, x, g, pull : (m, d)
        Where the step starts, models, gradients, and what pulls each node to its neighbors.
    alpha, rho : (m,)
        Steps and regularization of the nodes.

    Returns
    -------
    array (m, d)
        Of the dtype of ``x``.

    Examples
    --------
    >>> node_steps([[1.0]], [[1.0]], [[2.0]], [[0.5]], alpha=[0.5], rho=[1.0])
    array([[-0.75]])
    """
    x_ = as_float(x)
    a, r = (np.asarray(each, np.float64)[:, None] for each in (alpha, rho))
    with np.errstate(invalid="ignore", over="ignore"):
        new = np.asarray(base, np.float64) - a * (np.asarray(g, np.float64) + (r * _wide(x_) + _wide(pull)))
    return narrow(new, x_.dtype)


def edge_dual_steps(
    x: npt.ArrayLike,
    heard: Sequence[Sequence[Array | None]],
    e: Sequence[Sequence[Array]],
    *,
    beta: float,
    lam: float,
) -> tuple[list[list[Array]], Array]:
    """Duals of the links of every node, and what pulls it.

    ``e_ij <- clip( e_ij + beta/2 (x_i - u_j), lam )``, ``pull_i = sum_j ( 2 e_ij - e_ij before )``.

    Parameters
    ----------
    x : (m, d)
        Models.
    heard : for each node, a vector (d,) for each of its links
        None: nothing came, and the dual stays.
    e : the same
        Duals.
    beta, lam : float
        Penalty parameter; weight of the TV norm.

    Returns
    -------
    duals of the shape of ``e``, and (m, d)

    Examples
    --------
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> edge_dual_steps([[1.0], [0.0]], [[zero], [one]], [[zero], [zero]], beta=1.0, lam=0.3)[0]
    [[array([0.3])], [array([-0.3])]]
    """
    x_ = as_float(x)
    new, pull = [], np.zeros(x_.shape)
    for i, (rows, duals) in enumerate(zip(heard, e, strict=True)):
        mine = []
        for u, before in zip(rows, duals, strict=True):
            with np.errstate(over="ignore"):
                moved = before if u is None else np.clip(before + 0.5 * beta * (x_[i] - u), -lam, lam)
            mine.append(narrow(moved, x_.dtype))
            pull[i] += 2.0 * _wide(mine[-1]) - _wide(before)
        new.append(mine)
    return new, pull


def sign_pulls(x: npt.ArrayLike, heard: Sequence[Sequence[Array | None]], *, lam: float) -> Array:
    """``lam sum_j sgn(x_i - u_j)`` over what node i heard.

    Parameters
    ----------
    x, heard
        As in :func:`edge_dual_steps`.
    lam : float
        Weight of the TV norm.

    Returns
    -------
    array (m, d)

    Examples
    --------
    >>> sign_pulls([[1.0], [0.0]], [[np.zeros(1)], [np.ones(1)]], lam=0.5)
    array([[ 0.5],
           [-0.5]])
    """
    x_ = as_float(x)
    pull = np.zeros(x_.shape)
    for i, rows in enumerate(heard):
        for u in rows:
            if u is not None:
                pull[i] += (x_[i] > u) * 1.0 - (x_[i] < u) * 1.0
    return lam * pull


def subsequence_neighbors(own: npt.ArrayLike, heard: Sequence[Sequence[Array]], f: Sequence[int]) -> Array:
    """W-MSR at every node: per coordinate, the mean of own and neighbors' values without some of the latter.

    Of those larger than the own one without the ``f_i`` largest, of those smaller without the ``f_i`` smallest.

    Parameters
    ----------
    own : (m, d)
    heard : for each node, the vectors (d,) of its neighbors
    f : for each node, a number; where it is negative the own vector is the result

    Returns
    -------
    array (m, d)
        Of the dtype of ``own``.

    Examples
    --------
    >>> subsequence_neighbors([[5.0]], [[np.array([v]) for v in (1.0, 4.0, 6.0, 100.0, 7.0)]], [1])
    array([[5.5]])
    """
    own_ = as_float(own)
    out: Array = own_.copy()
    for i, (rows, b) in enumerate(zip(heard, f, strict=True)):
        if b < 0 or not len(rows):
            continue
        values, middle = np.sort(np.stack(rows).astype(np.float64), axis=0), own_[i].astype(np.float64)
        rank = np.arange(len(rows))[:, None]
        kept = ~((rank < b) & (values < middle)) & ~((rank >= len(rows) - b) & (values > middle))
        count = 1 + kept.sum(axis=0)
        mean = middle / count + np.where(kept, values / count, 0.0).sum(axis=0)
        # Rounding must not take a mean out of the range of its values.
        every = np.where(kept, values, middle)
        out[i] = np.clip(mean, np.minimum(every.min(axis=0), middle), np.maximum(every.max(axis=0), middle))
    return out


class ThreeVariableDADMM:
    """Stochastic ADMM on a graph before its simplification: two copies and two duals for every edge.

    For each edge {i, j}, ``z_ij = x_i`` and ``z_ji = x_j`` with duals ``y_ij``, ``y_ji`` and the term
    ``lam ||z_ij - z_ji||_1``:

    ``x_i  <- x_i - a_i ( g_i + rho x_i + sum_j ( beta x_i - beta z_ij - y_ij ) )``,
    ``z    <- argmin`` of the augmented Lagrangian, edge by edge,
    ``y_ij += beta ( z_ij - x_i )``.

    Parameters
    ----------
    x : (m, d)
        Models at the start.
    edges : (E, 2) integers
    beta, lam : float

    Examples
    --------
    >>> admm = ThreeVariableDADMM([[1.0], [0.0]], [(0, 1)], beta=1.0, lam=0.5)
    >>> admm.step([[0.0], [0.0]], alpha=0.5)
    >>> admm.z.tolist()
    [[[0.5]], [[0.5]]]
    """

    def __init__(self, x: npt.ArrayLike, edges: npt.ArrayLike, *, beta: float, lam: float) -> None:
        self.beta, self.lam = beta, lam
        self.x = np.array(x, np.float64)
        self.ends = np.asarray(edges, np.int64).T
        self.z = self.x[self.ends].copy()  # (2, E, d): the copies at either end
        self.y = np.zeros_like(self.z)

    def step(self, g: npt.ArrayLike, *, alpha: npt.ArrayLike, rho: float = 0.0) -> None:
        """Advance one iteration with the nodes' gradients ``g`` (m, d)."""
        beta = self.beta
        slope = _wide(g) + rho * self.x
        for end in (0, 1):
            pull = beta * self.x[self.ends[end]] - beta * self.z[end] - self.y[end]
            np.add.at(slope, self.ends[end], pull)
        self.x = self.x - np.reshape(alpha, (-1, 1)) * slope
        one, other = (self.x[self.ends[end]] - self.y[end] / beta for end in (0, 1))
        shift = np.clip(0.5 * (other - one), -self.lam / beta, self.lam / beta)
        self.z = np.stack([one + shift, other - shift])
        self.y = self.y + beta * (self.z - self.x[self.ends])


def _wide(values: npt.ArrayLike) -> Array:
    return np.asarray(values, np.float64)
