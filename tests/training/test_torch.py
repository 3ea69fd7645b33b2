"""PyTorch modules as losses: gradients against a plain loop, draws, evaluation, data of every kind, refusals."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from byzadmm import _core, datasets, losses, partition, reference  # noqa: E402
from byzadmm.torch import ModuleLoss, _choice, _evaluation, _on_samples  # noqa: E402
from support.arrays import Array, same_bits  # noqa: E402
from support.modules import MODULES, Tied, classes, dense, images, plain_gradients, tokens  # noqa: E402
from support.runs import M, small_data, small_parts  # noqa: E402

pytestmark = pytest.mark.torch

WORKERS = list(range(M))
LAYERS = _core.PURPOSES.index("layers")


def loss_of(name: str = "dense", **settings: Any) -> ModuleLoss:
    make, samples = MODULES[name]
    return ModuleLoss(make(), samples(), small_parts(), **{"batch_size": 4, "vectorize": False} | settings)


def somewhere(loss: ModuleLoss, dtype: str = "float32") -> Array:
    """A model per worker, not far from the start."""
    noise = np.random.default_rng(6).standard_normal((M, loss.dim))
    return np.asarray(loss.initial() + 0.1 * noise, dtype)


def all_gradients(loss: ModuleLoss, models: Array, k: int = 3, workers: list[int] = WORKERS) -> Array:
    out = np.full((len(workers), loss.dim), np.nan, models.dtype)
    loss.gradients(models, workers=workers, k=k, out=out)
    return out


# --- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_gradients_are_those_of_a_plain_loop(name: str, vectorize: bool, dtype: str) -> None:
    make, samples = MODULES[name]
    loss = loss_of(name, vectorize=vectorize, seed=8)
    models = somewhere(loss, dtype)
    kept = models.copy()
    tolerance = 2e-5 if dtype == "float32" else 1e-13
    for k in (1, 7):
        expected = plain_gradients(make(), samples(), small_parts(), models, k, seed=8)
        found = all_gradients(loss, models, k)
        if vectorize:
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance, err_msg=f"{name}, k={k}")
        else:
            assert same_bits(found, expected), f"{name}, k={k}"
        one = np.broadcast_to(models[0], models.shape).copy()
        assert same_bits(all_gradients(loss, models[0], k), all_gradients(loss, one, k)), f"{name}, one model"
    assert same_bits(models, kept)


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_a_gradient_does_not_depend_on_the_others(name: str, vectorize: bool) -> None:
    loss = loss_of(name, vectorize=vectorize)
    models = somewhere(loss)
    for at in (models, models[0]):
        whole = all_gradients(loss, at)
        for some in ([0], [M - 1], [2, 3], [0, 2, 4, 5], list(range(M - 1)), []):
            found = all_gradients(loss, at if at.ndim == 1 else at[some], workers=some)
            assert same_bits(found, whole[some]), f"{name}, workers {some} of models {at.shape}"
        alone = loss.gradient(models[0], worker=0, k=3)
        assert same_bits(alone, whole[0])


def test_gradients_are_slopes_of_the_value() -> None:
    loss = loss_of(batch_size=1)
    every = ModuleLoss(dense(), classes(), [[i] for i in range(120)], batch_size=1, vectorize=False)  # each its sample
    x = somewhere(loss, "float64")[0]
    out = np.empty((120, loss.dim))
    every.gradients(x, workers=range(120), k=1, out=out)
    for at in range(0, loss.dim, 7):
        step = 1e-5 * np.eye(loss.dim)[at]
        slope = (loss.value(x + step) - loss.value(x - step)) / 2e-5
        assert out.mean(axis=0)[at] == pytest.approx(slope, abs=1e-8), at


@pytest.mark.parametrize("vectorize", [False, True])
def test_a_linear_module_is_softmax_regression(vectorize: bool) -> None:
    """The same samples as ``losses.Softmax`` draws, with regular and with flipped labels; only the layout differs."""
    data, parts = small_data(), small_parts()
    module = ModuleLoss(nn.Linear(5, 3), data, parts, batch_size=6, seed=11, vectorize=vectorize)
    softmax = losses.Softmax(data, parts, batch_size=6, seed=11)
    x = np.random.default_rng(0).standard_normal((M, 3, 6))
    flat = np.concatenate([x[:, :, :5].reshape(M, -1), x[:, :, 5]], axis=1)
    for ours, theirs in ((module, softmax), (module.poisoned([1, 4]), softmax.poisoned([1, 4]))):
        expected = np.empty((M, 18))
        theirs.gradients(x.reshape(M, -1), workers=WORKERS, k=5, out=expected)
        found = all_gradients(ours, flat, 5)
        weights, bias = found[:, :15].reshape(M, 3, 5), found[:, 15:, None]
        np.testing.assert_allclose(np.concatenate([weights, bias], axis=2).reshape(M, -1), expected, atol=1e-13)
    measured = module.evaluate(flat[0])
    assert measured["accuracy"] == softmax.evaluate(x[0].ravel())["accuracy"]
    assert module.value(flat[0]) == pytest.approx(softmax.evaluate(x[0].ravel())["loss"], rel=1e-12)


def test_models_and_gradients_are_held_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a gradient is computed, the module's parameters are the rows themselves; afterwards they are let go."""
    seen = []

    class Spy(nn.Linear):
        def forward(self, x: Any) -> Any:
            seen.append((self.weight.data_ptr(), None if self.weight.grad is None else self.weight.grad.data_ptr()))
            return super().forward(x)

    loss = ModuleLoss(Spy(5, 3), classes(), small_parts(), vectorize=False)
    models, out = somewhere(loss), np.empty((M, loss.dim), np.float32)
    seen.clear()
    loss.gradients(models, workers=WORKERS, k=1, out=out)
    width = 4 * loss.dim
    assert seen == [(models.ctypes.data + i * width, out.ctypes.data + i * width) for i in range(M)]
    held = [parameter for replicas in loss._idle.values() for replica in replicas for parameter in replica.parameters]
    assert held
    assert all(parameter.numel() == 0 and parameter.grad is None for parameter in held)


