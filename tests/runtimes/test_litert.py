"""Every rule of `xnnpack` and `litert-optimized` against LiteRT itself, with and without its delegate."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtimes.cases import CASES, LITERT_ONLY, Case
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.oracle.package import is_installed

pytestmark = pytest.mark.skipif(not is_installed("litert"), reason="ai-edge-litert is not installed")
EVERY = (*CASES, *LITERT_ONLY)
REFERENCE = "tflite"


@pytest.fixture(scope="module", params=["xnnpack", "litert-optimized"])
def runtime(request):
    kernels = "AUTO" if request.param == "xnnpack" else "BUILTIN"
    with Oracle("litert", kernels) as oracle:
        yield request.param, oracle


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_a_layer_equals_litert(runtime, case: Case) -> None:
    name, oracle = runtime
    (theirs,) = oracle.run(case.content, case.inputs, tensors="outputs").outputs
    ours = Engine(case.graph, name).run(case.inputs)[case.graph.outputs[0]]
    np.testing.assert_array_equal(ours, theirs)


def test_layers_tell_the_runtimes_apart() -> None:
    """The samples reach elements at which a runtime differs from the reference kernels, for each of its rows."""
    from tflq.interpreter.kernels.tflite.runtimes import LITERT_OPTIMIZED, XNNPACK

    for name, rows in (("xnnpack", XNNPACK), ("litert-optimized", LITERT_OPTIMIZED)):
        told = {case.graph.nodes[0].operator for case in EVERY if _differs(case, name)}
        assert told >= set(rows)


def _differs(case: Case, name: str) -> bool:
    output = case.graph.outputs[0]
    ours, reference = (Engine(case.graph, a).run(case.inputs)[output] for a in (name, REFERENCE))
    return not np.array_equal(ours, reference)
