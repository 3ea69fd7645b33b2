"""Rows, frames, tables and pictures of a study, against numbers worked by hand."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from byzadmm import Result, Study, catalogue
from byzadmm.study import AXES, Cell, Missing
from byzadmm.study.table import paired_interval


def made(finals: dict[tuple[str, str, int, str], list[float]], **more: Any) -> Study:
    """A study whose curves are 0, then the values given: one per seed."""
    axes: dict[str, list[Any]] = {axis: [] for axis in AXES}
    study = Study("made", axes, {"n_workers": 20}, **more)
    for place, values in finals.items():
        for seed, value in enumerate(values):
            cell = Cell(*place, seed)
            for axis, name in cell._asdict().items():
                if name not in axes[axis]:
                    axes[axis].append(name)
            curve = np.array([0.0, 0.5 * value, value])
            nan = np.full(3, np.nan)
            config = {"algorithm": {"name": cell.algorithm}, "n_workers": 20, "dim": 10, "dtype": "float32"}
            study.results[cell] = Result(
                config | {"byzantine": [18, 19]},
                np.array([0, 50, 100]),
                curve,
                nan,
                nan,
                nan,
                np.zeros(10),
                seconds=2.0,
            )
    return study


def test_rows_and_frames() -> None:
    study = made({("a", "none", 2, "iid"): [0.5, 0.7], ("b", "none", 2, "iid"): [0.9, 0.1]})
    gone = Cell("b", "none", 2, "iid", 1)
    del study.results[gone]
    study.missing[gone] = Missing("failed", "ValueError: no")
    rows = study.rows()
    assert [(row["algorithm"], row["seed"], row["status"]) for row in rows] == [
        ("a", 0, "done"), ("a", 1, "done"), ("b", 0, "done"), ("b", 1, "failed")
    ]  # fmt: skip
    assert [row["final_accuracy"] for row in rows[:3]] == [0.5, 0.7, 0.9]
    assert np.isnan(rows[3]["final_accuracy"])
    assert rows[3]["reason"] == "ValueError: no"
    assert study.frame().groupby("algorithm")["final_accuracy"].mean().to_dict() == {"a": 0.6, "b": 0.9}
    curves = study.frame(curves=True)
    assert curves[(curves.algorithm == "a") & (curves.seed == 1)].accuracy.tolist() == [0.0, 0.35, 0.7]
    with pytest.raises(ValueError, match="axis: expected one of algorithm"):
        study.cells(attacks="none")
    with pytest.raises(ValueError, match="algorithm: expected one of a, b; got 'A'"):
        study.finals(algorithm="A")
    with pytest.raises(ValueError, match="metric: expected one of accuracy"):
        study.final(study.cells()[0], "accurcy")


def test_intervals_are_students() -> None:
    rng = np.random.default_rng(0)
    for n in (2, 3, 5, 11, 21, 22, 40, 200):
        values = rng.normal(size=n)
        mean, half = paired_interval(values)
        low, high = stats.t.interval(0.95, n - 1, values.mean(), stats.sem(values))
        np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=2e-5, atol=1e-5)
    assert paired_interval([0.5]) == (0.5, np.inf)
    assert paired_interval([0.0, 0.0]) == (0.0, 0.0)
    np.testing.assert_allclose(paired_interval([1e300, 3e300]), np.multiply(1e300, paired_interval([1.0, 3.0])))
    assert np.isnan(paired_interval([np.inf, -np.inf])[0])


def test_the_table_pairs_differences_over_seeds_and_fits_80_columns() -> None:
    attacks = [f"attack-number-{i}" for i in range(7)]
    finals = {
        (name, attack, 2, "iid"): [base, base + 0.2]
        for (name, base), attack in itertools.product([("ideal", 0.7), ("rather-a-long-name-of-a-rule", 0.6)], attacks)
    }
    study = made(finals, ideal=("ideal",), labels={"algorithm": {"ideal": "Ideal SGD"}})
    text = study.table()
    assert max(map(len, text.splitlines())) <= 80, text
    assert text.count("0.800") == 7  # the mean of 0.7 and 0.9
    assert text.count("-0.100 ±0.000") == 7  # seeds differ by 0.2, pairs by nothing
    assert "difference to Ideal SGD, with 95% interval over paired seeds" in text
    turned = study.table(reference="rather-a-long-name-of-a-rule")
    assert turned.count("+0.100 ±0.000") == 7
    alone = made({("a", "none", 2, "iid"): [0.25]})
    assert alone.table().splitlines() == ["made, 2 of 20 Byzantine, iid: final accuracy", "      none", "a    0.250"]


def test_the_table_shows_numbers_of_any_size() -> None:
    """Columns stay apart, and a loss that is small in every run is not 0.000."""
    finals = {
        ("a", "none", 2, "iid"): [2e-7, 4e-7],
        ("b", "none", 2, "iid"): [1e-7, 1e-7],
        ("a", "flip", 2, "iid"): [4e72, 4.2e72],
        ("b", "flip", 2, "iid"): [-3e300, -1e300],
    }
    study = made(finals)
    for result in study.results.values():
        result.metrics["loss"] = result.metrics.pop("accuracy")
    lines = study.table().splitlines()
    assert [line.split() for line in lines[2:4]] == [["a", "3.0e-07", "4.1e+72"], ["b", "1.0e-07", "-2.0e+300"]]
    assert lines[-1].split() == ["b", "-2.0e-07", "±1.3e-06", "-2.0e+300", "±1.3e+301"]
    shares = made({("a", "none", 2, "iid"): [0.7, 0.7001], ("b", "none", 2, "iid"): [0.7, 0.7]})
    assert shares.table().splitlines()[-1] == "b   -0.000 ±0.001"


def test_the_table_fits_80_columns_with_long_words_and_large_numbers() -> None:
    words = ["x" * 50, "two\nlines", "c"]
    places = [(name, attack, 2, "p " * 40) for name in words for attack in [*"abcdefgh", *words]]
    for base in (0.5, 9.9999, 99999.7, -1e5, 2e12, -3e120, np.inf, np.nan):
        finals = {place: [base, 1.1 * base] for place in places}
        with np.errstate(invalid="ignore"):
            study = made(finals)
            study.title = "long " * 30
            study.missing[study.cells()[-1]] = Missing("failed", "ValueError: " + "no " * 50 + "\n" + "y" * 200)
            del study.results[study.cells()[-1]]
            lines = study.table().splitlines()
        assert max(map(len, lines)) <= 80, (base, max(lines, key=len))
        assert "".join(lines).count("y" * 50) >= 1, base


def test_a_large_study_is_read_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    study = made({(f"a{i}", f"b{j}", 2, "iid"): [0.5] * 4 for i in range(10) for j in range(10)})
    read: list[int] = []
    listed = Study.metrics
    monkeypatch.setattr(Study, "metrics", lambda self: read.append(1) or listed(self))  # type: ignore[func-returns-value]
    study.table()
    study.rows()
    study.record()
    study.heatmap()
    assert len(read) < 10


def test_labels_that_are_names_of_the_catalogue_do_not_share_a_style() -> None:
    finals = {(name, "none", 2, "iid"): [0.5] for name in ("mine", "rsa", "theirs")}
    study = made(finals, kinds={"mine": "Slow", "rsa": "Slow", "theirs": "rsa"})
    colors = [style.color for style in study.styles().values()]
    assert len(set(colors)) == 3
    assert study.styles()["theirs"].color == catalogue.STYLES["rsa"].color


def overlaps(figure: Any) -> list[str]:
    """Texts of a figure that lie over each other, or over its edge."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    texts = [figure._suptitle, *([figure._supxlabel] if figure._supxlabel else [])]
    for ax in figure.axes:
        ticks = [*zip(ax.get_xticks(), ax.get_xticklabels(), itertools.repeat(ax.get_xlim()), strict=False)]
        ticks += zip(ax.get_yticks(), ax.get_yticklabels(), itertools.repeat(ax.get_ylim()), strict=False)
        texts += [ax.title, *(label for place, label, ends in ticks if min(ends) <= place <= max(ends))]
    boxes = [
        (t.get_text(), t.get_window_extent(renderer))
        for t in texts
        if t is not None and t.get_visible() and t.get_text()
    ]
    titles = [
        (text, box)
        for text, box in boxes
        if text in {figure._suptitle.get_text(), *(a.title.get_text() for a in figure.axes)}
    ]
    bad = [f"{a[0]!r} on {b[0]!r}" for a, b in itertools.combinations(titles, 2) if a[1].overlaps(b[1])]
    width, height = figure.canvas.get_width_height()
    return bad + [
        text for text, box in boxes if box.x0 < -1 or box.y0 < -1 or box.x1 > width + 1 or box.y1 > height + 1
    ]


