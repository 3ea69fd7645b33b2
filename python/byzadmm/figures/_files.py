"""Text files written whole or not at all."""

from __future__ import annotations

from pathlib import Path

from byzadmm._internal.atomic_files import replacing

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> Path:
    """Write through a temporary file beside ``path``, so that a reader never sees a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())
    return path
