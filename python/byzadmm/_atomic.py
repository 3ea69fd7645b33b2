"""Files written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write that takes the place of ``path`` at the end; after an error there is no trace of it.

    A reader sees the old file or the new one, never a part. Who may read it is for the umask to say.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from byzadmm._atomic import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder, "a")) as file:
    ...         _ = file.write(b"whole")
    ...     Path(folder, "a").read_bytes()
    b'whole'
    """
    target = Path(path)
    # Not mkstemp: its files are for their owner alone, and to read the umask is to change it for all threads.
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    file = temporary.open("xb")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
