"""Fixtures of the figures' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.panels import DIGITS, MAPS


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(DIGITS)
    return path


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    path = tmp_path / "maps.toml"
    path.write_text(MAPS)
    return path
