"""Imports only point down: the table MAY_IMPORT gives each part of tflq its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest

from tests.support.tracked import ROOT

# What each part of tflq may import of the others. A part is a folder or a module right below tflq/.
GROUND = {"arrays", "backends", "errors", "files", "limits", "plugins", "quoting", "units", "user_code"}
BELOW_CONVERTERS = GROUND | {"graph", "schemas", "interpreter"}
BELOW_SAMPLING = BELOW_CONVERTERS | {"converters"}
BELOW_BENCHMARKS = BELOW_SAMPLING | {"sampling", "parallel", "oracle", "diagnosis", "emit"}
MAY_IMPORT = {
    "arrays": set[str](),
    "plugins": set[str](),
    "quoting": set[str](),
    "user_code": set[str](),
    "errors": {"quoting"},
    "backends": {"errors", "limits"},
    "units": set[str](),
    "files": {"errors"},
    "limits": {"errors"},
    "graph": GROUND,
    "schemas": GROUND,
    "interpreter": GROUND | {"graph", "schemas"},
    "converters": BELOW_CONVERTERS,
    "tflite_interpreter": BELOW_CONVERTERS | {"converters"},
    "lite": {"errors", "tflite_interpreter"},
    "sampling": BELOW_SAMPLING,
    "parallel": BELOW_SAMPLING | {"sampling", "tflq"},
    "oracle": BELOW_SAMPLING | {"sampling", "parallel"},
    "diagnosis": BELOW_SAMPLING | {"sampling", "parallel", "oracle", "tflq"},
    "emit": BELOW_SAMPLING | {"sampling", "parallel", "oracle", "diagnosis"},
    "benchmarks": BELOW_BENCHMARKS,
    "precision": BELOW_BENCHMARKS | {"benchmarks", "tflq"},
    "report": BELOW_BENCHMARKS | {"benchmarks", "precision", "tflq"},
    "api": BELOW_BENCHMARKS | {"benchmarks", "precision", "report", "tflq"},
    "cli": BELOW_BENCHMARKS | {"api", "benchmarks", "precision", "report", "tflq"},
    "__main__": {"cli"},
    "pytest_plugin": {"api", "diagnosis", "quoting"},
}

PARTS = sorted({path.stem for path in (ROOT / "tflq").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))})


@dataclass(frozen=True)
class Imports:
    """Full names of the modules and names that a module imports, wherever in its source.

    Attributes:
        runtime: Imports that run.
        typing: Imports below `if TYPE_CHECKING`, which only annotations need.
    """

    runtime: frozenset[str]
    typing: frozenset[str]

    @property
    def every(self) -> frozenset[str]:
        return self.runtime | self.typing


def read_imports(source: str, package: tuple[str, ...]) -> Imports:
    """Return the imports of a module of `package`."""
    runtime, typing = set[str](), set[str]()
    todo: list[tuple[ast.AST, set[str]]] = [(ast.parse(source), runtime)]
    while todo:
        node, names = todo.pop()
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            names.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.stmt):  # expressions hold no imports
            is_typing = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            todo += [(child, typing if is_typing else names) for child in ast.iter_child_nodes(node)]
        elif isinstance(node, (ast.mod, ast.excepthandler, ast.match_case)):
            todo += [(child, names) for child in ast.iter_child_nodes(node)]
    return Imports(frozenset(runtime), frozenset(typing - runtime))


@cache
def imports_of_files() -> dict[str, Imports]:
    """Return the imports of each file of tflq, by its path from the root."""
    paths = sorted(path.relative_to(ROOT) for path in (ROOT / "tflq").rglob("*.py"))
    return {p.as_posix(): read_imports((ROOT / p).read_text(encoding="utf-8"), p.parent.parts) for p in paths}


def parts_of(names: frozenset[str]) -> set[str]:
    """Return the parts of tflq among imported names; "tflq" stands for the package's own top module."""
    known = {*PARTS, *MAY_IMPORT}
    split = (name.split(".") for name in names)
    return {name[1] if len(name) > 1 and name[1] in known else "tflq" for name in split if name[0] == "tflq"}


@pytest.mark.parametrize("part", [part for part in PARTS if part != "__init__"])
def test_imports_point_down(part: str) -> None:
    assert part in MAY_IMPORT, f"tflq/{part} is new: give it its place here and in docs/internals/architecture.md"
    allowed = MAY_IMPORT[part] | {part}
    files = {
        name: of for name, of in imports_of_files().items() if name.startswith((f"tflq/{part}/", f"tflq/{part}.py"))
    }
    assert files
    assert {
        f"{name} imports tflq.{other}" for name, of in files.items() for other in parts_of(of.every) - allowed
    } == set()


@cache
def read_modules() -> dict[str, frozenset[str]]:
    """Return each module of tflq with the modules that it imports, in functions too; imports of types are left out."""
    files = imports_of_files()
    names = {path: path.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in files}
    known = set(names.values())
    modules = {}
    for path, name in names.items():
        homes = {full if full in known else full.rpartition(".")[0] for full in files[path].runtime}
        modules[name] = frozenset(homes & known - {name})
    return modules


def find_circle(modules: Mapping[str, frozenset[str]]) -> list[str]:
    """Return modules of which each imports the next one, and the last one the first; empty without a circle."""
    state: dict[str, bool] = {}  # whether all imports of a module were followed

    def follow(name: str, way: list[str]) -> list[str]:
        if name in state:
            return [] if state[name] else way[way.index(name) :]
        state[name] = False
        circles = (follow(other, [*way, name]) for other in sorted(modules[name]))
        circle = next((circle for circle in circles if circle), [])
        state[name] = True
        return circle

    return next((circle for circle in (follow(name, []) for name in modules) if circle), [])


