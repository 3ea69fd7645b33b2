"""What the native module promises (``cpp/bindings``). It checks memory only; meaning is checked in Python."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]
_Rows = _Array | list[_Array]
_Keep = Sequence[int] | None
_Weights = NDArray[np.float64] | None
_Exponents = NDArray[np.int32] | None
_Stream = tuple[int, int, int]

#: Names of the enumerations of cpp/include/byzadmm/choices.hpp, in their order.
EVEN: tuple[str, ...]
ATTACKS: tuple[str, ...]
PURPOSES: tuple[str, ...]
__version__: str
isa: str
vector_bytes: int
openmp: bool

def use(table: object) -> None: ...
def max_threads() -> int: ...

class Cancellation:
    def cancel(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

# bind_rules.cpp
def mean(X: _Rows, out: _Array, weights: _Weights, keep: _Keep, threads: int) -> bool: ...
def median(X: _Rows, out: _Array, even: str, keep: _Keep, threads: int) -> bool: ...
def trimmed_mean(X: _Rows, out: _Array, f: int, keep: _Keep, threads: int) -> bool: ...
def geometric_median(
    X: _Rows, out: _Array, weights: _Weights, tol: float, max_iter: int, keep: _Keep, threads: int
) -> tuple[int, bool, float, NDArray[np.float64]]: ...
def nonfinite_rows(X: _Rows, threads: int) -> NDArray[np.bool_]: ...
def mark_nan_columns(X: _Rows, out: _Array, threads: int) -> None: ...

def sign_majority(X: _Rows, out: _Array, keep: _Keep, threads: int) -> bool: ...
def closest_mean(X: _Rows, out: _Array, center: _Array, k: int, keep: _Keep, threads: int) -> None: ...
def weighted_median(
    X: _Rows, out: _Array, weights: NDArray[np.float64], even: str, keep: _Keep, threads: int
) -> None: ...
def weighted_trimmed_mean(
    X: _Rows, out: _Array, weights: NDArray[np.float64], cut: float, keep: _Keep, threads: int
) -> None: ...

def squared_distances(X: _Rows, threads: int) -> tuple[NDArray[np.float64], _Exponents, NDArray[np.bool_]]: ...
def krum_scores(
    squared: NDArray[np.float64], exponent: _Exponents, neighbors: int, weights: _Weights, mass: float, threads: int
) -> tuple[NDArray[np.float64], _Exponents]: ...
def bulyan_choice(
    squared: NDArray[np.float64], exponent: _Exponents, f: int, count: int
) -> NDArray[np.int64]: ...
def projections(squared: NDArray[np.float64], exponent: _Exponents) -> tuple[NDArray[np.float64], int]: ...
def least_diameter(squared: NDArray[np.float64], exponent: _Exponents, f: int) -> NDArray[np.int64] | None: ...
def least_variance(squared: NDArray[np.float64], exponent: _Exponents, f: int) -> NDArray[np.int64]: ...
def filtered_weights(
    squared: NDArray[np.float64], exponent: _Exponents, f: int, crumb: float
) -> tuple[NDArray[np.float64], int]: ...
def medoid(
    X: _Rows,
    squared: NDArray[np.float64],
    exponent: _Exponents,
    weights: _Weights,
    keep: _Keep,
    threads: int,
) -> tuple[int, NDArray[np.float64]]: ...
def neighbor_means(X: _Rows, out: _Array, neighbor: NDArray[np.int64], keep: _Keep, threads: int) -> None: ...
def centered_clip(
    X: _Rows, out: _Array, tau: float, n_iter: int, keep: _Keep, threads: int
) -> NDArray[np.float64] | None: ...
def lengths(
    X: _Rows, center: _Array | None, threads: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]: ...
def add_to_sums(
    X: _Rows, workers: _Array, factor: float, sums: _Array, center: int, threads: int
) -> NDArray[np.float64]: ...
def clip(
    X: _Rows, out: _Array, max_norm: float, exponent: int, keep: _Keep, threads: int
) -> tuple[NDArray[np.float64], bool]: ...
def group_means(X: _Rows, out: _Array, order: NDArray[np.int64], size: int, threads: int) -> bool: ...

# bind_coding.cpp
def weighted_sum(X: _Rows, out: _Array, weights: NDArray[np.float64], total: float, threads: int) -> None: ...
def look_at_rows(
    X: _Rows, inner: NDArray[np.float64], outer: NDArray[np.float64], scale: float, threads: int
) -> NDArray[np.float64]: ...
def majority_rows(X: _Rows, first: NDArray[np.int64], votes: int, threads: int) -> NDArray[np.int64]: ...

# bind_kernels.cpp
def admm_worker_step(
    x: _Array, g: _Array, eta: _Array, eta_prev: _Array, out: _Array, alpha: float, threads: int
) -> None: ...
def admm_dual_step(
    eta: _Array, x: _Array, x0: _Array, out: _Array, beta: float, lam: float, threads: int
) -> None: ...
def admm_master_step(
    x0: _Array, eta: _Array, eta_prev: _Array, out: _Array, alpha: float, rho: float, threads: int
) -> None: ...
def admm_answer(
    x: _Array,
    g: _Array,
    eta: _Array,
    eta_prev: _Array,
    x0: _Array,
    alpha: float,
    beta: float,
    lam: float,
    threads: int,
) -> None: ...
def admm_hear(message: _Array, eta: _Array, eta_prev: _Array, total: _Array, change: _Array) -> None: ...
def admm_master_step_of_sums(x0: _Array, total: _Array, change: _Array, alpha: float, rho: float) -> None: ...
def rsa_worker_step(x: _Array, g: _Array, x0: _Array, out: _Array, alpha: float, lam: float, threads: int) -> None: ...
def rsa_master_step(
    x0: _Array, messages: _Array, out: _Array, alpha: float, lam: float, rho: float, threads: int
) -> None: ...

def distance(x: _Array, y: _Array, take: bool = False) -> float: ...
def add_to_mean(mean: _Array, message: _Array, n: int) -> None: ...
def zeno_direction(
    message: _Array, own: NDArray[np.float64], out: _Array, alpha: float, rho: float, eps: float
) -> bool: ...
def momentum_step(momentum: _Array, g: _Array, beta: float, threads: int) -> None: ...
def sgd_step(x0: _Array, direction: _Array, out: _Array, alpha: float, rho: float, threads: int) -> None: ...
def softmax_gradient(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def softmax_loss(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, scale: float, bias: bool, threads: int
) -> NDArray[np.float64]: ...
def softmax_hessian_product(
    W: _Array, V: _Array, X: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def softmax_predict(W: _Array, X: _Array, out: _Array, scale: float, bias: bool, threads: int) -> None: ...
def logistic_gradient(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def logistic_loss(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, scale: float, bias: bool, threads: int
) -> NDArray[np.float64]: ...
def logistic_hessian_product(
    W: _Array, V: _Array, X: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def least_squares_gradient(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def least_squares_loss(
    W: _Array, X: _Array, y: _Array, idx: _Array | None, scale: float, bias: bool, threads: int
) -> NDArray[np.float64]: ...
def least_squares_hessian_product(
    W: _Array, V: _Array, X: _Array, idx: _Array | None, out: _Array, scale: float, bias: bool, threads: int
) -> None: ...
def linear_predict(W: _Array, X: _Array, out: _Array, scale: float, bias: bool, threads: int) -> None: ...

def philox_normal(out: _Array, std: float, seed: int, stream: _Stream) -> None: ...
def philox_integers(out: _Array, high: int, seed: int, stream: _Stream) -> None: ...

# bind_decentralized.cpp
def node_steps(
    base: _Array,
    x: _Array,
    g: _Array,
    pull: NDArray[np.float64] | None,
    alpha: NDArray[np.float64],
    rho: NDArray[np.float64],
    out: _Array,
    threads: int,
) -> None: ...
def edge_dual_steps(
    x: _Array,
    table: list[_Array],
    index: NDArray[np.int64],
    offset: NDArray[np.int64],
    dictated: NDArray[np.bool_] | None,
    e: _Array,
    pull: NDArray[np.float64],
    beta: float,
    lam: float,
    threads: int,
) -> None: ...
def sign_pulls(
    x: _Array,
    table: list[_Array],
    index: NDArray[np.int64],
    offset: NDArray[np.int64],
    pull: NDArray[np.float64],
    lam: float,
    threads: int,
) -> None: ...
def scissor_neighbors(
    own: _Array,
    table: list[_Array],
    index: NDArray[np.int64],
    offset: NDArray[np.int64],
    weights: NDArray[np.float64],
    own_weights: NDArray[np.float64],
    f: NDArray[np.int64],
    out: _Array,
    threads: int,
) -> None: ...
def trim_neighbors(
    own: _Array,
    table: list[_Array],
    index: NDArray[np.int64],
    offset: NDArray[np.int64],
    f: NDArray[np.int64],
    out: _Array,
    threads: int,
) -> None: ...
def subsequence_neighbors(
    own: _Array,
    table: list[_Array],
    index: NDArray[np.int64],
    offset: NDArray[np.int64],
    f: NDArray[np.int64],
    out: _Array,
    threads: int,
) -> None: ...

# bind_training.cpp
_State = dict[str, _Array]

class Loss:
    @staticmethod
    def softmax(
        X: _Array,
        y: _Array,
        flipped: _Array,
        part: _Array,
        offset: _Array,
        poisoned: _Array,
        outputs: int,
        scale: float,
        batch: int,
        seed: int,
        single: bool,
    ) -> Loss: ...
    @staticmethod
    def logistic(
        X: _Array,
        y: _Array,
        flipped: _Array,
        part: _Array,
        offset: _Array,
        poisoned: _Array,
        outputs: int,
        scale: float,
        batch: int,
        seed: int,
        single: bool,
    ) -> Loss: ...
    @staticmethod
    def least_squares(
        X: _Array,
        y: _Array,
        flipped: _Array,
        part: _Array,
        offset: _Array,
        poisoned: _Array,
        outputs: int,
        scale: float,
        batch: int,
        seed: int,
        single: bool,
    ) -> Loss: ...
    @staticmethod
    def quadratic(a: _Array, b: _Array, noise: float, seed: int) -> Loss: ...
    @property
    def workers(self) -> int: ...
    @property
    def dim(self) -> int: ...
    def gradients(self, models: _Array, workers: list[int], k: int, out: _Array, threads: int) -> None: ...

class Attack:
    def __init__(self, kind: str, value: float = 0.0, worker: int = 0, shift: float = 0.0) -> None: ...
    @property
    def kind(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def worker(self) -> int: ...
    @property
    def shift(self) -> float: ...

def attack_messages(
    attack: Attack,
    honest: _Array,
    byzantine: list[int],
    x0: _Array,
    k: int,
    seed: int,
    out: _Array,
    threads: int,
    others: list[int] | None = None,
) -> None: ...
def take_messages(
    envelopes: list[tuple[_Array, int, bytes, int, int]],
    header_bytes: int,
    bound: float,
    out: _Array,
    present: _Array,
    good: _Array,
) -> list[bool]: ...
def acceptable(messages: _Array, bound: float) -> list[bool]: ...
# bind_loops.cpp
class Roles:
    def __init__(
        self, *, byzantine: list[int], attack: Attack, seed: int, eliminated: _Array, threads: int
    ) -> None: ...

class Stage:
    def __init__(
        self,
        kind: str,
        count: int = 0,
        *,
        f: int = 0,
        value: float = 0.0,
        weights: _Array | None = None,
        index: list[int] = ...,
        drawn: bool = False,
        message: str = "",
    ) -> None: ...
    @property
    def kind(self) -> str: ...

class Plan:
    def __init__(self, stages: list[Stage], draw: Callable[[int], list[_Array]] | None = None) -> None: ...

def run_admm(
    loss: Loss,
    state: _State,
    roles: Roles,
    *,
    lam: float,
    beta: float,
    rho: float,
    master_steps: _Array,
    worker_steps: _Array,
    first: int,
) -> None: ...
def run_rsa(
    loss: Loss,
    state: _State,
    roles: Roles,
    *,
    lam: float,
    rho: float,
    master_steps: _Array,
    worker_steps: _Array,
    first: int,
) -> None: ...
def run_sgd(
    loss: Loss,
    state: _State,
    roles: Roles,
    *,
    plan: Callable[[list[int], int], Plan | None],
    rho: float,
    momentum: float,
    ideal: bool,
    steps: _Array,
    first: int,
) -> None: ...
