"""STABLEHLO_RNG_BIT_GENERATOR against TFLite: where the counter carries, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.nodes import Result, build, sampled
from tests.support.single_op import check_against_oracle
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import Engine

FULL = (1 << 64) - 1
HALF = (1 << 32) - 1


def generator(state: np.ndarray, algorithm: str, shape: tuple[int, ...] = (5,), dtype: DType = DType.UINT32):
    kinds = [Result(DType.UINT64), Result(dtype)]
    operands, shapes = [sampled(state)], [state.shape[1:], shape]
    return build("stablehlo_rng_bit_generator", operands, kinds, shapes, algorithm=algorithm)


@pytest.mark.parametrize("algorithm", ["threefry", "philox", "default"])
@pytest.mark.parametrize("dtype", [DType.UINT32, DType.INT64], ids=lambda t: t.value)
@pytest.mark.parametrize("counter", [HALF - 1, FULL - 1, 0])
def test_the_counter_carries_into_its_upper_half(oracle, algorithm, dtype, counter):
    state = np.array([[7, counter], [FULL, counter]], np.uint64)
    check_against_oracle(oracle, generator(state, algorithm, (3, 9), dtype), [state])


@pytest.mark.parametrize("shape", [(), (0,), (1, 3)])
def test_words_left_over(oracle, shape):
    state = np.array([[1 << 40, FULL, 9]], np.uint64)
    check_against_oracle(oracle, generator(state, "philox", shape), [state])


@pytest.mark.parametrize(
    ("words", "algorithm", "dtype", "message"),
    [
        (3, "threefry", DType.UINT32, "needs a vector of 2"),
        (1, "philox", DType.UINT32, "2 or 3"),
        (2, "philox", DType.FLOAT32, "the kernel takes"),
    ],
)
def test_refused(words, algorithm, dtype, message):
    with pytest.raises((GraphError, UnsupportedError), match=message):
        Engine(generator(np.zeros((1, words), np.uint64), algorithm, dtype=dtype))
