"""float16 and bfloat16: computed in float32, returned in the type that came."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import aggregate, aggregators, kernels
from support.arrays import same_bits
from support.rules import ALL_RULES, settings_for

Array = npt.NDArray[Any]

LARGEST = 65504.0
every_rule = pytest.mark.parametrize("rule", ALL_RULES)


def call(rule: str, X: Any, **more: Any) -> Any:
    settings = settings_for(rule, len(X), f=2)
    assert settings is not None
    return getattr(aggregate, rule)(X, **settings, **more)


def rows() -> Array:
    return np.random.default_rng(3).normal(1.0, 0.3, (11, 7)).astype(np.float16)


@every_rule
def test_arrays(rule: str) -> None:
    X = rows()
    computed = call(rule, X.astype(np.float32))
    expected = computed.astype(np.float16)
    for given in (X, list(X), X.astype(">f2"), np.asfortranarray(X)):
        assert same_bits(call(rule, given), expected)
    got, info = call(rule, X, return_info=True)
    assert same_bits(got, expected)
    assert isinstance(info, aggregate.Info)
    out = np.empty(computed.shape, np.float32)  # not rounded: the type of the computation
    assert call(rule, X, out=out) is out
    assert same_bits(out, computed)
    with pytest.raises(TypeError, match="out: expected dtype float32, got float16"):
        call(rule, X, out=expected)
    assert call(rule, [X[0], *X[1:].astype(np.float32)]).dtype == np.float32


@every_rule
def test_rows_within_the_range_have_results_within_it(rule: str) -> None:
    for X in (np.full((11, 3), LARGEST), np.tile([[LARGEST], [-LARGEST]], (6, 3))[:11]):
        assert np.isfinite(call(rule, X.astype(np.float16))).all()


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
@every_rule
def test_tensors(rule: str, name: str, torch: Any) -> None:
    half = getattr(torch, name)
    X = torch.from_numpy(rows().astype(np.float32)).to(half)
    expected = call(rule, X.float()).to(half)
    for given in (X, list(X), X.t().contiguous().t()):
        got = call(rule, given)
        assert got.dtype == half
        assert torch.equal(got, expected)
    other = torch.bfloat16 if half is torch.float16 else torch.float16
    assert call(rule, [X[0].to(other), *X[1:]]).dtype == torch.float32


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_tensors_of_a_half_type_are_refused_as_others_are(name: str, torch: Any) -> None:
    X = torch.ones(5, 2, dtype=getattr(torch, name))
    with pytest.raises(ValueError, match=r"X: the tensor requires grad; pass X.detach\(\)"):
        aggregate.median(X.requires_grad_())
    with pytest.raises(ValueError, match="X: expected an array in host memory"):
        aggregate.median(X.detach().to("meta"))


def test_a_chain_rounds_once() -> None:
    X = np.random.default_rng(3).normal(1.0, 0.3, (11, 100)).astype(np.float16)
    chain = aggregators.make("nnm+trimmed-mean", f=2)
    whole = chain(X.astype(np.float32))
    twice = aggregate.trimmed_mean(aggregate.nearest_neighbor_mixing(X, f=2), f=2)
    assert not same_bits(twice, whole.astype(np.float16))
    assert same_bits(chain(X), whole.astype(np.float16))
    got, info = chain(X, return_info=True)
    assert same_bits(got, whole.astype(np.float16))
    assert isinstance(info, aggregate.Info)
    out = np.empty(100, np.float32)
    assert chain(X, out=out) is out
    assert same_bits(out, whole)


def test_kernels() -> None:
    x = rows()
    models, gradients, master = x[:4], x[4:8], x[8]
    settings = {"alpha": 0.1, "lam": 0.5}
    wide = [array.astype(np.float32) for array in (models, gradients, master)]
    computed = kernels.rsa_worker_step(*wide, **settings)
    assert same_bits(kernels.rsa_worker_step(models, gradients, master, **settings), computed.astype(np.float16))
    assert same_bits(kernels.rsa_worker_step(models, gradients, wide[2], **settings), computed)
    # Beyond the range is an infinity, not a number that was cut.
    far = kernels.rsa_worker_step(models * 0, np.full_like(models, LARGEST), master, alpha=2.0, lam=0.5)
    assert np.isneginf(far).all()
    W = x[:6].reshape(2, 3, 7)
    gradient = kernels.softmax_gradient(W, x[:, :6], np.arange(11) % 3)
    expected = kernels.softmax_gradient(W.astype(np.float32), x[:, :6].astype(np.float32), np.arange(11) % 3)
    assert same_bits(gradient, expected.astype(np.float16))
    assert kernels.softmax_predict(W[0], x[:, :6]).dtype == np.int64
    assert kernels.softmax_loss(W, x[:, :6], np.arange(11) % 3).dtype == np.float64


def test_layers() -> None:
    x = rows()
    X, shapes = byzadmm.flatten([[x[:2], x[2]], [x[3:5], x[5]]])
    assert X.dtype == np.float16
    assert same_bits(X[1], np.concatenate([x[3:5].ravel(), x[5]]))
    assert np.shares_memory(byzadmm.unflatten(X, shapes)[0][0], X)
    assert byzadmm.flatten([[x[:2], x[2].astype(np.float32)]])[0].dtype == np.float32


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_layers_of_tensors(name: str, torch: Any) -> None:
    half = getattr(torch, name)
    x = torch.from_numpy(rows().astype(np.float32)).to(half)
    X, shapes = byzadmm.flatten([[x[:2], x[2]], [x[3:5], x[5]]])
    assert X.dtype == half
    assert torch.equal(X[1], torch.cat([x[3:5].ravel(), x[5]]))
    layer = byzadmm.unflatten(X[0], shapes)[0]
    assert torch.equal(layer, x[:2])
    layer[0, 0] = 9.0  # a view
    assert X[0, 0] == 9.0
    assert byzadmm.flatten([[x, torch.tensor(1001)]])[0][0, -1] == 1001  # in float32, as no half type would keep it