# --- random layers ---------------------------------------------------------------------------------------------------


def test_dropout_goes_by_seed_worker_and_round() -> None:
    module, pair, parts = dense(dropout=0.5), classes(), small_parts()
    loss = ModuleLoss(module, pair, parts, batch_size=4, seed=3)
    assert not loss.choice.vectorized
    assert "random layers" in repr(loss)
    models = somewhere(loss)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    whole = all_gradients(loss, models)
    assert torch.equal(torch.get_rng_state(), state), "torch's generator is as it was"
    torch.manual_seed(99)
    assert same_bits(all_gradients(loss, models), whole)
    assert same_bits(all_gradients(loss, models[[4]], workers=[4])[0], whole[4])
    assert not same_bits(all_gradients(ModuleLoss(module, pair, parts, batch_size=4, seed=4), models), whole)
    for worker in (0, 4):  # by hand
        seeds = reference.philox_integers(1, high=2**63, seed=3, stream=(LAYERS, worker, 3))
        drawn = reference.philox_integers(4, high=len(parts[worker]), seed=3, stream=(0, worker, 3))
        net = loss.module(models[worker])
        torch.manual_seed(int(seeds[0]))
        rows = parts[worker][drawn]
        nn.functional.cross_entropy(net(pair[0][rows].float()), pair[1][rows]).backward()
        expected = torch.cat([parameter.grad.flatten() for parameter in net.parameters()]).numpy()
        assert same_bits(expected, whole[worker])
    quiet = ModuleLoss(dense(dropout=0.5).eval(), pair, parts, batch_size=4, seed=3, vectorize=False)
    assert same_bits(all_gradients(quiet, models), all_gradients(loss_of(seed=3), models)), "eval mode is kept"


def test_random_layers_of_an_evaluation_are_seeded() -> None:
    class Noisy(nn.Linear):
        def forward(self, x: Any) -> Any:
            return super().forward(x) + torch.randn(3)

    loss = ModuleLoss(Noisy(5, 3), classes(), small_parts(), test=classes())
    x = loss.initial()
    first = loss.evaluate(x)
    torch.manual_seed(5)
    assert loss.evaluate(x) == first


# --- evaluation ------------------------------------------------------------------------------------------------------


