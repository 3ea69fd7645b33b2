"""CIFAR-10: small archives in its layout, whole, damaged and hostile."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import catalogue, datasets
from byzadmm.datasets import _files, _formats, _load
from byzadmm.datasets._files import Source
from support.data_files import files_in, published

RECORDS = 3
FOLDER = "cifar-10-batches-bin"
BATCHES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
SIZE = RECORDS * 3073
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}

Entries = list[tuple[tarfile.TarInfo, bytes]]


def entry(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: Any
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content), kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def archive(entries: Entries, form: int = tarfile.USTAR_FORMAT) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=form) as tar:
        for info, content in entries:
            tar.addfile(info, io.BytesIO(content))
    return memory.getvalue()


def images() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Pixels (18, 3072) and labels of all six batches, in their order."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (6 * RECORDS, 3072), np.uint8), np.arange(6 * RECORDS) % 10


def batches(**labels: int) -> dict[str, bytes]:
    x, y = images()
    records = np.column_stack([y.astype(np.uint8), x])
    contents = {name: records[i * RECORDS : (i + 1) * RECORDS].copy() for i, name in enumerate(BATCHES)}
    for name, label in labels.items():
        contents[f"{name}.bin"][1, 0] = label
    return {name: content.tobytes() for name, content in contents.items()}


def usual(**labels: int) -> Entries:
    """The entries of the published archive, in another order than the batches have."""
    folder, readme = entry(FOLDER, kind=tarfile.DIRTYPE), entry(f"{FOLDER}/readme.html", b"<html>")
    names = entry(f"{FOLDER}/batches.meta.txt", b"airplane\n")
    contents = reversed(batches(**labels).items())
    return [folder, names, *(entry(f"{FOLDER}/{name}", content) for name, content in contents), readme]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts content in the place of the published archive, under its own checksum."""
    monkeypatch.setattr(_load, "_CIFAR_RECORDS", RECORDS)

    def put(content: bytes) -> Path:
        folder = tmp_path / "data" / "cifar10"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cifar-10-binary.tar.gz").write_bytes(content)
        file = published(content, "cifar-10-binary.tar.gz")
        monkeypatch.setitem(_files.SOURCES, "cifar10", Source("none", (file,)))
        return folder.parent

    return put


