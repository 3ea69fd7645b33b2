"""The page of a study in a browser: nothing overflows or complains; switches, sorting and the pointer work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from byzadmm.study.report import write_report
from support import records
from support.browser import Browser, chromium

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OVERFLOW = """(room => [...document.querySelectorAll("body *")].filter(e => {
  const scrolls = e.parentElement.closest(".scroll, svg");
  return !scrolls && (e.getBoundingClientRect().right > room + 0.5 || e.getBoundingClientRect().left < -0.5);
}).map(e => e.outerHTML.slice(0, 100)).concat(
  document.documentElement.scrollWidth > room ? ["the page: " + document.documentElement.scrollWidth] : []
))(document.documentElement.clientWidth)"""
ROWS = 'Array.from(document.querySelectorAll(".finals tbody th"), e => e.textContent)'
CURVES = """Array.from(document.querySelectorAll(".panel"), p =>
  Array.from(p.querySelectorAll(".mean"), e => e.dataset.algorithm).join())"""
TEXTS = "Array.from(document.querySelectorAll('%s'), e => e.innerText)"
READOUT = """document.querySelector("#readout").hidden ? null : [document.querySelector("#readout p").textContent,
  ...Array.from(document.querySelectorAll("#readout li"), e =>
    [".name", ".value", ".range"].map(c => e.querySelector(c).textContent).join(" "))]"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("Chromium is not installed")
    window = Browser()
    try:
        yield window
    finally:
        window.close()


def choose(browser: Browser, name: str, place: int) -> None:
    browser.evaluate(f"(e => {{ e.value = {place}; e.dispatchEvent(new Event('change')) }})({name})")
    browser.frame()


def shown(browser: Browser, folder: Path, record: dict[str, Any], width: int = 1280) -> None:
    browser.media()
    browser.move(0, 0)
    write_report(folder / "page.html", record)
    browser.open(folder / "page.html", width)


def test_nothing_overflows_and_nothing_complains(browser: Browser, tmp_path: Path) -> None:
    forty = [f"nnm+trimmed-mean, momentum 0.{i}" for i in range(40)]
    empty = records.frame()
    pages = {
        "real": records.real_record(iterations=200, seeds=2),
        "broken": records.broken_record(),
        "odd": records.odd_record(),
        "forty": records.made_record(algorithm=forty, attack=[f"a long attack {i}" for i in range(12)]),
        "settings": records.made_record(n_byzantine=[2, 4, 8], partition=["iid", "by-label"], attack=["a", "b", "c"]),
        "one run": records.made_record(evaluations=1),
        "no run": empty,
        "no finished run": empty | {"runs": [records.run_of(case) for case in records.cases_of(empty)]},
    }
    for name, record in pages.items():
        for width in (1280, 400):
            shown(browser, tmp_path, record, width)
            assert browser.evaluate(OVERFLOW) == [], (name, width)
            browser.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true })")
            browser.move(*browser.point(".panel svg"))
            browser.frame()
            assert browser.evaluate(OVERFLOW) == [], (name, width, "with values at the pointer")
            assert len(browser.evaluate(ROWS)) == len(record["axes"]["algorithm"]), name
            assert browser.evaluate("document.querySelectorAll('.panel').length") == len(record["axes"]["attack"])
        assert browser.errors == [], name


def test_table_sorts_by_click_and_key(browser: Browser, tmp_path: Path) -> None:
    record = records.made_record(algorithm=["A", "B", "C", "D"], attack=["x", "y"], seed=[0, 1])
    finals = {"A": 0.5, "B": 0.9, "C": None, "D": 0.7}
    for run in record["runs"]:
        value = finals[run["algorithm"]]
        run |= {"final": value + 0.01 * run["seed"]} if value else records.run_of({}, status="illegal", error="f: no")
    shown(browser, tmp_path, record)
    sort = "Array.from(document.querySelectorAll('.finals thead th'), e => e.getAttribute('aria-sort'))"
    assert browser.evaluate(ROWS) == ["A", "B", "C", "D"]
    assert browser.evaluate(sort) == ["ascending", "none", "none", "none"]
    browser.click("[data-column='1']")
    assert browser.evaluate(ROWS) == ["B", "D", "A", "C"], "the best first, those without a value last"
    assert browser.evaluate(sort) == ["none", "descending", "none", "none"]
    browser.key("Enter")
    assert browser.evaluate(ROWS) == ["A", "D", "B", "C"]
    assert browser.evaluate(sort) == ["none", "ascending", "none", "none"]
    browser.click("[data-column='0']")
    assert browser.evaluate(ROWS) == ["A", "B", "C", "D"]
    cells = browser.evaluate(TEXTS % ".finals td")
    assert cells[3:5] == ["0.905\n0.900\u20130.910"] * 2
    assert cells[6:9] == ["illegal1", "illegal1", "\u2013"]
    assert browser.evaluate("document.querySelector('#notes').innerText") == "illegal: f: no"
    assert browser.errors == []


