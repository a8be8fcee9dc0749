"""The other readings of a rule follow the runtime: the compiled engine, C99 programs and explanations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.runtimes.cases import CASES, LITERT_ONLY, Case
from tests.support import c_compiler
from tflq.api.explain import explain
from tflq.api.export import export
from tflq.graph import Model
from tflq.interpreter import Engine
from tflq.interpreter.runtimes import RUNTIMES

RUNTIME_OF_RULES = ("xnnpack", "litert-optimized", "tflm", "cmsis-nn-single")
EVERY = (*CASES, *LITERT_ONLY)


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
@pytest.mark.parametrize("name", RUNTIME_OF_RULES)
def test_the_compiled_engine(case: Case, name: str) -> None:
    output = case.graph.outputs[0]
    numpy, c = (Engine(case.graph, name, backend=b).run(case.inputs)[output] for b in ("numpy", "c"))
    np.testing.assert_array_equal(numpy, c)


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
@pytest.mark.parametrize("name", ["xnnpack", "litert-optimized"])
def test_a_c99_program(case: Case, name: str, tmp_path: Path) -> None:
    if case.graph.nodes[0].operator not in RUNTIMES[name].rules or case.name.startswith("quantize_float32"):
        return  # as ref, which tests/emit compiles; a float border is left to the caller of a program
    folder = tmp_path / "program"
    model = Model([case.graph], source=case.name)
    result = export(model, folder, case.samples, program="c99", runtime=name)
    assert result.arithmetic == name
    program = c_compiler.build(folder, "-O1")
    found = c_compiler.run(program, (folder / "samples.bin").read_bytes())
    assert found == (folder / "expected.bin").read_bytes()


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
@pytest.mark.parametrize("name", RUNTIME_OF_RULES)
def test_an_explanation_ends_in_the_engines_value(case: Case, name: str) -> None:
    model, output = Model([case.graph], source=case.name), case.graph.tensors[case.graph.outputs[0]]
    index = [n - 1 for n in output.shape]
    result = explain(model, output.name, index, case.samples, runtime=name, sample=3)
    expected = Engine(case.graph, RUNTIMES[name].arithmetic).run(case.inputs)[case.graph.outputs[0]]
    assert result.explanation.stored == expected[3][tuple(index)]
