"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where a file that is open can be neither removed nor renamed
    fcntl = None  # type: ignore[assignment]

__all__ = ["prepare", "prepare_folder", "replacing", "save_picture"]

_TRIED_BYTES = 4096


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` at the end; after an error there is no trace of it.

    A reader sees the old file or the new one, never a part. The umask decides who may read it. Of a symbolic link the
    target is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from byzadmm._internal.atomic_files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a")) as file:
    ...         _ = file.write(b"whole")
    ...     Path(folder, "a").read_bytes()
    b'whole'
    """
    target = _target(path)
    with _part(target) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:  # pragma: no cover
            file.close()
        os.replace(file.name, target)


def prepare(path: str | os.PathLike[str], what: str) -> None:
    """Find out by trying whether ``path`` can be written; ``what`` is the argument's name in the error.

    An existing file is left as it is. Parts of ``path``, and of files named after it, whose writers were killed are
    removed; those of a living process are locked.
    """
    try:
        target = _target(path)
        with _part(target) as file:
            file.write(bytes(_TRIED_BYTES))
            file.flush()
            os.fsync(file.fileno())
        _sweep(target)
    except OSError as error:
        raise type(error)(f"{what}: cannot write {os.fspath(path)!r}: {error.strerror or error}") from error


def prepare_folder(path: str | os.PathLike[str], what: str) -> None:
    """Make the folder ``path`` if it is not there; ``what`` is the argument's name in the error."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise type(error)(f"{what}: cannot make folder {os.fspath(path)!r}: {error.strerror or error}") from error


def save_picture(figure: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """``figure.savefig`` in the format of the name's ending, whole or not at all."""
    with replacing(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:].lower(), **options)


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that ``path`` leads to, which need not exist."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if target.exists() and not target.is_file():  # a device or a pipe would become a plain file
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return target


@contextlib.contextmanager
def _part(target: Path) -> Iterator[BinaryIO]:
    """A new file beside ``target``, locked until it is closed and removed if it still has its name then."""
    file = _create(target)
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):  # flush has said what could not be written
            file.close()
        Path(file.name).unlink(missing_ok=True)


def _create(target: Path) -> BinaryIO:
    while True:
        # Not mkstemp: its files are for their owner alone, and to read the umask is to change it for all threads.
        try:
            file = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part").open("xb")
        except OSError as error:  # about the file that was asked for
            raise type(error)(error.errno, error.strerror, os.fspath(target)) from error
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):  # else it was taken for a dead one before it was locked
            return file
        file.close()


def _sweep(target: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(target.name)}(\..+)?\.[0-9a-f]{{16}}\.part")
    with os.scandir(target.parent) as entries:
        parts = [entry.path for entry in entries if pattern.fullmatch(entry.name) and entry.is_file()]
    for part in parts:
        with contextlib.suppress(OSError):
            if fcntl is None:  # pragma: no cover
                os.unlink(part)
                continue
            with open(part, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(part)
