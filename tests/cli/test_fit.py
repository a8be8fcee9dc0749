"""Tables in the width of a terminal: no word is cut in two, names keep both ends, --wide and pipes show all."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.cli.output import GAP, fitted
from tflq.units import short

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
KERAS = "model_1/mobilenetv2_1.00_96/block_13_expand_BN/FusedBatchNormV3;" * 3 + "block_13_expand/Conv2D"


@given(st.text(min_size=1, max_size=300), st.integers(5, 60))
def test_a_short_name_has_both_ends(name: str, width: int) -> None:
    found = short(name, width)
    assert len(found) <= width or found == name
    if found != name:
        head, tail = found[: (width - 3) // 3], found[(width - 3) // 3 + 3 :]
        assert (name.startswith(head), name.endswith(tail)) == (True, True)
        assert len(found) == width


WORD = st.text("abcdefgh_/0123456789", min_size=1, max_size=90)
TEXTS = st.lists(WORD, max_size=6).map(" ".join)


@given(
    st.lists(st.tuples(WORD, TEXTS, st.integers(-(10**9), 10**9).map(str)), min_size=1, max_size=8),
    st.integers(30, 200),
)
def test_what_stays_fits_and_numbers_are_whole(rows: list[tuple[str, str, str]], width: int) -> None:
    found = fitted(("name", "text", "value"), rows, width, right=("value",), least=("text",))
    assert sum(found.widths) + GAP * (len(found.widths) - 1) <= width
    assert found.columns in ((0, 1, 2), (0, 2))
    for given_row, row in zip(rows, found.rows, strict=True):
        cells = dict(zip(found.columns, row, strict=True))
        assert cells[2] == given_row[2]
        for n, cell_width in zip(found.columns, found.widths, strict=True):
            assert all(len(word) <= cell_width for word in cells[n].split())


def test_columns_go_by_importance() -> None:
    rows = [("layer_with_a_name", "1234567", "7654321", "0.123456")]
    columns, least = ("layer", "a", "b", "c"), ("b",)
    assert fitted(columns, rows, 80, columns[1:], least).columns == (0, 1, 2, 3)
    assert fitted(columns, rows, 40, columns[1:], least).columns == (0, 1, 3)
    assert fitted(columns, rows, 28, columns[1:], least).columns == (0, 1)
    assert fitted(columns, rows, 10, columns[1:], least).columns == (0,)


def on_terminal(columns: int, *arguments: object) -> list[str]:
    """Return the lines that a terminal of so many columns gets."""
    pty = pytest.importorskip("pty", reason="no pseudo-terminals on this system")
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "tflq", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=variables):
        os.close(slave)
        read = b""
        while True:
            try:
                part = os.read(master, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            read += part
    os.close(master)
    return read.decode("utf-8").replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [40, 80])
def test_a_terminal_gets_lines_of_its_width(columns: int) -> None:
    lines = on_terminal(columns, "inspect", DIGITS)
    assert not [line for line in lines if "\\x1b" in line or "\x1b" in line]
    words = [line for line in lines if len(line) > columns]
    assert all(" " not in line.strip() for line in words), words
    assert "--wide shows all" in " ".join(" ".join(lines).split())
    assert sum("int8[1,8,8,16]" in line for line in lines) >= 2


def test_wide_shows_all_on_a_terminal() -> None:
    lines = on_terminal(40, "inspect", DIGITS, "--wide", "--tensors")
    assert lines == tflq("inspect", DIGITS, "--wide", "--tensors").out.splitlines()
    assert not any("..." in line for line in lines)