def test_evaluation_of_labels(monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    data = small_data()
    pair = (torch.from_numpy(data.scale * data.test_x), torch.from_numpy(data.test_y))

    def second(outputs: Any, targets: Any) -> float:
        assert outputs.shape == (30, 3)
        return float((outputs.topk(2, dim=1).indices == targets[:, None]).any(1).double().mean())

    module = dense(dropout=0.5)
    loss = ModuleLoss(module, classes(), small_parts(), test=pair, metrics={"second": second})
    x = somewhere(loss, dtype)[0]
    with torch.no_grad():
        outputs = loss.module(x).eval()(pair[0].to(getattr(torch, dtype)))
    expected = {"accuracy": float((outputs.argmax(1) == pair[1]).double().mean())}
    expected |= {"loss": float(nn.functional.cross_entropy(outputs, pair[1])), "second": second(outputs, pair[1])}
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    assert loss.evaluate(x) == pytest.approx(expected, rel=tolerance)
    monkeypatch.setattr(_evaluation, "_CHUNK", 7)
    assert loss.evaluate(x) == pytest.approx(expected, rel=tolerance)
    assert ModuleLoss(module, data, small_parts()).evaluate(x) == pytest.approx(
        {name: expected[name] for name in ("accuracy", "loss")}, rel=tolerance
    )
    without = ModuleLoss(module, classes(), small_parts())
    assert without.evaluate(x) == {"loss": without.value(x)}


def test_real_targets() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((80, 3)), rng.standard_normal(80)
    parts = [np.arange(0, 20), np.arange(20, 60)]
    mse = nn.MSELoss()
    loss = ModuleLoss(nn.Linear(3, 1), (x[:60], y[:60]), parts, test=(x[60:], y[60:]), criterion=mse)
    w = rng.standard_normal(4)
    residual = x @ w[:3] + w[3] - y
    measured = {"loss": np.mean(residual[:60] ** 2), "test_loss": np.mean(residual[60:] ** 2)}
    assert loss.evaluate(w) == pytest.approx(measured, rel=1e-12)
    column = ModuleLoss(nn.Linear(3, 1), (x[:60], y[:60, None]), parts, criterion=mse, vectorize=True)
    assert column.evaluate(w) == pytest.approx({"loss": measured["loss"]}, rel=1e-12)
    np.testing.assert_allclose(column.gradient(w, worker=1, k=2), loss.gradient(w, worker=1, k=2), rtol=1e-12)
    with pytest.raises(ValueError, match="label flipping needs targets that are labels"):
        loss.poisoned([0])


@pytest.mark.parametrize("criterion", [nn.BCEWithLogitsLoss(), nn.functional.binary_cross_entropy_with_logits])
def test_two_classes_by_one_logit(criterion: Any) -> None:
    data = small_data()
    x, y = data.train_x, data.train_y % 2
    pairs = {"whole numbers": (x, y), "real": (x, y.astype(np.float64)), "booleans": (x, y == 1)}
    w = np.random.default_rng(0).standard_normal(6)
    logits = x @ w[:5] + w[5]
    first = None
    for name, pair in pairs.items():
        loss = ModuleLoss(nn.Linear(5, 1), pair, small_parts(), test=pair, criterion=criterion, batch_size=4)
        entropy = np.mean(np.logaddexp(0, logits) - y * logits)
        assert loss.evaluate(w) == pytest.approx({"accuracy": np.mean((logits > 0) == y), "loss": entropy}), name
        flipped = ModuleLoss(nn.Linear(5, 1), (x, 1 - y), small_parts(), criterion=criterion, batch_size=4)
        gradient = loss.poisoned([2]).gradient(w, worker=2, k=1)
        np.testing.assert_allclose(gradient, flipped.gradient(w, worker=2, k=1), rtol=1e-12, err_msg=name)
        first = gradient if first is None else first
        assert same_bits(gradient, first), name
    soft = ModuleLoss(nn.Linear(5, 1), (x, np.full(120, 0.3)), small_parts(), test=pairs["real"], criterion=criterion)
    assert soft.evaluate(w).keys() == {"loss", "test_loss"}


def test_flipped_labels() -> None:
    x, y = classes()
    loss, models = loss_of(), somewhere(loss_of())
    for vectorize in (False, True):
        loss = loss_of(vectorize=vectorize)
        mirrored = ModuleLoss(dense(), (x, 2 - y), small_parts(), batch_size=4, vectorize=vectorize)
        turned = ModuleLoss(dense(), (x, (y + 1) % 3), small_parts(), batch_size=4, vectorize=vectorize)
        for other, mapping in ((mirrored, None), (turned, [1, 2, 0]), (turned, {0: 1, 1: 2, 2: 0})):
            found = all_gradients(loss.poisoned([0, 5], mapping), models)
            expected = all_gradients(loss, models)
            expected[[0, 5]] = all_gradients(other, models)[[0, 5]]
            assert same_bits(found, expected), (vectorize, mapping)
        assert same_bits(all_gradients(loss, models), all_gradients(loss.poisoned([]), models))
    for wrong in ([0, 1], [0, 1, 3], {3: 0}):
        with pytest.raises(ValueError, match=r"mapping: expected 3 labels in \[0, 3\), or a dict of such labels, got"):
            loss.poisoned([0], wrong)
    with pytest.raises(ValueError, match=r"mapping: expected an integer >= 0, got -1"):
        loss.poisoned([0], [0, 1, -1])
    ignored = ModuleLoss(dense(), (x, torch.where(y == 1, -100, y)), small_parts(), batch_size=4, vectorize=False)
    kept = ModuleLoss(dense(), (x, torch.where(y == 1, -100, 2 - y)), small_parts(), batch_size=4, vectorize=False)
    assert same_bits(ignored.poisoned([3]).gradient(models[3], worker=3, k=3), kept.gradient(models[3], worker=3, k=3))


# --- data and modules ------------------------------------------------------------------------------------------------


class Items:
    """A map-style data set as torchvision has them."""

    def __init__(self, pair: Any, target: Any = int) -> None:
        self.pair, self.target = pair, target

    def __len__(self) -> int:
        return len(self.pair[0])

    def __getitem__(self, i: int) -> Any:
        return self.pair[0][i], self.target(self.pair[1][i])


def test_samples_of_every_kind() -> None:
    x, y = classes()
    frozen = x.numpy().copy()
    frozen.flags.writeable = False
    kinds = {
        "tensors": (x, y),
        "arrays": [x.numpy(), y.numpy().astype(np.uint16)],
        "read-only": (frozen, y.numpy()),
        "big-endian": (x.numpy().astype(">f8"), y.to(torch.int32)),
        "strided": (x.numpy()[::-1][::-1], y),
        "TensorDataset": torch.utils.data.TensorDataset(x, y),
        "items": Items((x, y)),
        "Subset": torch.utils.data.Subset(Items((x, y)), range(120)),
        "Dataset": datasets.from_arrays(x.numpy(), y.numpy(), x.numpy()[:2], y.numpy()[:2]),
    }
    models = somewhere(loss_of())
    expected = all_gradients(loss_of(), models)
    for kind, train in kinds.items():
        loss = ModuleLoss(dense(), train, small_parts(), batch_size=4, vectorize=False, test=train)
        assert same_bits(all_gradients(loss, models), expected), kind
        assert loss.evaluate(models[0]).keys() == {"accuracy", "loss"}, kind
    whole = np.random.default_rng(0).integers(0, 256, (120, 5)).astype(np.uint8)
    data = datasets.from_arrays(whole, y.numpy(), whole, y.numpy(), scale=1 / 255)
    scaled = (torch.from_numpy(whole).float() * (1 / 255), y)
    pixels = [ModuleLoss(dense(), train, small_parts(), batch_size=4, vectorize=False) for train in (data, scaled)]
    assert same_bits(*(all_gradients(loss, models) for loss in pixels))


def test_a_label_for_every_pixel() -> None:
    """Outputs (B, K, 8, 8), labels (B, 8, 8): segmentation, from a data set whose targets are images."""
    x, y = images()
    labels = (x[:, 0] > 0.5).long() + (y == 1)[:, None, None]
    module = nn.Conv2d(1, 3, 1)
    settings: dict[str, Any] = {"batch_size": 4, "vectorize": False, "test": (x, labels)}
    loss = ModuleLoss(module, Items((x, labels), torch.Tensor.clone), small_parts(), **settings)
    models = somewhere(loss)
    assert same_bits(all_gradients(loss, models), plain_gradients(module, (x, labels), small_parts(), models, 3))
    predicted = (models[0, :3, None, None] * x.numpy() + models[0, 3:, None, None]).argmax(1)
    assert loss.evaluate(models[0])["accuracy"] == pytest.approx(np.mean(predicted == labels.numpy()), abs=1e-3)
    flipped = ModuleLoss(module, (x, 2 - labels), small_parts(), **settings)
    assert same_bits(all_gradients(loss.poisoned(WORKERS), models), all_gradients(flipped, models))


def test_the_module_itself_is_not_changed() -> None:
    module = Tied()
    before = copy.deepcopy(module.state_dict())
    loss = ModuleLoss(module, tokens(), small_parts(), vectorize=False, test=tokens())
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    assert names == ["embedding.weight", "out.bias", "unused.weight", "unused.bias"]
    start = torch.cat([dict(module.named_parameters())[name].detach().flatten() for name in names])
    assert loss.dim == len(start) == 36 + 9 + 4 + 2
    assert np.array_equal(loss.initial(), start.numpy())
    loss.initial()[:] = 7
    models = somewhere(loss)
    all_gradients(loss, models)
    loss.evaluate(models[0])
    made = loss.module(models[1])
    assert made.out.weight is made.embedding.weight
    assert same_bits(made.embedding.weight.detach().numpy().ravel(), models[1, :36])
    assert torch.equal(made.frozen.weight, module.frozen.weight)
    with torch.no_grad():
        made.embedding.weight.zero_()
    assert models[1, :36].all(), "a module of its own"
    assert loss.module(models[1].astype(np.float64)).out.bias.dtype == torch.float64
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert np.array_equal(loss.initial(), start.numpy())


def test_modules_of_other_types() -> None:
    for kind in (torch.float64, torch.bfloat16):
        module = dense()
        module[0].to(kind)  # mixed
        loss = ModuleLoss(module, classes(), small_parts(), vectorize=False)
        for dtype in ("float32", "float64"):
            assert np.isfinite(loss.gradient(loss.initial().astype(dtype), worker=0, k=1)).all()
    norm = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).eval()
    norm[1].running_mean += 1.0
    for module in (norm, nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4, track_running_stats=False))):
        x = ModuleLoss(module, classes(), small_parts()).initial()
        assert np.isfinite(ModuleLoss(module, classes(), small_parts()).gradient(x, worker=1, k=1)).all()
    weighted = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
    loss = ModuleLoss(dense(), classes(), small_parts(), criterion=weighted, batch_size=4, vectorize=False)
    models = somewhere(loss, "float64")
    heavy = copy.deepcopy(weighted).double()
    expected = plain_gradients(dense(), classes(), small_parts(), models, 3, criterion=heavy)
    assert same_bits(all_gradients(loss, models), expected)