SHAPES = {
    "one": (1, 1, 1, 1),
    "many attacks": (4, 9, 1, 1),
    "all axes": (3, 2, 3, 3),
    "long": (12, 2, 2, 1),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_pictures_have_what_they_should_and_nothing_overlaps(shape: str, tmp_path: Path) -> None:
    a, b, c, d = SHAPES[shape]
    finals = {
        (f"algorithm with a name {i}", f"attack {'x' * (5 + j)}", q, f"dirichlet:0.{p}{'0' * p}"): [
            0.1 * i % 1,
            0.2 * i % 1,
        ]
        for i, j, q, p in itertools.product(range(a), range(b), range(2, 2 + c), range(1, 1 + d))
    }
    study = made(finals)
    lost = study.cells()[-1]
    del study.results[lost]
    del study.results[lost._replace(seed=0)]
    study.missing |= {lost: Missing("illegal", "f"), lost._replace(seed=0): Missing("illegal", "f")}
    figure = study.plot(tmp_path / "curves.png")
    assert len(figure.axes) == b * c * d
    assert overlaps(figure) == []
    [legend] = figure.legends
    assert len(legend.get_texts()) == (a if b * c * d > 1 else max(a - 1, 0))
    lines = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[0].get_lines()}
    if a > 1:
        assert lines["algorithm with a name 1"] == pytest.approx(0.15)
    for rows, columns in [("algorithm", "attack"), ("n_byzantine", "algorithm"), ("partition", "seed")]:
        figure = study.heatmap(tmp_path / "map.svg", rows=rows, columns=columns)
        assert overlaps(figure) == [], (rows, columns)
        panels = [len(study.axes[axis]) for axis in AXES if axis not in (rows, columns, "seed")]
        assert len(figure.axes) == int(np.prod(panels)) + 1  # and the color bar
    assert (tmp_path / "curves.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="columns: expected another axis than rows"):
        study.heatmap(rows="attack", columns="attack")


def test_forty_algorithms_and_long_words_fit_into_the_pictures() -> None:
    words = "and a title that goes on and on and on, as those of people do"
    for algorithms, attacks in [(40, 1), (40, 3), (3, 1), (3, 4)]:
        more = "" if algorithms > 3 else "_with_a_long_name_indeed (lam=0.1, beta=0.2, master_step=Power(c=1, p=0.5))"
        places = itertools.product(range(algorithms), range(attacks))
        study = made({(f"rule_{i}{more}", f"${j}$ {words}", 2, "iid"): [0.1, 0.2] for i, j in places})
        study.title = "rather a long title of a study " * 4
        figure = study.plot()
        assert overlaps(figure) == [], (algorithms, attacks)
        box = figure.legends[0].get_window_extent(figure.canvas.get_renderer())
        width, height = figure.canvas.get_width_height()
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) >= -1, (algorithms, attacks)
        title = figure._suptitle.get_window_extent(figure.canvas.get_renderer())
        assert title.x1 <= box.x0, (algorithms, attacks)
        panels = [ax.get_window_extent() for ax in figure.axes]
        assert min(panel.width for panel in panels) > 250, (algorithms, attacks)
        assert max(panel.x1 for panel in panels) < box.x0, (algorithms, attacks)
        figure = study.heatmap()
        assert overlaps(figure) == [], (algorithms, attacks)
        assert figure.axes[0].get_window_extent().width > 50 * attacks, (algorithms, attacks)


