"""float32 SOFTMAX, LOGISTIC and TANH against TFLite, within the units in the last place of the known differences.

TFLite calls the host's expf and tanhf; ours are float64 functions rounded once. Bits can differ: the bound is counted.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.draw import one_input
from tests.support.known import check_known
from tests.support.single_op import assert_same_bits
from tests.support.types import FLOAT32
from tflq.converters.tflite import model_to_bytes
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine

OPERATORS = ("softmax", "logistic", "tanh")


@pytest.mark.parametrize(("operator", "spread"), [(o, s) for o in OPERATORS for s in (0.1, 1.0, 5.0, 30.0)])
def test_within_its_bound(oracle, operator, spread):
    attributes = {"beta": 1.0} if operator == "softmax" else {}
    shape = (200, 10) if operator == "softmax" else (2000,)
    graph = one_input(operator, shape, (FLOAT32, None), (FLOAT32, None), **attributes)
    values = (np.random.default_rng(0).normal(size=(20, *shape)) * spread).astype(np.float32)
    check_known(oracle, graph, [values])


@pytest.mark.parametrize("operator", ["logistic", "tanh"])
def test_special_values(oracle, operator):
    values = np.array([[0.0, -0.0, np.inf, -np.inf, 17.0, 16.62, -9.0, -9.5, -104.0, 104.0, -88.0]], np.float32)
    graph = one_input(operator, values.shape[1:], (FLOAT32, None), (FLOAT32, None))
    check_known(oracle, graph, [values])


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_softmax_with_beta(oracle, beta):
    graph = one_input("softmax", (50, 7), (FLOAT32, None), (FLOAT32, None), beta=beta)
    values = np.random.default_rng(1).normal(size=(4, 50, 7)).astype(np.float32)
    check_known(oracle, graph, [values])


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16], ids=lambda t: t.value)
@pytest.mark.parametrize("operator", ["logistic", "tanh"])
def test_narrow_floats(oracle, operator, dtype):
    """Between two CASTs: TFLite's Python interface has no bfloat16. The libm's last bit is rounded away."""
    b = GraphBuilder("narrow")
    x = b.input("x", (1000,), FLOAT32)
    inner = b.add(operator, [b.add("cast", [x], (1000,), dtype, version=9)], (1000,), dtype)
    graph = b.build([b.add("cast", [inner], (1000,), FLOAT32, version=9)])
    values = (np.random.default_rng(0).normal(size=(3, 1000)) * 6).astype(np.float32)
    values[0, :6] = np.inf, -np.inf, np.nan, 0.0, -0.0, 17
    judged = oracle.run(model_to_bytes(graph), [values]).tensors[graph.outputs[0]]
    assert_same_bits(Engine(graph).run([values])[graph.outputs[0]], judged, operator)