class Counting(nn.Linear):
    def __init__(self) -> None:
        super().__init__(5, 3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Any) -> Any:
        self.calls += 1
        return super().forward(x)


class Clipping(nn.Linear):
    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            self.bias.clamp_(max=-1.0)
        return super().forward(x)


def _nan() -> nn.Module:
    module = nn.Linear(5, 3)
    nn.init.constant_(module.bias, float("nan"))
    return module


def test_what_is_refused() -> None:
    x, y = classes()
    batch_norm = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"module": batch_norm}, ValueError, r"module: 1 \(BatchNorm1d\) keeps running statistics.*GroupNorm"),
        ({"module": Counting()}, ValueError, "module: calls changes in a forward pass"),
        ({"module": Clipping(5, 3)}, ValueError, "module: bias changes in a forward pass"),
        ({"module": nn.Identity()}, ValueError, "module: expected parameters that require a gradient, got none"),
        ({"module": dense().requires_grad_(False)}, ValueError, "module: expected parameters that require a gradient"),
        ({"module": nn.LazyLinear(3)}, ValueError, "module: weight has no shape yet"),
        ({"module": nn.Linear(5, 3, dtype=torch.complex64)}, TypeError, "module: weight is complex"),
        ({"module": _nan()}, ValueError, "module: bias: expected finite numbers"),
        ({"module": dense}, TypeError, "module: expected a torch.nn.Module, got function"),
        ({"module": nn.Linear(4, 3)}, ValueError, r"module: fails for inputs of shape \(32, 5\)"),
        ({"module": nn.Linear(5, 2)}, ValueError, r"(train: expected labels in \[0, 2\), got 2|module: fails)"),
        ({"module": nn.LSTM(5, 3)}, ValueError, "module: fails for inputs"),
        ({"criterion": "mse"}, TypeError, "criterion: expected a callable, got str"),
        ({"criterion": nn.CrossEntropyLoss(reduction="sum")}, ValueError, "criterion: expected the mean over a batch"),
        ({"criterion": lambda a, b: a[:, 0]}, ValueError, r"criterion: expected one number.*got \(32,\)"),
        ({"criterion": lambda a, b: 1.0}, ValueError, "criterion: expected one number.*got float"),
        ({"train": (x, y, y)}, ValueError, r"train: expected a pair \(inputs, targets\), got 3 items"),
        ({"train": (x, y[1:])}, ValueError, r"train\[1\]: expected 120 targets, one per input, got \(119,\)"),
        ({"train": (x[:0], y[:0])}, ValueError, r"train\[0\]: expected inputs of shape"),
        ({"train": (x / 0, y)}, ValueError, r"train\[0\]: expected finite numbers"),
        ({"train": (x.to(torch.complex64), y)}, TypeError, r"train\[0\]: expected real numbers"),
        ({"train": (np.array([["a"]]), y)}, TypeError, r"train\[0\]: expected real numbers, got dtype"),
        ({"train": 5}, TypeError, "train: expected a pair .*, got int"),
        ({"train": Items(([object()] * 3, y))}, TypeError, r"train\[0\]: expected "),
        ({"train": x}, TypeError, r"train: expected a dataset of \(input, target\) pairs, got Tensor"),
        ({"train": Items((x, ["a"] * 120), str)}, TypeError, r"train\[1\]: expected real numbers, got dtype"),
        ({"train": Items((x, [[0], [0, 1]] * 60), np.array)}, ValueError, "train: expected targets of one shape"),
        ({"train": [3, 4]}, ValueError, r"train\[0\]: expected inputs of shape"),
        ({"test": (x, y + 1)}, ValueError, r"test: expected labels in \[0, 3\), got 3"),
        ({"parts": []}, ValueError, "parts: expected at least one worker"),
        ({"parts": [[120]]}, ValueError, r"parts\[0\]: expected indices in \[0, 120\)"),
        ({"batch_size": 0}, ValueError, "batch_size: expected an integer"),
        ({"seed": -1}, ValueError, "seed: expected an integer"),
        ({"vectorize": "yes"}, ValueError, "vectorize: expected True, False or 'auto', got 'yes'"),
        ({"vectorize": True, "module": dense(0.5)}, ValueError, "vectorize: expected False or 'auto' for a module"),
        ({"device": "abacus"}, ValueError, "device: torch cannot use 'abacus' here"),
        ({"metrics": {"loss": len}}, ValueError, "metrics: loss is the name of another curve"),
        ({"metrics": {"f1": 3}}, TypeError, "metrics: f1: expected a callable, got int"),
        ({"metrics": [len]}, TypeError, "metrics: expected a dict of names to functions, got list"),
    ]
    for changes, error, message in cases:
        settings = {"module": dense(), "train": (x, y), "parts": small_parts()} | changes
        with pytest.raises(error, match=message):
            ModuleLoss(settings.pop("module"), settings.pop("train"), settings.pop("parts"), **settings)
    loss = loss_of()
    for wrong, error, message in (
        (np.zeros(3), ValueError, r"x: expected shape \(66,\), got \(3,\)"),
        ("x", TypeError, "x: expected real numbers"),
    ):
        for call in (loss.evaluate, loss.value, loss.module, lambda x: loss.gradient(x, worker=0, k=1)):
            with pytest.raises(error, match=message):
                call(wrong)
    with pytest.raises(ValueError, match=rf"worker: expected an integer in \[0, {M - 1}\], got {M}"):
        loss.gradient(loss.initial(), worker=M, k=1)


