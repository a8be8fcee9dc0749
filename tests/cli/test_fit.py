"""Tables in the width of a terminal: no word is cut in two, names keep both ends, --wide and pipes show all."""

from __future__ import annotations

import os
import subprocess
import sys
from operator import itemgetter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.command import tflq
from tests.support.tracked import ROOT
from tflq.cli.terminal import table_lines
from tflq.report import Column, identifier, number

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


WORD = st.text("abcdefgh_/0123456789", min_size=1, max_size=60)
TEXTS = st.lists(st.text("abcdefgh", min_size=1, max_size=12), max_size=6).map(" ".join)
COLUMNS = (identifier("", "name", itemgetter(0)), Column("", "text", get=itemgetter(1), rank=1))
VALUE = number("", "value", itemgetter(2))


@example(rows=[("1" * 20, "a a a", 0)], width=35)  # rich narrows the widest column first
@given(st.lists(st.tuples(WORD, TEXTS, st.integers(-(10**9), 10**9)), min_size=1, max_size=8), st.integers(30, 200))
def test_a_table_fits_and_names_and_numbers_are_whole(rows: list[tuple[str, str, int]], width: int) -> None:
    lines = table_lines((*COLUMNS, VALUE), rows, width)
    assert max(map(len, lines)) <= width
    text = "".join(lines).replace(" ", "")
    for name, _, value in rows:
        assert str(value) in text
        assert name in text or len(name) + 15 > width


def test_columns_go_by_rank() -> None:
    columns = (identifier("", "layer", itemgetter(0)), *(number("", h, itemgetter(1), rank=r) for h, r in HEADS))
    rows = [("layer_with_a_name", 1234567)]
    heads = [table_lines(columns, rows, width)[0].split() for width in (80, 40, 30)]
    assert heads == [["layer", "a", "b", "c"], ["layer", "a", "c"], ["layer", "a"]]


HEADS = (("a", 0), ("b", 2), ("c", 1))


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
    assert [line for line in lines if len(line) > columns and " " in line.strip()] == []
    assert "--wide shows all" in " ".join(" ".join(lines).split())
    assert sum("int8[1,8,8,16]" in line for line in lines) >= 2


def test_wide_shows_all_on_a_terminal() -> None:
    lines = on_terminal(40, "inspect", DIGITS, "--wide", "--tensors")
    assert lines == tflq("inspect", DIGITS, "--wide", "--tensors").out.splitlines()
    assert not any("..." in line for line in lines)
