"""The build backend: scikit-build-core, but in a git checkout a source distribution holds the tracked files alone."""

from __future__ import annotations

import subprocess

from scikit_build_core import build
from scikit_build_core.build import (
    build_editable,
    build_wheel,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def git(*arguments: str) -> str | None:
    """What git prints about this folder; None where it is no checkout of this project, or there is no git."""
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def untracked() -> list[str]:
    """Patterns of all files and folders here that git does not track; none where the files are not git's."""
    if git("ls-files", "--error-unmatch", "pyproject.toml") is None:
        return []
    names = (git("ls-files", "--others", "--directory", "-z") or "").split("\0")
    return ["/" + "".join(f"\\{c}" if c in "\\*?[] " else c for c in name) for name in names if name]


def build_sdist(folder: str, settings: dict[str, list[str] | str] | None = None) -> str:
    """Write the source distribution into ``folder``."""
    return build.build_sdist(folder, {**(settings or {}), "sdist.exclude": untracked()})
