"""Pages are whole, escaped and alone; drawings are well-formed and show what they should."""

from __future__ import annotations

import math
from operator import itemgetter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.html_page import PAGE_WIDTHS, in_chromium, read_page, too_wide
from tflq.report import Chart, Page, Table, Verdict, identifier, number, render
from tflq.report.svg import Dot, Mark, area, bars, histogram, scatter

HOSTILE = "<script>alert('x')</script> & \"quotes\""

pytest.importorskip("jinja2", reason="jinja2 is not installed: it comes with tflq[report]")


def write(folder: Path, page: Page) -> Path:
    path = folder / "page.html"
    path.write_bytes(render(page))
    return path


def charts() -> list[Chart]:
    return [
        Chart(
            bars([Mark(3, HOSTILE), Mark(-2, "b", is_hot=True), Mark(math.inf, "c"), Mark(math.nan, "d")], "y", "x"),
            HOSTILE,
        ),
        Chart(histogram([0, 5, 100, 1, 0], -2, "LSB"), "counts"),
        Chart(area([Mark(10, "a"), Mark(30, "b", is_hot=True)], "bytes", "operators"), "memory"),
        Chart(scatter([Dot(1, 2, "a", on_line=True), Dot(3, 4, "b", on_line=True, is_hot=True)], "y", "x"), "front"),
    ]


def every_part() -> Page:
    columns = (identifier("", HOSTILE, itemgetter(0)), number("", "number", itemgetter(1), bar=True))
    rows = [(HOSTILE, 1), ("b", 2)]
    table = Table("", columns, rows, HOSTILE, [HOSTILE], lambda row: row[0] == "b", charts=charts, lines=[HOSTILE])
    return Page(HOSTILE, Verdict("", advice=HOSTILE), [(HOSTILE, HOSTILE)], [HOSTILE], [table])


def test_a_page_is_whole_and_everything_in_it_is_escaped(tmp_path: Path) -> None:
    reading = read_page(write(tmp_path, every_part()))
    assert reading.verdict == HOSTILE
    assert reading.tags.count("svg") == 4
    assert reading.tags.count("tr") == 3


def elements(svg: str, kind: str) -> list[ElementTree.Element]:
    return ElementTree.fromstring(svg).findall(f".//{kind}")


def test_bars_are_as_tall_as_their_values() -> None:
    rects = elements(bars([Mark(1, "a"), Mark(4, "b"), Mark(math.nan, "gap"), Mark(math.inf, "c")], "", ""), "rect")
    heights = [float(r.get("height", "")) for r in rects]
    assert len(rects) == 3
    assert heights[1] == pytest.approx(4 * heights[0], abs=0.5)
    assert heights[2] == heights[1]


def test_a_histogram_marks_all_but_zero() -> None:
    rects = elements(histogram([1, 16, 81], -1, ""), "rect")
    assert ["hot" in r.get("class", "") for r in rects] == [True, False, True]
    assert [r.findtext("title") for r in rects] == ["-1: 1", "+0: 16", "+1: 81"]


def test_points_lie_where_their_numbers_say() -> None:
    circles = elements(scatter([Dot(0, 0, "low"), Dot(10, 5, "high")], "", ""), "circle")
    x, y = ([float(c.get(k, "")) for c in circles] for k in ("cx", "cy"))
    assert x[0] < x[1]
    assert y[0] > y[1]


@pytest.mark.parametrize("draw", [lambda: bars([], "", ""), lambda: area([], "", ""), lambda: scatter([], "", "")])
def test_nothing_to_draw_is_an_empty_frame(draw) -> None:
    assert ElementTree.fromstring(draw()).tag == "svg"


def test_chromium_shows_it_without_a_word_on_its_console(tmp_path: Path) -> None:
    shown, console = in_chromium(write(tmp_path, every_part()))
    assert console == []
    assert shown.count("<svg") == 4


def test_chromium_would_have_said_a_word(tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<!doctype html><title>x</title><script>throw new Error('planted')</script>")
    _, console = in_chromium(tmp_path / "bad.html")
    assert any("planted" in line for line in console)


KERAS = "model_1/mobilenetv2_1.00_96/block_13_expand_BN/FusedBatchNormV3;" * 3 + "block_13_expand/Conv2D"


def long_names(count: int) -> Page:
    """Return a page with content of Keras networks: names of 200 characters, and figures of any length."""
    figures = ("differing", "of", "largest LSB", "rms LSB", "SQNR dB", "cosine", "saturated", "unused")
    row = ("123456789", "123456789", "1.234e+05", "1.23e+05", "-123.4", "-0.123456", "100.00%", "100.00%")
    rows = [(f"{KERAS}{n}", f"{n}/{KERAS}", *row) for n in range(count)]
    columns = [identifier("", "a", itemgetter(0)), identifier("", "b", itemgetter(1))]
    columns += [number("", head, itemgetter(n + 2)) for n, head in enumerate(figures)]
    marks = [Mark(1234567.0 * n, f"{KERAS}{n}", n == 1) for n in range(count)]
    names = dict.fromkeys(range(count), "aipu")
    drawn = [Chart(bars(marks, "SQNR, dB", "tensors", names, (2e6, "MLPerf Tiny: 90 %")), KERAS)]
    drawn += [Chart(area(marks, "bytes", "operators"), KERAS), Chart(histogram([1, 5, 1], -1, "LSB"), KERAS)]
    table = Table("", columns, rows, "t", charts=lambda: drawn)
    return Page(KERAS, Verdict("", advice=f"look at {KERAS}"), [("file", KERAS)], tables=[table])


@pytest.mark.parametrize("medium", PAGE_WIDTHS)
def test_nothing_is_wider_than_the_page(tmp_path: Path, medium: str) -> None:
    path = write(tmp_path, long_names(7))
    assert too_wide(path, medium) == []
    text = path.read_text("utf-8")
    assert f">{KERAS}3<" in text
    for figure in ("123456789", "1.234e+05", "-0.123456"):
        assert text.count(f">{figure}<") >= 7


def test_what_is_wider_than_the_page_is_found(tmp_path: Path) -> None:
    wide = bars(
        [Mark(1, "a")], "y", "a line below that has far more words than any drawing of this width can show " * 3
    )
    assert (
        too_wide(write(tmp_path, Page("t", Verdict(""), tables=[Table(charts=lambda: [Chart(wide, "c")])])), "phone")
        != []
    )


def test_a_limit_is_a_line_at_its_value_with_its_name() -> None:
    drawn = bars([Mark(50, "a"), Mark(100, "b")], "%", "", {0: "a"}, (75, "asked"))
    line = next(e for e in elements(drawn, "line") if e.get("class") == "limit")
    tops = [float(e.get("y", "")) for e in elements(drawn, "rect")]
    assert float(line.get("y1", "")) == pytest.approx(sum(tops) / 2, abs=0.2)
    assert "asked" in [e.text for e in elements(drawn, "text")]