def test_every_state_is_said(browser: Browser, tmp_path: Path) -> None:
    shown(browser, tmp_path, records.broken_record())
    rows = browser.evaluate("Array.from(document.querySelectorAll('.finals tbody tr'), e => e.innerText.split('\\t'))")
    states = [[cell.split("\n")[0] for cell in row[1:3]] for row in rows]
    assert states[0][1] == "missing"
    assert states[1][1] == "not finite2", "the mean of the other seeds would be a wrong answer"
    assert states[2] == ["illegal3", "illegal3"]
    assert "2 of 3 seeds" in rows[1][1]
    notes = browser.evaluate(TEXTS % "#notes li")
    assert notes == [
        "failed: MemoryError: 80 GB",
        "not finite: seed 1",
        "illegal: f: expected 4f + 3 <= 20, got f = 8",
    ]
    assert browser.evaluate(TEXTS % ".heat .hatched") == ["missing", "not finite", "illegal", "illegal"]
    assert browser.evaluate(CURVES) == ["ADMM,Krum", "Krum"]
    assert "(1 failed, 6 illegal)" in browser.evaluate(TEXTS % "#summary")[0]
    assert browser.evaluate(TEXTS % "#eliminated") == ["The master eliminated no worker in any run."]


def test_switches_metric_and_values_at_the_pointer(browser: Browser, tmp_path: Path) -> None:
    record = records.made_record(algorithm=["A", "B", "C"], attack=["x", "y"], n_byzantine=[2, 4], seed=[0, 1])
    shown(browser, tmp_path, record)
    assert browser.evaluate(CURVES) == ["A,B,C"] * 2
    browser.click("#legend [data-algorithm='B']")
    assert browser.evaluate(CURVES) == ["A,C"] * 2
    browser.click("#legend [data-algorithm='B']")
    browser.click("#legend [data-algorithm='A']")
    assert browser.evaluate(CURVES) == ["B,C"] * 2

    def expected(metric: str, setting: int, attack: str, k: int, decimals: int | None) -> list[str]:
        lines = {}
        for run in record["runs"]:
            if run["algorithm"] != "A" and run["attack"] == attack and run["n_byzantine"] == setting:
                lines.setdefault(run["algorithm"], []).append(run["curves"][metric][run["iterations"].index(k)])
        text = (lambda v: f"{v:.{decimals}f}") if decimals else (lambda v: f"{float(f'{v:.4g}'):#.4g}")
        order = sorted(lines.items(), key=lambda line: -sum(line[1]))
        values = [f"{name} {text(sum(v) / len(v))} {text(min(v))}\u2013{text(max(v))}" for name, v in order]
        return [f"{metric} at iteration {k}", *values]

    # The plot reaches from 52 pixels at the left to 10 before the right end, for iterations 0 to 950.
    width = browser.evaluate("document.querySelector('.panel svg').viewBox.baseVal.width")
    for attack, panel in ("x", 1), ("y", 2):
        for k, near in (0, 10), (450, 455), (950, 940):
            across = (52 + (width - 62) * near / 950) / width
            browser.move(*browser.point(f".panel:nth-child({panel}) svg", across))
            assert browser.evaluate(READOUT) == expected("accuracy", 2, attack, k, 3), (attack, k)
    choose(browser, "document.querySelector('#metric')", 1)
    choose(browser, "document.querySelector('#setting')", 1)
    assert "Loss by iteration" in browser.evaluate("document.querySelector('#curves-caption').innerText")
    assert "4 of 20 workers Byzantine" in browser.evaluate("document.querySelector('#curves-caption').innerText")
    browser.evaluate("document.querySelector('.panel svg').focus()")
    for key, k in ("End", 950), ("ArrowLeft", 900), ("Home", 0), ("ArrowRight", 50), ("ArrowLeft", 0), ("ArrowLeft", 0):
        browser.key(key)
        assert browser.evaluate(READOUT) == expected("loss", 4, "x", k, None), key
        assert browser.evaluate("document.querySelector('.panel svg').getAttribute('aria-valuenow')") == str(k)
    browser.key("Escape")
    assert browser.evaluate(READOUT) is None
    for panel, attack in (1, "x"), (2, "y"):  # a finger that touches one plot, then the other
        x, y = browser.point(f".panel:nth-child({panel}) svg", (52 + (width - 62) * 0.48) / width)
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        browser.frame()
        assert browser.evaluate(READOUT) == expected("loss", 4, attack, 450, None), attack
    before = browser.evaluate("document.querySelector('.mean').getAttribute('d')")
    choose(browser, "document.querySelector('#range')", 2)
    assert browser.evaluate("document.querySelector('.mean').getAttribute('d')") != before, "logarithmic"
    assert browser.errors == []


