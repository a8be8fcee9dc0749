"""float32 ADD, SUB, MUL and the exact activations against TFLite, special values included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.support.draw import activations, broadcast_shapes, kernel_settings, one_input, seeds, two_inputs
from tests.support.single_op import check_against_oracle
from tests.support.types import FLOAT32
from tflq.errors import UnsupportedError
from tflq.graph import DType
from tflq.interpreter import Engine, lower

SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -3.0, 6.0, 6.0000005, 3.4e38, -3.4e38, 1e-45, -1e-45, 1e-38],
    np.float32,
)


def reals(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of all magnitudes."""
    return (rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 3, shape)).astype(np.float32)


@pytest.mark.parametrize("operator", ["add", "sub", "mul"])
@kernel_settings
@given(sizes=broadcast_shapes(), seed=seeds, activation=activations)
def test_broadcast(oracle, operator, sizes, seed, activation):
    rng = np.random.default_rng(seed)
    options = {"fused_activation_function": activation}
    graph = two_inputs(operator, sizes, ((FLOAT32, None), (FLOAT32, None)), (FLOAT32, None), **options)
    check_against_oracle(oracle, graph, [reals(rng, (5, *size)) for size in sizes])


@pytest.mark.parametrize("operator", ["add", "sub", "mul"])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_special_values(oracle, operator, activation):
    """All pairs but (NaN, NaN), whose payload is the processor's choice: infinite sums become the largest finite."""
    options = {"fused_activation_function": activation}
    count = SPECIAL.size
    graph = two_inputs(operator, ((count,), (count,)), ((FLOAT32, None),) * 2, (FLOAT32, None), **options)
    check_against_oracle(oracle, graph, [np.repeat(SPECIAL[:, None], count, 1), np.tile(SPECIAL, (count, 1))])


@pytest.mark.parametrize("operator", ["add", "mul"])
def test_float16(operator):
    graph = two_inputs(operator, ((2,), (2,)), ((DType.FLOAT16, None),) * 2, (DType.FLOAT16, None))
    x = np.array([[1.5, 60000.0]], np.float16)
    found = Engine(graph).run([x, x])[graph.outputs[0]]
    assert found.tolist() == [[3.0 if operator == "add" else 2.25, 65504.0]]


@pytest.mark.parametrize("operator", ["relu", "relu6", "relu_n1_to_1", "relu_0_to_1", "hard_swish"])
def test_activations(oracle, operator):
    graph = one_input(operator, (1000,), (FLOAT32, None), (FLOAT32, None))
    values = reals(np.random.default_rng(0), (4, 1000))
    values[0, : SPECIAL.size] = SPECIAL
    check_against_oracle(oracle, graph, [values])


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, 1.5, -0.3])
def test_leaky_relu(oracle, alpha):
    graph = one_input("leaky_relu", (1000,), (FLOAT32, None), (FLOAT32, None), alpha=alpha)
    values = reals(np.random.default_rng(0), (4, 1000))
    values[0, : SPECIAL.size] = SPECIAL
    check_against_oracle(oracle, graph, [values])


def test_quantize_and_dequantize_of_the_float_view_are_identities():
    values = reals(np.random.default_rng(0), (2, 5))
    for operator in ("quantize", "dequantize"):
        graph = one_input(operator, (5,), (FLOAT32, None), (FLOAT32, None))
        assert np.array_equal(Engine(graph).run([values])[graph.outputs[0]], values)


def test_dequantize_of_float16(oracle):
    graph = one_input("dequantize", (65536,), (DType.FLOAT16, None), (FLOAT32, None))
    check_against_oracle(oracle, graph, [np.arange(65536, dtype=np.uint16).view(np.float16)[None]])


def test_other_types_are_refused():
    with pytest.raises(UnsupportedError, match="the kernel takes float32"):
        lower(one_input("relu", (4,), (DType.FLOAT64, None), (DType.FLOAT64, None)))
