"""The C99 program and the compiled engine compute a runtime's integers: layer by layer against the engine in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.runtimes.cases import CASES, LITERT_ONLY, Case
from tests.support import c_compiler
from tests.support.tracked import ROOT
from tflq.converters.tflite import write_model
from tflq.graph import Model
from tflq.interpreter import Engine
from tflq.interpreter.runtimes import RUNTIME_NAMES

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
OTHERS = [name for name in RUNTIME_NAMES if name not in ("ref", "cmsis-nn", "tosa")]
"""Runtimes with different tables; `ref` is in the tests of arithmetic `tflite`."""
LAYERS = (*CASES, *LITERT_ONLY)


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
@pytest.mark.parametrize("runtime", OTHERS)
def test_the_compiled_engine(runtime: str, case: Case) -> None:
    c_compiler.compiler()
    output = case.graph.outputs[0]
    plain = Engine(case.graph, runtime).run(case.inputs)[output]
    compiled = Engine(case.graph, runtime, backend="c").run(case.inputs)[output]
    np.testing.assert_array_equal(compiled, plain)


@pytest.mark.parametrize("runtime", OTHERS)
def test_the_program_of_a_network(runtime: str, tmp_path: Path) -> None:
    model, folder = tflq.read_model(DIGITS), tmp_path / "program"
    tflq.export(model, folder, program="c99", runtime=runtime, samples=tflq.SampleOptions(count=5))
    program = c_compiler.build(folder, "-O1")
    expected = (folder / "expected.bin").read_bytes()
    assert c_compiler.run(program, (folder / "samples.bin").read_bytes()) == expected
    other = tmp_path / "ref"
    tflq.export(model, other, program="c99", samples=tflq.SampleOptions(count=5))
    if runtime in ("xnnpack", "cmsis-nn-single"):
        assert expected != (other / "expected.bin").read_bytes()


@pytest.mark.parametrize("name", ["fully_connected_int8_11_channel", "conv_2d_int8_8_tensor", "mul_int8_none_0.3"])
@pytest.mark.parametrize("runtime", OTHERS)
def test_the_program_of_a_layer(runtime: str, name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    write_model(Model([case.graph]), tmp_path / "layer.tflite")
    folder = tmp_path / "program"
    tflq.export(tmp_path / "layer.tflite", folder, case.samples, program="c99", runtime=runtime)
    program = c_compiler.build(folder, "-O1")
    expected = (folder / "expected.bin").read_bytes()
    assert c_compiler.run(program, (folder / "samples.bin").read_bytes()) == expected
    result = Engine(case.graph, runtime).run(case.inputs)[case.graph.outputs[0]]
    assert expected == result.tobytes()