def test_curves_by_simulated_time(browser: Browser, tmp_path: Path) -> None:
    """Seeds evaluated at different times count as steps; the pointer reads every line at its last evaluation."""
    record = records.made_record(evaluations=3, algorithm=["A", "B"], seed=[0, 1]) | {"x": "time"}
    curves = {"A": ([0, 0.4, 0.8], [0, 0.6, 0.9]), "B": ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])}
    times = {"A": ([0.0, 2.0, 4.0], [0.0, 3.0, 3.5]), "B": ([0.0, 1.25, 4.0], [0.0, 1.25, 4.0])}
    for run in record["runs"]:
        name, seed = run["algorithm"], run["seed"]
        run |= {"curves": {"accuracy": curves[name][seed]}, "time": times[name][seed]}
    record["metrics"] = ["accuracy"]
    shown(browser, tmp_path, record)
    assert "Accuracy by simulated time" in browser.evaluate("document.querySelector('#curves-caption').innerText")
    assert "simulated time" in browser.evaluate("document.querySelector('.panel svg').textContent")
    browser.evaluate("document.querySelector('.panel svg').focus()")
    browser.frame()  # it scrolls there
    seen = []
    for key in ("Home", *["ArrowRight"] * 5):
        browser.key(key)
        seen.append(browser.evaluate(READOUT))
    assert seen == [
        ["accuracy at time 0", "B 0.100 0.100\u20130.100", "A 0.000 0.000\u20130.000"],
        ["accuracy at time 1.25", "B 0.200 0.200\u20130.200", "A 0.000 0.000\u20130.000"],
        ["accuracy at time 2", "A 0.200 0.000\u20130.400", "B 0.200 0.200\u20130.200"],
        ["accuracy at time 3", "A 0.500 0.400\u20130.600", "B 0.200 0.200\u20130.200"],
        ["accuracy at time 3.5", "A 0.650 0.400\u20130.900", "B 0.200 0.200\u20130.200"],
        ["accuracy at time 4", "B 0.300 0.300\u20130.300"],
    ]
    assert browser.errors == []


def test_numbers_of_any_size(browser: Browser, tmp_path: Path) -> None:
    """The ratio of the least and the greatest is beyond the largest number; labels of the axis are not cut off."""
    record = records.made_record(algorithm=["A", "B"]) | {"metric": "loss", "higher_is_better": False}
    for run, (first, last) in zip(record["runs"], [(1e306, 1.0), (1e-12, 1e-300)], strict=True):
        run["curves"]["loss"] = [first * (last / first) ** (k / 19) for k in range(20)]
        run["final"] = run["curves"]["loss"][-1]
    shown(browser, tmp_path, record, 400)
    choose(browser, "document.querySelector('#metric')", 1)
    assert browser.evaluate("document.querySelector('#range').selectedOptions[0].text") == "logarithmic"
    labels = browser.evaluate("""(svg => [...svg.querySelectorAll(".frame .end")].map(e =>
      [e.textContent, e.getBoundingClientRect().left - svg.getBoundingClientRect().left]))
      (document.querySelector(".panel svg"))""")
    assert any("e\u2212" in text and len(text) == 6 for text, _ in labels), labels
    assert all(left >= 0 for _, left in labels), labels
    paths = browser.evaluate("Array.from(document.querySelectorAll('.mean'), e => e.getAttribute('d'))")
    ends = [[float(path.replace("M", "L").split("L")[i].split()[1]) for i in (1, -1)] for path in paths]
    assert ends[0][0] < ends[0][1] < ends[1][0] < ends[1][1], ends
    assert browser.errors == []