def test_no_import_circle() -> None:
    assert find_circle(read_modules()) == []


def test_imports_in_functions_and_faces_of_packages_count() -> None:
    modules = read_modules()
    assert "tflq.report" in modules["tflq.api.result"]  # imported inside a function
    assert "tflq.interpreter.samples" in modules["tflq.interpreter.kernels.tflite.mul"]
    assert "tflq.sampling.given" in modules["tflq.sampling"]
    assert len(modules) > 600


@pytest.mark.parametrize(
    ("modules", "circle"),
    [
        ({"a": {"b", "c"}, "b": {"c"}, "c": set[str]()}, []),
        ({"a": {"b"}, "b": {"a"}}, ["a", "b"]),
        ({"a": {"b"}, "b": {"c", "d"}, "c": set[str](), "d": {"b"}}, ["b", "d"]),
    ],
)
def test_a_circle_is_named(modules: dict[str, set[str]], circle: list[str]) -> None:
    assert find_circle({name: frozenset(others) for name, others in modules.items()}) == circle


BELOW_KERNELS = ("recording", "operands", "accumulate", "numerics", "layers")
"""Packages of the interpreter from the ground up; each imports the ones before it only, and the modules beside them."""


@pytest.mark.parametrize("package", BELOW_KERNELS)
def test_packages_below_the_kernels_import_down(package: str) -> None:
    folder = "tflq.interpreter"
    modules = read_modules()
    lower = {f"{folder}.{name}" for name in BELOW_KERNELS[: BELOW_KERNELS.index(package) + 1]}
    files = {name for name in modules if f"{name}.".startswith(f"{folder}.{package}.")}
    above = {
        f"{name} imports {other}"
        for name in files
        for other in modules[name]
        if other.count(".") >= 2 and other.startswith(folder) and ".".join(other.split(".")[:3]) not in lower
    }
    beside = {f"{folder}.{name}" for name in ("layout", "registry", "samples")}
    assert files
    assert {line for line in above if line.rpartition(" ")[2] not in beside} == set()


def test_the_interpreter_knows_no_file_of_a_target() -> None:
    """Keys and records of a target's files belong to its emitter; TFLite's own strings and flexbuffers are data."""
    files = {name: of.every for name, of in imports_of_files().items() if name.startswith("tflq/interpreter/")}
    schemas = {
        (name, full.split(".")[2]) for name, of in files.items() for full in of if full.startswith("tflq.schemas.")
    }
    allowed = ("tflite", "flatbuffer")
    assert {f"{name} imports tflq.schemas.{schema}" for name, schema in schemas if schema not in allowed} == set()


CLI_RUNS = GROUND | {
    "sampling",
    "parallel",
    "oracle",
    "diagnosis",
    "emit",
    "api",
    "benchmarks",
    "cli",
    "report",
    "tflq",
}
"""What a command imports to do something: use cases, and the words and kinds of what it prints; the rest are types."""


def test_commands_parse_and_print() -> None:
    files = {name: of.runtime for name, of in imports_of_files().items() if name.startswith("tflq/cli/")}
    above = {(name, part) for name, of in files.items() for part in parts_of(of) - CLI_RUNS}
    assert {f"{name} imports tflq.{part}; let tflq.api do it" for name, part in above} == set()


@pytest.mark.parametrize("package", ["click", "rich"])
def test_only_the_command_line_imports(package: str) -> None:
    importers = {n for n, of in imports_of_files().items() if package in {m.split(".")[0] for m in of.every}}
    assert importers
    assert {name for name in importers if not name.startswith("tflq/cli/")} == set()


def test_the_map_names_files_that_exist() -> None:
    """A name is a file or folder of its paragraph's package, or of tflq where it is named from there."""
    page = (ROOT / "docs" / "internals" / "packages.md").read_text(encoding="utf-8")
    package = ROOT / "tflq"
    checked, missing, own = 0, [], "tflq/"
    for line in page.splitlines():
        heading = re.match(r"(?:- )?`(tflq/[\w/]*)`[ :,]", line)
        own = heading[1] if heading else own
        for name in re.findall(r"`([\w/<>.]+(?:/|\.py))`", line):
            checked += 1
            pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
            known = any((ROOT / own).rglob(pattern)) or any(package.glob(pattern)) or (ROOT / pattern).exists()
            missing += [] if known else [f"{own}: {name}"]
    assert checked > 100
    assert missing == []


def test_imports_for_annotations_do_not_count() -> None:
    source = "if TYPE_CHECKING:\n    from tflq.graph import Graph\nfrom tflq.api import run"
    imports = read_imports(source, ())
    assert parts_of(imports.runtime) == {"api"}
    assert parts_of(imports.every) == {"api", "graph"}


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("import tflq.converters.tflite", {"converters"}),
        ("from tflq import errors", {"errors"}),
        ("from tflq import Interpreter", {"tflq"}),
        ("def f():\n    from ..graph.model import Graph", {"graph"}),
        ("try:\n    pass\nexcept OSError:\n    import tflq.errors", {"errors"}),
        ("match x:\n    case 1:\n        import tflq.errors", {"errors"}),
        ("if x:\n    pass\nelse:\n    import tflq.errors", {"errors"}),
        ("import numpy, tflqx", set()),
    ],
)
def test_every_kind_of_import_is_seen(source: str, parts: set[str]) -> None:
    assert parts_of(read_imports(source, ("tflq", "interpreter")).runtime) == parts