def test_images_in_the_published_order(publish: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = images()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for form, number in FORMATS.items():
        folder = publish(gzip.compress(archive(usual(), number)))
        data = datasets.load("cifar10", data_dir=folder)
        assert np.array_equal(data.train_x, x[: 5 * RECORDS]), form
        assert np.array_equal(data.test_x, x[5 * RECORDS :]), form
        assert np.concatenate([data.train_y, data.test_y]).tolist() == y.tolist(), form
        assert data.train_x.dtype == np.uint8, form
        assert data.train_y.dtype == np.int64, form
    assert (data.name, data.n_classes, data.scale) == ("cifar10", 10, 1 / 255)
    assert data.classes is not None
    assert (data.classes[0], data.classes[9], len(data.classes)) == ("airplane", "truck", 10)
    assert files_in(elsewhere) == []  # nothing is unpacked to disk
    assert files_in(folder) == ["cifar-10-binary.tar.gz"]
    assert datasets.load("cifar10", data_dir=folder, scale="unit").train_x.max() == 1.0
    assert catalogue.load_dataset("cifar10", data_dir=folder).name == "cifar10"


def test_wrong_archives(publish: Any) -> None:
    names = [f"{FOLDER}/{name}" for name in BATCHES]
    third = names[2]
    others = [pair for pair in usual() if pair[0].name != third]
    good = batches()[BATCHES[2]]
    refused = f"{third}: expected one file of {SIZE} bytes, got"
    cases: dict[str, tuple[bytes, str]] = {
        "label": (archive(usual(data_batch_4=10)), f"{names[3]}: expected labels in [0, 9], got 10"),
        "test label": (archive(usual(test_batch=255)), f"{names[5]}: expected labels in [0, 9], got 255"),
        "absent": (archive(others), f"expected the files {third}, got none of that name"),
        "nothing": (archive([]), f"expected the files {', '.join(names)}, got none of that name"),
        "short": (archive([*others, entry(third, good[:-1])]), f"{refused} a file of {SIZE - 1}"),
        "long": (archive([*others, entry(third, good + b"x")]), f"{refused} a file of {SIZE + 1}"),
        "twice": (archive([*usual(), entry(third, good)]), f"{refused} a file of {SIZE}, once more"),
        "folder": (archive([*others, entry(third, kind=tarfile.DIRTYPE)]), f"{refused} another kind of entry of 0"),
        "symbolic link": (
            archive([*others, entry(third, kind=tarfile.SYMTYPE, linkname="/etc/passwd")]),
            f"{refused} another kind of entry of 0",
        ),
        "hard link": (
            archive([*others, entry(third, kind=tarfile.LNKTYPE, linkname=names[0])]),
            f"{refused} another kind of entry of 0",
        ),
        "device": (archive([*others, entry(third, kind=tarfile.CHRTYPE)]), f"{refused} another kind of entry of 0"),
        "other folder": (
            archive([*others, entry(f"../{third}", good), entry(f"/{third}", good)]),
            f"expected the files {third}, got none of that name",
        ),
        "much more": (archive(usual()) + bytes(1 << 21), f"expected at most {6 * SIZE + (1 << 20)} bytes unpacked"),
        "large readme": (
            archive([entry(f"{FOLDER}/readme.html", bytes(1 << 21)), *usual()]),
            f"expected at most {6 * SIZE + (1 << 20)} bytes unpacked, got more",
        ),
        "truncated tar": (archive(usual())[: 3 * SIZE], "wrong tar archive: unexpected end of data"),
        "no tar": (b"hello" * 1000, "wrong tar archive: "),
    }
    for what, (content, message) in cases.items():
        folder = publish(gzip.compress(content))
        with pytest.raises(ValueError, match=r"cifar-10-binary.tar.gz: ") as caught:
            datasets.load("cifar10", data_dir=folder)
        assert message in str(caught.value), what
    whole = gzip.compress(archive(usual()))
    for what, content in {"half": whole[: len(whole) // 2], "last byte": whole[:-1], "plain": archive(usual())}.items():
        with pytest.raises(ValueError, match=r"truncated or corrupt .gz file"):
            datasets.load("cifar10", data_dir=publish(content))
        assert what
    flipped = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]  # the checksum after all of the content
    with pytest.raises(ValueError, match=r"truncated or corrupt .gz file"):
        datasets.load("cifar10", data_dir=publish(flipped))


def test_another_file_is_refused_by_its_checksum(publish: Any) -> None:
    folder = publish(gzip.compress(archive(usual())))
    path = folder / "cifar10" / "cifar-10-binary.tar.gz"
    path.write_bytes(gzip.compress(archive(usual(test_batch=3))))
    with pytest.raises(ValueError, match=r"expected sha256 .* the file is truncated, corrupt or another version"):
        datasets.load("cifar10", data_dir=folder)


def test_hostile_headers_cost_little(tmp_path: Path) -> None:
    path = tmp_path / "bomb.tar.gz"
    attributes = entry("x", bytes(50_000_000), kind=tarfile.XHDTYPE)  # which tarfile reads at once
    chain = [entry("././@LongLink", b"a\0", kind=tarfile.GNUTYPE_LONGNAME) for _ in range(900)]
    for what, entries in {"attributes": [attributes], "chain": chain}.items():
        path.write_bytes(gzip.compress(archive(entries)))
        tracemalloc.start()
        with pytest.raises(ValueError, match=r"bomb.tar.gz: wrong tar archive: "):
            _formats.read_tar(path, {"a.bin": 100})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 10_000_000, what


def test_hostile_attributes(tmp_path: Path) -> None:
    path = tmp_path / "odd.tar.gz"
    cases = [{"size": size} for size in ("-1", "abc", "1" * 30, "99", "")]
    cases += [{"path": "b.bin"}, {"GNU.sparse.size": "x"}, {"GNU.sparse.map": "a,b", "GNU.sparse.size": "100"}]
    cases += [{"GNU.sparse.map": "0,50,90,10", "GNU.sparse.size": "100"}]
    cases += [{"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": "100"}]
    for headers in cases:
        path.write_bytes(gzip.compress(archive([entry("a.bin", bytes(100), pax_headers=headers)], tarfile.PAX_FORMAT)))
        with pytest.raises(ValueError, match=r"odd.tar.gz: wrong tar archive: ") as caught:
            _formats.read_tar(path, {"a.bin": 100})
        assert caught.value.args, headers


def test_damaged_headers_are_refused_or_harmless(tmp_path: Path) -> None:
    """Whatever a byte of a header becomes: the same files, or a ValueError that names the archive."""
    contents = {"a.bin": bytes(range(100)), "b.bin": b"b" * 700}
    sizes = {name: len(content) for name, content in contents.items()}
    path = tmp_path / "damaged.tar.gz"
    rng = np.random.default_rng(0)
    outcomes = {"same": 0, "refused": 0}
    for number in FORMATS.values():
        tar = archive([entry(name, content, mtime=0.5) for name, content in contents.items()], number)
        for position in (*range(0, 100, 9), *range(100, 160), *range(257, 512, 15)):
            damaged = bytearray(tar)
            damaged[position] = rng.choice(np.frombuffer(b"\0 0179xgLKS5\x80\xff", np.uint8))
            damaged[148:156] = b" " * 8  # the header's own sum, right again
            damaged[148:156] = b"%06o\0 " % sum(damaged[:512])
            path.write_bytes(gzip.compress(bytes(damaged), 1))
            if _refused(path, sizes, contents):
                outcomes["refused"] += 1
            else:
                outcomes["same"] += 1
    assert min(outcomes.values()) > 30, outcomes


def _refused(path: Path, sizes: dict[str, int], contents: dict[str, bytes]) -> bool:
    try:
        read = _formats.read_tar(path, sizes)
    except ValueError as error:
        if not str(error).startswith(f"{path}: "):
            raise
        return True
    assert read == contents
    return False


def test_settings_follow_from_the_published_means(publish: Any) -> None:
    means, deviations = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2470, 0.2435, 0.2616])
    preset = catalogue.PRESETS["cifar10"]
    assert preset.length == pytest.approx(1024 * np.sum(means**2 + deviations**2), rel=1e-3)
    # Pixels of those means and deviations, of a data set that is not known by name.
    rng = np.random.default_rng(0)
    channels = [rng.normal(mean, deviation, (200, 1024)) for mean, deviation in zip(means, deviations, strict=True)]
    x, y = np.concatenate(channels, axis=1), np.zeros(200, int)
    derived = catalogue.preset_for(datasets.from_arrays(x, y, x, y))
    assert derived.admm.lam == pytest.approx(preset.admm.lam, rel=0.01)
    assert derived.step(1) == pytest.approx(preset.step(1), rel=0.01)
    assert catalogue.preset_for(datasets.from_arrays(x, y, x, y, name="cifar10")) is preset