def test_what_diverges_leaves_the_pictures_and_the_others_are_seen(browser: Browser, tmp_path: Path) -> None:
    record = records.made_record(algorithm=["A", "B", "C"]) | {"metric": "loss", "higher_is_better": False}
    for run, rate in zip(record["runs"], [0.7, 0.8, 1e15], strict=True):
        run["curves"]["loss"] = [2.0 * rate**k for k in range(20)]
        run["final"] = run["curves"]["loss"][-1]
    shown(browser, tmp_path, record)
    caption = "document.querySelector('#curves-caption').innerText"
    assert "One that ends a thousand times higher than it began leaves the picture." in browser.evaluate(caption)
    labels = browser.evaluate("Array.from(document.querySelectorAll('.frame .end'), e => e.textContent)")
    assert not any("e" in label for label in labels), labels
    colors = "Array.from(document.querySelectorAll('.heat tbody td'), e => getComputedStyle(e).backgroundColor)"
    assert len(set(browser.evaluate(colors))) == 2, "the best, and two of the worst: B and C"
    assert "worst 0.02882 and beyond" in browser.evaluate("document.querySelector('#scale').innerText")
    browser.click("#legend [data-algorithm='A']")
    browser.click("#legend [data-algorithm='B']")
    assert "leaves the picture" not in browser.evaluate(caption), "alone it is seen"
    labels = browser.evaluate("Array.from(document.querySelectorAll('.frame .end'), e => e.textContent)")
    assert any("e" in label for label in labels), labels
    assert browser.errors == []


def test_eliminated_workers(browser: Browser, tmp_path: Path) -> None:
    record = records.made_record(algorithm=["A", "B", "C"], seed=[0, 1])
    for run, eliminated in zip(record["runs"], [{"18": 3, "19": 5}, {"18": 7}] * 2 + [{"0": 4}, {}], strict=True):
        run["eliminated"] = eliminated
    shown(browser, tmp_path, record)
    titles = browser.evaluate(TEXTS % ".workers figcaption")
    assert titles == [
        "zero: A, B each eliminated 3 of 4 Byzantine and 0 of 36 regular workers over 2 seeds",
        "zero: C eliminated 0 of 4 Byzantine and 1 of 36 regular workers over 2 seeds",
    ]
    gone = "Array.from(document.querySelectorAll('.workers .gone'), e => [e.innerText, e.title])"
    assert browser.evaluate(gone) == [
        ["18\n3\u20137", "worker 18, Byzantine: eliminated at iteration 3, 7"],
        ["19\n5 \u00b7 1/2", "worker 19, Byzantine: eliminated at iteration 5"],
        ["0\n4 \u00b7 1/2", "worker 0, regular: eliminated at iteration 4"],
    ]


def test_dark_light_and_print(browser: Browser, tmp_path: Path) -> None:
    record = records.made_record(algorithm=["Ideal", "ADMM"], attack=[f"attack {i}" for i in range(9)])
    shown(browser, tmp_path, record)
    assert record["algorithms"]["Ideal"]["color"] == "#000000"
    colors = """[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
      getComputedStyle(document.querySelector(".mean")).stroke].map(c => c.match(/\\d+/g).slice(0, 3)
        .reduce((sum, v) => sum + Number(v), 0) / 765)"""

    def is_dark() -> bool:
        paper, ink, line = browser.evaluate(colors)
        assert abs(paper - ink) > 0.7, "text can be read"
        assert abs(paper - line) > 0.7, "the black line can be seen"
        return bool(paper < 0.5)

    label = "document.querySelector('#theme').textContent"
    assert not is_dark()
    browser.media(scheme="dark")
    assert is_dark()
    assert browser.evaluate(label) == "Light"
    browser.click("#theme")
    assert not is_dark()
    browser.click("#theme")
    browser.media(scheme="light")
    assert is_dark(), "the reader's choice stays"
    browser.media("print", "dark")
    assert not is_dark(), "paper is light"
    hidden = "['nav', '#controls', '#legend input'].map(s => getComputedStyle(document.querySelector(s)).display)"
    assert browser.evaluate(hidden) == ["none"] * 3
    browser.media()
    tables = "document.querySelectorAll('.finals').length"
    browser.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {tables} }})")
    assert browser.pdf().startswith(b"%PDF")
    assert browser.evaluate("window.printed") == 2, "ten columns in two tables"
    assert browser.evaluate(f"[{tables}, document.querySelector('details').open]") == [1, False], "as before"
    assert browser.errors == []
