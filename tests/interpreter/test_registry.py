"""The registry: one kernel for an operator and arithmetic, modules imported late, refusals that list what exists."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.interpreter.kernels_for_tests import NAME, Calls, calls, module  # noqa: F401
from tests.support.draw import affine
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import ABSENT, Array, Attributes, DType, Graph, GraphBuilder, Node
from tflq.interpreter import registry
from tflq.interpreter.registry import Arithmetic, Kernel, arithmetic_of

BUILTIN = ("float", "gap9", "tflite")


def test_arithmetics_are_known_by_name() -> None:
    assert set(BUILTIN) <= set(registry.arithmetics())
    assert all(registry.arithmetic(name).name == name for name in BUILTIN)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_entry_names_a_kernel_with_both_functions(name: str) -> None:
    for operator in registry.arithmetic(name).kernels:
        kernel = registry.kernel(name, operator)
        assert callable(kernel.lower)
        assert callable(kernel.run)
        assert importlib.import_module(kernel.module).__doc__


@pytest.mark.parametrize(
    "name", ["float", "tflite", "gap9", "tpu_mlir", "openvino", "nnie", "aipu", "aipu_float", "aipu_whitepaper"]
)
def test_every_kernel_says_what_it_computes_and_where_that_comes_from(name: str) -> None:
    found = {operator: registry.kernel(name, operator) for operator in registry.arithmetic(name).kernels}
    assert [operator for operator, kernel in found.items() if not kernel.summary or not kernel.source] == []


def test_kernels_are_imported_when_they_are_needed() -> None:
    program = (
        "import sys; from tflq.interpreter.registry import arithmetic, kernel; arithmetic('tflite');"
        "name = 'tflq.interpreter.kernels.tflite.convolution'; before = name in sys.modules;"
        "kernel('tflite', 'conv_2d'); print(before, name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_new_arithmetic_and_a_new_kernel(calls: Calls) -> None:  # noqa: F811
    assert NAME in registry.arithmetics()
    assert not registry.has_kernel(NAME, "triple")
    name = module("triple", lambda node, operands: 3, lambda factor, a: (a * factor,))
    registry.register_kernel(NAME, "triple", name)
    assert registry.kernel(NAME, "triple").run(3, np.ones(2))[0].tolist() == [3, 3]
    assert registry.kernel(NAME, "triple") is registry.kernel(NAME, "triple")


def double(a: Array) -> tuple[Array, ...]:
    return (np.asarray(a * 2),)


DOUBLE = Kernel(lambda node, operands: None, lambda params, a: double(a), "2x", "docs/tests.md", stateful=True)


def test_a_kernel_object_is_a_kernel(calls: Calls) -> None:  # noqa: F811
    registry.register_kernel(NAME, "twice", DOUBLE)
    found = registry.kernel(NAME, "twice")
    assert found.run(None, np.ones(2))[0].tolist() == [2, 2]
    assert (found.summary, found.source, found.stateful, found.module) == ("2x", "docs/tests.md", True, __name__)
    with pytest.raises(TflqError, match=f"operator 'twice' of arithmetic 'tests' is registered already: {__name__}"):
        registry.register_kernel(NAME, "twice", "somewhere.else")


def test_a_row_of_a_family_is_found_by_its_operator(calls: Calls) -> None:  # noqa: F811
    family = module("family", lambda node, operands: 3, lambda factor, a: (a * factor,))
    sys.modules[family].KERNELS = {"twice": DOUBLE}  # type: ignore[attr-defined]
    assert registry.places("package", "one other", rows="first second") == {
        "one": "package.one", "other": "package.other", "first": "package.rows", "second": "package.rows",
    }  # fmt: skip
    for operator in ("twice", "triple"):
        registry.register_kernel(NAME, operator, family)
    assert registry.kernel(NAME, "twice") == replace(DOUBLE, module=family)
    assert registry.kernel(NAME, "triple").run(3, np.ones(2))[0].tolist() == [3, 3]
    del sys.modules[family].lower
    registry.register_kernel(NAME, "quadruple", family)
    with pytest.raises(TflqError, match=f"module {family} has neither a row for 'quadruple' in KERNELS nor lower"):
        registry.kernel(NAME, "quadruple")


def test_a_kernel_takes_its_summary_and_source_from_its_module() -> None:
    found = registry.kernel("tflite", "rfft2d")
    words = "the discrete Fourier transform of the last two axes, which are cut or padded with zeros to powers of two"
    assert found.summary == words
    assert found.source == "TFLite kernels/rfft2d.cc"
    assert found.module == "tflq.interpreter.kernels.plain.rfft2d"


def test_a_row_takes_what_it_does_not_say_from_the_entry_of_its_module(calls: Calls) -> None:  # noqa: F811
    family = module("described", None, None)
    sys.modules[family].__doc__ = """Rows.

    TWICE_AS_OFTEN: 3x
    TWICE: 2x, or
    x + x. Source: docs/one.md,
    docs/two.md.
    HALF: 1 : 2. Source: docs/three.md.
    """.replace("\n    ", "\n")
    sys.modules[family].KERNELS = {  # type: ignore[attr-defined]
        "twice": replace(DOUBLE, summary="", source=""), "half": replace(DOUBLE, summary=""),
    }  # fmt: skip
    for operator in ("twice", "half"):
        registry.register_kernel(NAME, operator, family)
    assert registry.kernel(NAME, "twice") == replace(
        DOUBLE, summary="2x, or x + x", source="docs/one.md, docs/two.md", module=family
    )
    assert registry.kernel(NAME, "half") == replace(DOUBLE, summary="1 : 2", module=family)


@dataclass(frozen=True)
class EntryPoint:
    name: str
    found: object
    value: str = "package:attribute"

    def load(self) -> object:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, calls: Calls) -> list[EntryPoint]:  # noqa: F811
    """Entry points of other packages; a test adds its own."""
    entries: list[EntryPoint] = []
    monkeypatch.setattr(registry, "_searched", set())
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries if group == "tflq.kernels" else [])
    return entries


def test_entry_points_are_loaded_by_name_when_a_kernel_is_missing(installed: list[EntryPoint]) -> None:
    added = []

    def register() -> None:
        added.append("here")
        registry.register_kernel(NAME, "Mine", DOUBLE)

    installed += [EntryPoint("Other", ImportError("not to be loaded")), EntryPoint("Mine", register)]
    assert registry.has_kernel(NAME, "add")
    assert not added
    assert registry.kernel(NAME, "Mine").summary == "2x"
    assert registry.has_kernel(NAME, "Mine")
    assert added == ["here"]


def test_entry_points_of_an_arithmetic(installed: list[EntryPoint]) -> None:
    installed += [
        EntryPoint("mine", lambda: registry.register_arithmetic(Arithmetic("mine", {"add": DOUBLE}))),
        EntryPoint(NAME, {NAME: {"Mine": DOUBLE, "Yours": "a.module"}}),
    ]
    assert registry.kernel("mine", "add").summary == "2x"
    assert registry.has_kernel(NAME, "Yours")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ImportError("no module"), "kernels 'Mine' of package:attribute: no module"),
        ({NAME: {"Mine": 3}}, "a function without arguments or a mapping arithmetic -> operator -> Kernel is needed"),
        ({NAME: {"add": DOUBLE}}, "operator 'add' of arithmetic 'tests' is registered already"),
        ({"nowhere": {"add": DOUBLE}}, "no arithmetic is called 'nowhere'"),
    ],
)
def test_entry_points_that_fail_say_which(installed: list[EntryPoint], found: object, message: str) -> None:
    installed.append(EntryPoint("Mine", found))
    with pytest.raises(TflqError, match=message):
        registry.has_kernel(NAME, "Mine")


def test_a_second_registration_is_refused(calls: Calls) -> None:  # noqa: F811
    for name in (NAME, "tflite", "float"):
        with pytest.raises(TflqError, match=f"arithmetic '{name}' is registered already"):
            registry.register_arithmetic(Arithmetic(name, {}))
    with pytest.raises(TflqError, match="operator 'add' of arithmetic 'tests' is registered already: tests_kernel_add"):
        registry.register_kernel(NAME, "add", "somewhere.else")


def test_what_is_missing_is_refused_with_what_exists(calls: Calls) -> None:  # noqa: F811
    known = ", ".join(registry.arithmetics())
    assert {"float", "gap9", NAME, "tflite"} <= set(known.split(", "))
    with pytest.raises(UnsupportedError, match=f"no arithmetic is called 'tflit'; there are {known}"):
        registry.arithmetic("tflit")
    with pytest.raises(
        UnsupportedError, match="operator conv_2d has no kernel in arithmetic 'tests'; it has add, double"
    ):
        registry.kernel(NAME, "conv_2d")


def graph(source: DType, result: DType, quantised: bool = False) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (2,), source, affine(source, 0.5) if quantised else None)
    return b.build([b.add("mean", [x, ABSENT], (2,), result, affine(result, 0.5) if quantised else None)])


@pytest.mark.parametrize(
    ("source", "result", "quantised", "expected"),
    [
        (DType.FLOAT32, DType.FLOAT32, False, "float"),
        (DType.FLOAT16, DType.FLOAT32, False, "float"),
        (DType.INT8, DType.INT8, True, "tflite"),
        (DType.INT32, DType.INT32, False, "tflite"),
        (DType.FLOAT32, DType.INT64, False, "tflite"),
        (DType.INT32, DType.FLOAT32, False, "tflite"),
    ],
)
def test_floating_point_nodes_run_in_float(source: DType, result: DType, quantised: bool, expected: str) -> None:
    made = graph(source, result, quantised)
    assert arithmetic_of(made.nodes[0], made.operands(0), "tflite") == expected
    assert arithmetic_of(made.nodes[0], made.operands(0), "gap9") == "gap9"


def test_a_node_keeps_the_arithmetic_that_it_names() -> None:
    made = graph(DType.FLOAT32, DType.FLOAT32)
    named = Node("mean", (0, ABSENT), (1,), Attributes(), arithmetic="gap9")
    assert arithmetic_of(named, made.operands(0), "tflite") == "gap9"