def test_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None\nimport byzadmm\nimport byzadmm.torch"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "ImportError: byzadmm.torch needs PyTorch: pip install 'byzadmm[torch]'" in run.stderr


# --- one after another or at once ------------------------------------------------------------------------------------


class Branching(nn.Linear):
    """Python looks at a value, which torch.func does not allow."""

    def forward(self, x: Any) -> Any:
        return super().forward(x) * (2 if float(x.sum()) > 0 else 1)


def test_auto_measures_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_choice, "_known", {})
    for slow, vectorized in ((0, True), (1, False)):
        times = iter([3.0, 1.0] if slow == 0 else [1.1, 1.0])
        monkeypatch.setattr(_choice, "_best", lambda way, times=times: next(times))
        monkeypatch.setattr(_choice, "_known", {})
        loss = loss_of(vectorize="auto")
        assert repr(loss).endswith("vectorize='auto')")
        assert loss.choice.vectorized is vectorized
        assert loss.describe()["vectorized"] is vectorized
        assert f"vectorize='auto' ({vectorized}, measured: " in repr(loss)
        assert loss_of(vectorize="auto", seed=5).choice.vectorized is vectorized, "the measurement is kept"
        models = somewhere(loss)
        assert same_bits(all_gradients(loss, models), all_gradients(loss_of(vectorize=vectorized), models))


