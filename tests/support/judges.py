"""The judges of a test file: TFLite, a tool's recorded answer, a public reader, numbers or text by hand, or none.

A judge is read from the code. The names that the test functions use are followed through the file and the modules of
tests/ that it imports. TFLite, tools and readers are recognized by imported modules, recorded files and programs;
numbers and text by hand by assertions that compare with literals, in the assertion or in the test's parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.tracked import ROOT

NUMBERS, TEXT, NOBODY = "numbers by hand", "text by hand", "nobody"
MODULES = {
    "TFLite": ("ai_edge_litert", "tensorflow", "tflq.oracle", "tflq.api.verify"),
    "reader": (
        *("onnx", "onnxruntime", "openvino", "flatbuffers", "google.protobuf", "xml", "jsonschema", "html", "nbformat"),
        *("scipy", "sklearn", "PIL", "pycocotools", "pandas", "serial", "distributed", "dask", "librosa", "zipfile"),
        *("wave", "csv", "configparser", "tests.support.c_compiler", "statistics", "yaml", "ctypes", "urllib"),
    ),
}
"""Judge -> what test code imports if it asks that judge."""
TEXTS = {
    "TFLite": ("tflite.verify",),
    "tool": (
        *(
            "aipu_layers.json.xz",
            "gap9_networks.json.xz",
            "tpu_mlir_networks.json.xz",
            "golden",
            "gap9_expressions",
            "nntool",
        ),
        *("tpu_mlir_more", "aipu_more", "whitepaper", "compass", "mlperf", "recorded"),
    ),
    "reader": ("openssl", "gcc", "chromium", "sh", "bash"),
}
"""Judge -> strings in test code: names of recorded answers, folders of TFLQ_DATA, programs."""
JUDGES = ("TFLite", "tool", "reader", NUMBERS, TEXT, NOBODY)
"""In order: a file counts for the first of its judges."""


def judges_of(path: Path) -> set[str]:
    """Return all judges of a test file."""
    todo = [(path, name) for name in _definitions(path) if name.lower().startswith("test")]
    seen, judges = set(todo), set[str]()
    while todo:
        shown = _read_name(*todo.pop())
        judges |= shown.judges
        todo += shown.steps - seen
        seen |= shown.steps
    return judges or {NOBODY}


def first_judge(path: Path) -> str:
    """Return the judge that a test file counts for."""
    judges = judges_of(path)
    return next(judge for judge in JUDGES if judge in judges)


class _Name(NamedTuple):
    """What a name of a test module shows: judges, and further names with their files."""

    judges: frozenset[str]
    steps: frozenset[tuple[Path, str]]


@cache
def _read_name(home: Path, name: str) -> _Name:
    judges, steps = set[str](), set[tuple[Path, str]]()
    for statement in _definitions(home).get(name, []):
        judges |= _judges_of_node(statement)
        if isinstance(statement, ast.ImportFrom):
            target = _find_test_module(statement)
            names = {a.name for a in statement.names if (a.asname or a.name) == name}
            steps |= {(target, other) for other in names if target}
        else:  # arguments are names of fixtures
            nodes = list(ast.walk(statement))
            steps |= {(home, node.id) for node in nodes if isinstance(node, ast.Name)}
            steps |= {(home, node.arg) for node in nodes if isinstance(node, ast.arg)}
    return _Name(frozenset(judges), frozenset(steps))


def _find_test_module(statement: ast.ImportFrom) -> Path | None:
    """Return the file of a module of tests/ that names are imported from."""
    path = ROOT / (statement.module or "").replace(".", "/")
    if not (statement.module or "").startswith("tests"):
        return None
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()), None)


@cache
def _definitions(path: Path) -> Mapping[str, list[ast.stmt]]:
    """Return the statements of a test module's top level by the names that they define, with conftest's fixtures."""
    definitions: dict[str, list[ast.stmt]] = {}
    for statement in _top_level(ast.parse(path.read_text(encoding="utf-8")).body):
        for name in _names_of(statement):
            definitions.setdefault(name, []).append(statement)
    conftest = ROOT / "tests" / "conftest.py"
    if path.name.startswith("test_") and path != conftest:
        for name, statements in _definitions(conftest).items():
            definitions.setdefault(name, statements)
    return definitions


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _top_level(statement.body)
        else:
            yield statement


def _names_of(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a module's top level defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).split(".")[0] for alias in statement.names]
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def _judges_of_node(statement: ast.AST) -> set[str]:
    """Return the judges that a statement of a module's top level shows."""
    modules = set(_imports(statement))
    texts = {n.value for n in ast.walk(statement) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    found = {
        judge for judge, names in MODULES.items()
        for name in names if any(module == name or module.startswith(f"{name}.") for module in modules)
    }  # fmt: skip
    found |= {
        judge for judge, words in TEXTS.items() if any(word in text.split("/") for word in words for text in texts)
    }
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        found |= set(_stated_values(statement))
    return found


def _imports(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _is_call_of(node, "importorskip"):
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def _stated_values(function: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """Yield the kinds of values that the assertions of a function compare with."""
    parameters: dict[str, set[str]] = {}
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and len(decorator.args) > 1 and _is_call_of(decorator, "parametrize"):
            kinds = set(_literal_kinds(decorator.args[1]))
            for node in ast.walk(decorator.args[0]):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    parameters |= {word.strip(): kinds for word in node.value.split(",")}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and _is_call_of(node, "raises") and any(k.arg == "match" for k in node.keywords):
            yield TEXT
        elif isinstance(node, ast.Assert):
            for compare in (n for n in ast.walk(node.test) if isinstance(n, ast.Compare)):
                for side in (compare.left, *compare.comparators):
                    yield from _literal_kinds(side)
                    yield from parameters.get(side.id, ()) if isinstance(side, ast.Name) else ()


def _is_call_of(call: ast.Call, name: str) -> bool:
    called = call.func
    return name == (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", ""))


def _literal_kinds(node: ast.AST) -> Iterator[str]:
    """Yield the kinds of an expression's literals; 0 and 1 and empty text occur in every test and do not count."""
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Constant)
            and not isinstance(inner.value, bool)
            and inner.value not in (0, 1, "", None)
        ):
            yield TEXT if isinstance(inner.value, str) else NUMBERS


def find_test_files() -> list[Path]:
    """Return all test files."""
    return sorted((ROOT / "tests").rglob("test_*.py"))
