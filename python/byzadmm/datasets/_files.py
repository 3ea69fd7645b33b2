"""Where the data files are: the table of known files, the search for them, their checksums and their download."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from byzadmm._internal.validation import check_choice

__all__ = ["NAMES", "SOURCES", "Available", "available", "cache_dir", "fetch", "locate", "search_path", "verify"]

_TIMEOUT_SECONDS = 30


class Available(NamedTuple):
    """One line of the table of data sets: name, folder it was found in (or None), size in bytes, licence."""

    name: str
    where: str | None
    bytes: int
    licence: str


@dataclass(frozen=True)
class File:
    """A published file: its name, size and SHA-256, and the addresses that serve it."""

    name: str
    bytes: int
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A data set made of files, with its licence."""

    licence: str
    files: tuple[File, ...]


def _idx_files(mirrors: tuple[str, ...], table: dict[str, tuple[int, str]]) -> tuple[File, ...]:
    return tuple(
        File(name, size, sha256, tuple(mirror + name for mirror in mirrors)) for name, (size, sha256) in table.items()
    )


SOURCES = {
    "mnist": Source(
        "CC BY-SA 3.0 (as commonly stated)",
        _idx_files(
            ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
            {
                "train-images-idx3-ubyte.gz": (
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                ),
                "train-labels-idx1-ubyte.gz": (
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
                "t10k-images-idx3-ubyte.gz": (
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            },
        ),
    ),
    "covtype": Source(
        "CC BY 4.0",
        (
            File(
                "covtype.data.gz",
                11_240_707,
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
                (
                    "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
                    "https://ndownloader.figshare.com/files/5976039",
                ),
            ),
        ),
    ),
    "fashion_mnist": Source(
        "MIT",
        _idx_files(
            (
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            ),
            {
                "train-images-idx3-ubyte.gz": (
                    26_421_880,
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                ),
                "train-labels-idx1-ubyte.gz": (
                    29_515,
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
                "t10k-images-idx3-ubyte.gz": (
                    4_422_102,
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    5_148,
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            },
        ),
    ),
    "cifar10": Source(
        "none stated",
        (
            File(
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                (
                    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                    "https://cave.cs.toronto.edu/kriz/cifar-10-binary.tar.gz",
                ),
            ),
        ),
    ),
}

DIGITS = File("digits.npz", 44_637, "09a5557c1dd5f25604a6c5d622e57b53ea9b82d0645dbb0bbfbdaff650679c18", ())
NAMES = ("digits", "synthetic", *SOURCES)


def cache_dir() -> Path:
    """Return the folder for downloads and parsed copies: ``$BYZADMM_CACHE``, else the user's cache folder."""
    own = os.environ.get("BYZADMM_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "byzadmm"


def search_path(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Return the folders that are looked through for data files, in order.

    ``[data_dir, $BYZADMM_DATA, cache]``, the first two where given.

    Parameters
    ----------
    data_dir : path, optional
        The caller's own folder.

    Returns
    -------
    list of Path
        Not all of them need to exist.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.search_path("mydata")[0].name
    'mydata'
    """
    if not isinstance(data_dir, str | os.PathLike | None):
        raise TypeError(f"data_dir: expected a path, got {type(data_dir).__name__}")
    given = (data_dir, os.environ.get("BYZADMM_DATA"))
    return [Path(folder) for folder in given if folder] + [cache_dir()]


def available(data_dir: str | os.PathLike[str] | None = None) -> list[Available]:
    """List every data set, where it was found, its size and its licence.

    Parameters
    ----------
    data_dir : path, optional
        As in `load`.

    Returns
    -------
    list of Available
        Named tuples ``(name, where, bytes, licence)``; ``where`` is None for one that would have to be downloaded, and
        ``bytes`` counts the files as published.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.available()[0].name
    'digits'
    """
    folders = search_path(data_dir)
    rows = [
        Available("digits", "in the package", DIGITS.bytes, "CC BY 4.0"),
        Available("synthetic", "generated", 0, "none needed"),
    ]
    for name, source in SOURCES.items():
        found = [locate(name, file, folders) for file in source.files]
        where = str(found[0].parent) if found[0] and all(found) else None
        rows.append(Available(name, where, sum(file.bytes for file in source.files), source.licence))
    return rows


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Find the verified files of a data set, downloading what is missing to the cache.

    Parameters
    ----------
    name : {"mnist", "covtype", "fashion_mnist", "cifar10"}
        The data set; ``"digits"`` and ``"synthetic"`` have no files to fetch and give an empty list.
    data_dir : path, optional
        As in `load`.

    Returns
    -------
    list of Path
        The files, in the order of the table in ``docs/data.md``.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.fetch("digits")
    []
    """
    folders = search_path(data_dir)
    if check_choice(name, "name", NAMES) not in SOURCES:
        return []
    return [_obtain(name, file, folders) for file in SOURCES[name].files]


def locate(name: str, file: File, folders: list[Path]) -> Path | None:
    """Return the first ``folder/name/file`` or ``folder/file`` that exists."""
    # MNIST and Fashion-MNIST use the same file names, so one directly in a folder may belong to the other.
    namesakes = {other.bytes for source in SOURCES.values() for other in source.files if other.name == file.name} - {
        file.bytes
    }
    for folder in folders:
        nested, loose = folder / name / file.name, folder / file.name
        if nested.is_file():
            return nested
        if loose.is_file() and loose.stat().st_size not in namesakes:
            return loose
    return None


def verify(path: Path | str, data: bytes, file: File) -> None:
    """Refuse content that is not the published file, naming both checksums."""
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise ValueError(
            f"{path}: expected sha256 {file.sha256} ({file.bytes} bytes), got {digest} ({len(data)} bytes); "
            "the file is truncated, corrupt or another version: replace it, or delete it to have it downloaded"
        )


def _obtain(name: str, file: File, folders: list[Path]) -> Path:
    path = locate(name, file, folders)
    if path is not None:
        verify(path, path.read_bytes(), file)
        return path
    failures = _download(name, file)
    if failures:
        raise FileNotFoundError(_absent(name, folders, failures))
    return cache_dir() / name / file.name


def _download(name: str, file: File) -> list[str]:
    """Try each mirror in turn; return nothing on success, else why each one failed."""
    try:
        pooch: Any = importlib.import_module("pooch")
    except ImportError:
        return ["downloading needs pooch: pip install 'byzadmm[data]'"]
    folder = cache_dir() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return [f"the cache cannot be written ({error}); BYZADMM_CACHE chooses another folder"]
    show = sys.stderr is not None and sys.stderr.isatty() and importlib.util.find_spec("tqdm") is not None
    # Asking for the plain bytes keeps a server from unpacking the .gz on the way, which would change the checksum.
    downloader = pooch.HTTPDownloader(
        progressbar=show, chunk_size=1 << 16, timeout=_TIMEOUT_SECONDS, headers={"Accept-Encoding": "identity"}
    )
    failures = []
    for url in file.urls:
        try:
            # pooch writes a temporary file beside the target and renames it once the checksum is right.
            pooch.retrieve(url, f"sha256:{file.sha256}", fname=file.name, path=folder, downloader=downloader)
        except (OSError, ValueError) as error:  # requests raises OSErrors, a wrong checksum is a ValueError
            failures.append(f"{url}: {error}")
        else:
            return []
    return failures


def _absent(name: str, folders: list[Path], failures: list[str]) -> str:
    missing = [file for file in SOURCES[name].files if locate(name, file, folders) is None]
    lines = [f"{name}: data files not found, and not downloaded"]
    lines += [f"  {reason}" for reason in failures]
    lines += ["put these files"]
    lines += [f"  {file.name}  {file.bytes} bytes  sha256 {file.sha256}" for file in missing]
    lines += [f"into one of these folders (or into its subfolder {name})"]
    lines += [f"  {folder}" for folder in folders]
    return "\n".join(lines)