def test_auto_without_a_measurement() -> None:
    branching = ModuleLoss(Branching(5, 3), classes(), small_parts())
    assert branching.choice.reason.startswith("torch.func cannot: ")
    assert not branching.describe()["vectorized"]
    with pytest.raises(ValueError, match=r"vectorize: torch\.func cannot vectorize this module"):
        ModuleLoss(Branching(5, 3), classes(), small_parts(), vectorize=True)
    assert ModuleLoss(dense(), classes(), [[0, 1]]).choice.reason == "one worker"
    wrong = _choice._measured(lambda: torch.ones(2, 2), lambda: torch.zeros(2, 2))
    assert (wrong.vectorized, wrong.reason) == (False, "torch.func gives other gradients")


def test_the_fingerprint_tells_losses_apart() -> None:
    def digest(**changes: Any) -> str:
        settings = {"module": dense(), "train": classes(), "parts": small_parts(), "vectorize": False} | changes
        loss = ModuleLoss(settings.pop("module"), settings.pop("train"), settings.pop("parts"), **settings)
        from byzadmm._internal.description import describe

        return repr([describe(item) for item in loss.fingerprint()])

    x, y = classes()
    moved = dense()
    with torch.no_grad():
        moved[0].bias[0] += 1
    others = [{"module": moved}, {"module": dense(0.5)}, {"module": dense().eval()}, {"train": (x + 1, y)}, {"seed": 1}]
    others += [{"batch_size": 31}]
    others += [{"train": (x, 2 - y)}, {"parts": partition.iid(y.numpy(), M, seed=4)}, {"test": (x, y)}]
    others += [{"criterion": nn.CrossEntropyLoss(label_smoothing=s)} for s in (0.1, 0.2)] + [{"vectorize": True}]
    digests = [digest(), *(digest(**other) for other in others)]
    assert len(set(digests)) == len(digests)
    assert digest() == digests[0]


