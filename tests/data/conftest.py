"""Tests of the data stage stay off the user's own folders."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("BYZADMM_CACHE", str(folder))
    monkeypatch.delenv("BYZADMM_DATA", raising=False)
    return folder
