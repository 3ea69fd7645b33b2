"""The page of a study as a file: strings are text, nothing is loaded, numbers are short, bad records are refused."""

from __future__ import annotations

import copy
import json
import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from byzadmm.study.report import write_report
from support import records


class Page(HTMLParser):
    """Tags with their attributes, and the text of the record's element."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.source = path.read_text("utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        self.texts[attributes.get("id") or tag] = self.texts.get(attributes.get("id") or tag, "") + data

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads(self.texts["record"]))


def written(folder: Path, record: dict[str, Any]) -> Page:
    write_report(folder / "page.html", record)
    return Page(folder / "page.html")


def test_odd_strings_are_text(tmp_path: Path) -> None:
    record = records.odd_record()
    page, usual = written(tmp_path, record), written(tmp_path, records.made_record())
    assert page.tags == [
        (tag, usual_attributes if tag != "meta" else attributes)
        for (tag, usual_attributes), (_, attributes) in zip(usual.tags, page.tags, strict=True)
    ], "a string became a tag"
    assert page.texts["title"].strip() == record["title"]
    assert page.record["axes"] == record["axes"]
    assert page.record["settings"] == record["settings"]
    assert [run["error"] for run in page.record["runs"]] == [run["error"] for run in record["runs"]]
    assert not set("<>&\u2028\u2029") & set(page.texts["record"])


def test_page_loads_nothing(tmp_path: Path) -> None:
    page = written(tmp_path, records.broken_record())
    assert not re.search(r"https?:|//\w+\.\w|\bsrc\s*=|url\(|@import|\bfetch\(|XMLHttpRequest|innerHTML", page.source)
    for tag, attributes in page.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base"), tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), attributes
        assert not [name for name in attributes if name.startswith("on") or name == "style"], attributes
    policy = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy


def test_same_record_same_bytes(tmp_path: Path) -> None:
    record = records.broken_record()
    before = json.dumps(record)
    first = written(tmp_path, record).source
    assert written(tmp_path, copy.deepcopy(record)).source == first
    assert json.dumps(record) == before, "the record was changed"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html"]


def test_numbers_are_rounded_and_finite(tmp_path: Path) -> None:
    record = records.made_record(evaluations=4, seed=[0, 1])
    values = [1 / 3, math.nan, -math.inf, 123456.789]
    record["runs"][0] |= {"final": math.nan, "curves": {"accuracy": values, "loss": [0, 1, 2, 3]}, "seconds": 2e-7 / 3}
    record["settings"]["lam"] = 1 / 3
    first, second = (page := written(tmp_path, record).record)["runs"]
    assert first["curves"] == {"accuracy": [0.33333, None, None, 123460.0], "loss": [0, 1, 2, 3]}
    assert (first["final"], first["seconds"]) == (None, 6.6667e-08)
    assert page["settings"]["lam"] == 1 / 3, "settings are exact"
    assert page["grids"] == [[0, 50, 100, 150]], "runs share their iterations"
    assert first["places"] == second["places"] == 0
    record["runs"][0]["final"] = sys.float_info.max
    assert written(tmp_path, record).record["runs"][0]["final"] == sys.float_info.max, "rounded it is infinite"


def test_large_studies_stay_small(tmp_path: Path) -> None:
    axes = {"algorithm": [f"a{i}" for i in range(10)], "attack": [f"b{i}" for i in range(10)], "seed": [*range(5)]}
    page = written(tmp_path, records.made_record(evaluations=200, **axes))
    assert len(page.record["runs"]) == 500
    assert len(page.source) < 10 * 500 * 200 * 2, "ten characters per number of two curves"


def test_bad_records_are_refused(tmp_path: Path) -> None:
    def changed(path: str, value: Any) -> dict[str, Any]:
        record = records.made_record(evaluations=2)
        *parents, last = path.split("/")
        part: Any = record
        for key in parents:
            part = part[int(key) if key.isdigit() else key]
        part[last] = value
        return record

    once = records.made_record(evaluations=2)
    without = {key: value for key, value in once.items() if key != "axes"}
    cases: list[tuple[Any, type[Exception], str]] = [
        ([], TypeError, r"record: expected a dict, got list"),
        (without, ValueError, r"record: expected the keys .*; got none of the name 'axes'"),
        (changed("axes/algorithm", ["other"]), ValueError, r"\['algorithms'\]: .* 'other'"),
        (changed("algorithms/SGD/color", "red;x"), ValueError, r"\['SGD'\]\['color'\]: .* got 'red;x'"),
        (changed("algorithms/SGD/dash", "url(x)"), ValueError, r"\['SGD'\]\['dash'\]: .* got 'url\(x\)'"),
        (changed("metric", "r2"), ValueError, r"\['metric'\]: expected one of .*, got 'r2'"),
        (changed("runs/0/status", "ok"), ValueError, r"\['runs'\]\[0\]\['status'\]: .*'ok'"),
        (changed("runs/0/seed", 7), ValueError, r"\['seed'\]: expected one of \[0\], got 7"),
        (changed("runs/0/iterations", [0]), ValueError, r"\['accuracy'\]: expected 1 values, got 2"),
        (changed("settings/x", {1, 2}), TypeError, r"record: expected what JSON can hold .*set"),
        (once | {"runs": once["runs"] * 2}, ValueError, r"\['runs'\]\[1\]: expected one run per case"),
    ]
    for record, kind, message in cases:
        with pytest.raises(kind, match=message):
            write_report(tmp_path / "page.html", record)
        assert not [*tmp_path.iterdir()], message