# --- given samples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODULES)
def test_derivatives_on_given_samples_are_those_of_the_losses(name: str) -> None:
    loss = loss_of(name, seed=8)
    x, v = somewhere(loss, "float64")[:2]
    v -= x
    rows, h = [3, 3, 77], 1e-5
    ahead, back = loss.batch_losses(np.stack([x + h * v, x - h * v]), rows)
    assert loss.batch_gradient(x, rows) @ v == pytest.approx((ahead - back) / (2 * h), rel=1e-6)
    ahead, back = (loss.full_gradient(x + step * v, worker=2) for step in (h, -h))
    np.testing.assert_allclose(loss.hessian_product(x, v, worker=2), (ahead - back) / (2 * h), atol=1e-7)
    np.testing.assert_array_equal(
        loss.hessian_product(x, v, worker=2), loss.batch_hessian_product(x, v, loss.parts[2])
    )
    ahead, back = loss.batch_losses(np.stack([x + h * v, x - h * v]), worker=1, k=5)
    assert loss.gradient(x, worker=1, k=5) @ v == pytest.approx((ahead - back) / (2 * h), rel=1e-6)


def test_a_full_gradient_is_the_mean_over_chunks_and_sees_flipped_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = loss_of()
    x = somewhere(loss, "float64")[0]
    at_once = loss.full_gradient(x, worker=4)
    monkeypatch.setattr(_on_samples, "_CHUNK", 5)
    np.testing.assert_allclose(loss.full_gradient(x, worker=4), at_once, rtol=1e-12, atol=1e-15)
    flipped = loss.poisoned([4])
    assert not np.allclose(flipped.full_gradient(x, worker=4), at_once)
    np.testing.assert_allclose(flipped.batch_gradient(x, loss.parts[4]), at_once, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match=r"rows: expected indices in \[0, 120\)"):
        loss.batch_gradient(x, [120])
    with pytest.raises(TypeError, match="either rows, or worker and k"):
        loss.batch_losses(x[None])


def test_random_layers_draw_the_same_for_the_same_samples() -> None:
    loss = ModuleLoss(dense(dropout=0.5), classes(), small_parts(), vectorize=False)
    x = somewhere(loss)[0]
    np.testing.assert_array_equal(loss.full_gradient(x, worker=0), loss.full_gradient(x, worker=0))
