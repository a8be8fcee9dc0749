"""What comes from outside is data: nothing in it is executed, nothing is unpickled (docs/guides/limits.md)."""

from __future__ import annotations

import ast
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path
from tflq.errors import TflqError

PATH = str(demo_model_path())
UNSAFE_MODULES = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "yaml", "runpy", "code"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "execfile"}

# What may be executed, and why: a file that the user names as code, and tflq's own words to its own child process.
TRUSTED = {
    ("tflq/user_code.py", "exec"),
    ("tflq/user_code.py", "compile"),
    ("tflq/oracle/protocol.py", "pickle"),
}


def unsafe(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports or calls that runs what it is given, and loads of numpy that would unpickle."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.partition(".")[0] in UNSAFE_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE_MODULES:
            yield node.module or ""
        elif isinstance(node, ast.Call):
            name = dotted_name(node.func)
            if name in UNSAFE_CALLS:
                yield name
            allowed = {k.arg: ast.unparse(k.value) for k in node.keywords}.get("allow_pickle")
            if allowed != "False" and (allowed is not None or name in ("np.load", "np.save", "numpy.load")):
                yield f"{name}(allow_pickle={allowed})"
            if any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords) or name == "os.system":
                yield f"{name} by a shell"


def dotted_name(node: ast.expr) -> str:
    """Return the text of a name or an attribute; "" for the result of another expression, which is quicker to tell."""
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def test_the_code_executes_and_unpickles_nothing_but_what_is_trusted() -> None:
    found = set()
    for path in (ROOT / "tflq").rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        found |= {(name, what) for what in unsafe(ast.parse(path.read_text(encoding="utf-8")))}
    assert found == TRUSTED


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("import yaml", "yaml"),
        ("from pickle import loads", "pickle"),
        ("np.load(path)", "np.load(allow_pickle=None)"),
        ("np.load(path, allow_pickle=True)", "np.load(allow_pickle=True)"),
        ("read_array(f, allow_pickle=yes)", "read_array(allow_pickle=yes)"),
        ("eval(text)", "eval"),
        ("run(text, shell=True)", "run by a shell"),
    ],
)
def test_the_search_finds_what_is_unsafe(source: str, what: str) -> None:
    assert list(unsafe(ast.parse(source))) == [what]


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


@pytest.fixture
def bombs(tmp_path: Path) -> Iterator[list[str]]:
    """Yield .npy, .npz and plain pickles under many names; none may be executed."""
    mark = tmp_path / "executed"
    array = np.array([Bomb(mark)], object)
    pickle.loads(pickle.dumps(array))
    assert mark.exists(), "the bomb works"
    mark.unlink()
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", allow_pickle=True, x=array)
    names = ["a.npy", "a.npz"]
    for suffix in ("npy", "npz", "bin", "json", "tflite", "csv", "xml", "txt"):
        (tmp_path / f"p.{suffix}").write_bytes(pickle.dumps(Bomb(mark)))
        names.append(f"p.{suffix}")
    yield [str(tmp_path / name) for name in names]
    assert not mark.exists()


def test_pickles_in_the_place_of_any_file_are_refused(bombs: list[str]) -> None:
    uses = {
        "model": lambda path: tflq.run(path),
        "samples": lambda path: tflq.run(PATH, path),
        "calibration": lambda path: tflq.calibrate(PATH, tflq.CalibrationOptions(samples=path)),
        "ranges": lambda path: tflq.calibrate(PATH, tflq.CalibrationOptions(ranges=path)),
        "template": lambda path: tflq.run(PATH, target="aipu", calibration=tflq.CalibrationOptions(template=path)),
        "settings": lambda path: tflq.run(PATH, target=tflq.TargetOptions("gap9-ne16", file=path)),
        "recipe": lambda path: tflq.run(PATH, target=tflq.TargetOptions("tflite", settings=(f"recipe={path}",))),
        "baseline": lambda path: tflq.verify_baseline(path),
        "dump": lambda path: tflq.compare(PATH, path),
        "labels": lambda path: tflq.bench(PATH, path),
    }
    for what, use in uses.items():
        for path in bombs:
            with pytest.raises(TflqError) as refused:
                use(path)
            assert "\n" not in str(refused.value), (what, path)


def test_code_in_settings_is_text(tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    for text in (f"__import__('pathlib').Path({str(mark)!r}).touch()", f"$(touch {mark})", f"`touch {mark}`"):
        for rule in (f"0:weight_bits={text}", f"{text}:weight_bits=4"):
            with pytest.raises(TflqError):
                tflq.run(PATH, target=tflq.TargetOptions("gap9-ne16", layers=(rule,)))
        with pytest.raises(TflqError):
            tflq.run(PATH, target=tflq.TargetOptions("gap9-ne16", settings=(f"weight_bits={text}",)))
    assert not mark.exists()
    assert os.listdir(tmp_path) == []