def test_axes_of_bytes_and_seconds() -> None:
    study = made({("a", "none", 2, "iid"): [0.5, 0.7]})
    assert study.plot(x="bytes").axes[0].get_lines()[0].get_xdata().tolist() == [
        0,
        80_000,
        160_000,
    ]  # 100 * 20 * 2 * 40
    for result in study.results.values():
        result.config |= {"n_workers": 100, "participation": 0.07}  # 7 of them, although 0.07 * 100 > 7
    assert study.plot(x="bytes").axes[0].get_lines()[0].get_xdata()[-1] == 100 * 7 * 2 * 40
    assert study.plot(x="seconds").axes[0].get_lines()[0].get_xdata().tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="x: expected one of iterations, bytes, seconds, time, arrivals; got 'clock'"):
        study.plot(x="clock")
    for x in ("time", "arrivals"):
        with pytest.raises(ValueError, match=f"x: expected runs with delays for '{x}', got some in rounds without"):
            study.plot(x=x)


def test_dollars_in_names_are_no_mathematics(tmp_path: Path) -> None:
    study = made({("cost $5", "$x_", 2, "iid"): [0.5], ("b", "$x_", 2, "iid"): [0.5]})
    study.plot(tmp_path / "a.png")
    study.heatmap(tmp_path / "b.png")
