"""The judges of test files are told by their code, and files without an outside judge do not become more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.judges import NOBODY, NUMBERS, TEXT, find_test_files, first_judge, judges_of

MOST_WITHOUT = 16
"""Lower it when a file gets an outside judge; never raise it."""


def test_files_without_an_outside_judge_do_not_become_more() -> None:
    without = [path.name for path in find_test_files() if first_judge(path) == NOBODY]
    assert len(without) <= MOST_WITHOUT, without


@pytest.mark.parametrize(
    ("source", "judges"),
    [
        ("def test_a(oracle): check(oracle)", {"TFLite"}),
        ("from tests.support.c_compiler import compiler\ndef test_a(): run(compiler())", {"reader"}),
        ("from tests.support.c_compiler import compiler\ndef test_a(): pass", {NOBODY}),
        ("def test_a(): pytest.importorskip('onnx')", {"reader"}),
        ("FILE = 'golden/a.npz'\ndef helper(): return FILE\ndef test_a(): helper()", {"tool"}),
        ("def test_a(): assert f() == 17", {NUMBERS}),
        ("def test_a(): assert f() == 1", {NOBODY}),
        ("@pytest.mark.parametrize(('x', 'y'), [(1, 3)])\ndef test_a(x, y): assert f(x) == y", {NUMBERS}),
        ("def test_a():\n    with pytest.raises(ValueError, match='no'): f()", {TEXT}),
        ("def test_a(): assert f() == g()", {NOBODY}),
    ],
)
def test_judges_are_told_by_the_code(source: str, judges: set[str], tmp_path: Path) -> None:
    path = tmp_path / "test_a.py"
    path.write_text(source)
    assert judges_of(path) == judges
