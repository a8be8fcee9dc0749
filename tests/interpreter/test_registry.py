"""The registry: one kernel per operator and arithmetic, imported late; refusals list the names that exist."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from tests.interpreter.kernels_for_tests import NAME, Calls, calls  # noqa: F401
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


@pytest.mark.parametrize(
    "name", ["float", "tflite", "gap9", "tpu_mlir", "openvino", "nnie", "aipu", "aipu_float", "aipu_whitepaper"]
)
def test_every_kernel_says_what_it_computes_and_where_that_comes_from(name: str) -> None:
    found = {operator: registry.kernel(name, operator) for operator in registry.arithmetic(name).kernels}
    assert [operator for operator, kernel in found.items() if not kernel.summary or not kernel.source] == []


def test_kernels_of_an_arithmetic_are_imported_at_its_first_use() -> None:
    program = (
        "import sys; from tflq.interpreter.registry import arithmetics, kernel; arithmetics();"
        "name = 'tflq.interpreter.kernels.tflite.convolution'; before = name in sys.modules;"
        "kernel('tflite', 'conv_2d');"
        "print(before, name in sys.modules, 'tflq.interpreter.kernels.nnie' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]


def test_a_new_arithmetic_and_a_new_kernel(calls: Calls) -> None:  # noqa: F811
    assert NAME in registry.arithmetics()
    assert not registry.has_kernel(NAME, "twice")
    registry.register_kernel(NAME, "twice", DOUBLE)
    assert registry.kernel(NAME, "twice") is DOUBLE
    assert DOUBLE.run(None, np.ones(2))[0].tolist() == [2, 2]
    with pytest.raises(TflqError, match=f"operator 'twice' of arithmetic 'tests' is registered already: {__name__}"):
        registry.register_kernel(NAME, "twice", DOUBLE)


def test_the_module_of_a_kernel_is_that_of_its_function() -> None:
    assert replace(DOUBLE, run=partial(partial(double))).module == __name__
    assert registry.kernel("tflite", "rfft2d").module == "tflq.interpreter.kernels.plain.rfft2d"


def test_scales_do_not_enter_where_data_moves() -> None:
    reads = {name: registry.kernel("tflite", name).reads_scales for name in ("reshape", "maximum", "add", "conv_2d")}
    assert reads == {"reshape": False, "maximum": False, "add": True, "conv_2d": True}


def double(a: Array) -> tuple[Array, ...]:
    return (np.asarray(a * 2),)


DOUBLE = Kernel(lambda node, operands: None, lambda params, a: double(a), "2x", "docs/tests.md", stateful=True)


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
    monkeypatch.setattr(registry, "find_entry_points", lambda group: entries if group == "tflq.kernels" else [])
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
        EntryPoint(NAME, {NAME: {"Mine": DOUBLE, "Yours": DOUBLE}}),
    ]
    assert registry.kernel("mine", "add").summary == "2x"
    assert registry.has_kernel(NAME, "Yours")


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ImportError("no module"), "kernels 'Mine' of package:attribute: no module"),
        (
            {NAME: {"Mine": "a.module"}},
            "a function without arguments or a mapping arithmetic -> operator -> Kernel is needed",
        ),
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
    with pytest.raises(
        TflqError,
        match=r"operator 'add' of arithmetic 'tests' is registered already: .*kernels_for_tests",
    ):
        registry.register_kernel(NAME, "add", DOUBLE)


def test_what_is_missing_is_refused_with_what_exists(calls: Calls) -> None:  # noqa: F811
    known = ", ".join(registry.arithmetics())
    assert {"float", "gap9", NAME, "tflite"} <= set(known.split(", "))
    with pytest.raises(UnsupportedError, match=f"no arithmetic is called 'tflit'; there are {known}"):
        registry.arithmetic("tflit")
    with pytest.raises(
        UnsupportedError, match="operator conv_2d has no kernel in arithmetic 'tests'; it has add, double"
    ):
        registry.kernel(NAME, "conv_2d")


def graph(source: DType, result: DType, quantized: bool = False) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (2,), source, affine(source, 0.5) if quantized else None)
    return b.build([b.add("mean", [x, ABSENT], (2,), result, affine(result, 0.5) if quantized else None)])


@pytest.mark.parametrize(
    ("source", "result", "quantized", "expected"),
    [
        (DType.FLOAT32, DType.FLOAT32, False, "float"),
        (DType.FLOAT16, DType.FLOAT32, False, "float"),
        (DType.INT8, DType.INT8, True, "tflite"),
        (DType.INT32, DType.INT32, False, "tflite"),
        (DType.FLOAT32, DType.INT64, False, "tflite"),
        (DType.INT32, DType.FLOAT32, False, "tflite"),
    ],
)
def test_floating_point_nodes_run_in_float(source: DType, result: DType, quantized: bool, expected: str) -> None:
    made = graph(source, result, quantized)
    assert arithmetic_of(made.nodes[0], made.operands(0), "tflite") == expected
    assert arithmetic_of(made.nodes[0], made.operands(0), "gap9") == "gap9"


def test_a_node_keeps_the_arithmetic_that_it_names() -> None:
    made = graph(DType.FLOAT32, DType.FLOAT32)
    named = Node("mean", (0, ABSENT), (1,), Attributes(), arithmetic="gap9")
    assert arithmetic_of(named, made.operands(0), "tflite") == "gap9"
