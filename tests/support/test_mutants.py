"""Which places scripts/mutants changes, and which it leaves alone."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.mutants import compiles, mutations
from tests.support.mutating import change, load


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("y = a + b", ["y = a - b"]),
        ("y = (a) >= (b)", ["y = (a) > (b)"]),
        ("y = x is not None", ["y = x is None"]),
        ("y = np.floor(x)", ["y = np.ceil(x)"]),
        ("y = min(x)", ["y = max(x)"]),
        ("y = 7", ["y = 8"]),
        ("y = 0.5", ["y = 1.0"]),
        ("y = a if b else c", ["y = a if not (b) else c"]),
        ("y = not a", ["y = a"]),
        ("zip(a, b, strict=True)", []),
        ("y = x.reshape(-1, 3)", ["y = x.reshape(1, 3)", "y = x.reshape(-1, 4)"]),
        ("def f(x: int = 3) -> int:\n    '''Add 1.'''\n    raise ValueError(f'{x + 1}')", ["3", "4"]),
    ],
)
def test_single_places(source: str, changed: list[str]) -> None:
    text = source.encode()
    found = [m.apply(text).decode() for m in mutations(text) if compiles(text, m)]
    assert found == (changed if not source.startswith("def") else [source.replace(*changed)])


def test_places_know_their_functions() -> None:
    source = b"A = 1\n\n\n@cache\ndef f(x):\n    def g():\n        return x + 1\n    return g\n"
    assert [(m.line, m.functions) for m in mutations(source)] == [(1, ()), (7, (4, 6)), (7, (4, 6))]


def test_functions_with_assertions_are_changed(tmp_path: Path) -> None:
    """Pytest writes assertions anew before the module runs; lambdas of one line keep their own code."""
    file, there = tmp_path / "module.py", dict[str, Any]()
    source = "def f(x):\n    assert x\n    return x + 1\n\n\na, b = lambda: 3, lambda: 5\n"
    file.write_text(source)
    written = source.replace("assert x", "assert x, 'written anew'")
    exec(compile(written, str(file), "exec", dont_inherit=True), there)
    gc.freeze()  # as after collection
    change(file, source.replace("x + 1", "x - 1").replace("5", "6"))
    assert [there["f"](7), there["a"](), there["b"]()] == [6, 3, 6]


def test_kernels_are_loaded_before_mutants_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry loads them at their first use, in a child then, with the code of the file."""
    names = [f"tflq.interpreter.kernels.tflite{part}" for part in (".svdf", "")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    load(["tflq/interpreter/kernels/tflite/svdf.py", "tflq/interpreter/kernels/tflite/__init__.py"])
    assert all(name in sys.modules for name in names)
