"""The registry: one kernel for an operator and arithmetic, modules imported late, refusals that list what exists."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

from tests.interpreter.kernels_for_tests import NAME, Calls, calls, module  # noqa: F401
from tests.support.draw import affine
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import ABSENT, Attributes, DType, Graph, GraphBuilder, Node
from tflq.interpreter import registry
from tflq.interpreter.registry import Arithmetic, arithmetic_of

BUILTIN = ("float", "gap9", "tflite")


def test_arithmetics_are_known_by_name() -> None:
    assert set(BUILTIN) <= set(registry.arithmetics())
    assert all(registry.arithmetic(name).name == name for name in BUILTIN)


@pytest.mark.parametrize("name", BUILTIN)
def test_every_entry_names_a_module_with_both_functions(name: str) -> None:
    for operator in registry.arithmetic(name).kernels:
        kernel = registry.kernel(name, operator)
        assert callable(kernel.lower)
        assert callable(kernel.run)
        assert importlib.import_module(kernel.module).__doc__


def test_kernels_are_imported_when_they_are_needed() -> None:
    program = (
        "import sys; from tflq.interpreter.registry import arithmetic, kernel; arithmetic('tflite');"
        "name = 'tflq.interpreter.kernels.tflite.conv_2d'; before = name in sys.modules;"
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
