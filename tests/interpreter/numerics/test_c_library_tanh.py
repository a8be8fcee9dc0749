"""tanhf of the C library, which TFLite's TANH of float32 calls."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from tests.support.draw import one_input
from tests.support.single_op import assert_same_bits
from tests.support.types import FLOAT32
from tflq.converters.tflite import model_to_bytes
from tflq.interpreter.numerics.transcendental import tanhf

LIBRARY, VERSION = platform.libc_ver()
ROUNDS_CORRECTLY = (2, 41)


@pytest.mark.skipif(
    LIBRARY != "glibc" or tuple(map(int, VERSION.split("."))) >= ROUNDS_CORRECTLY,
    reason="this C library has another tanhf than fdlibm's",
)
@pytest.mark.parametrize("bits", [12, 15, 9])
def test_all_codes_of_16_bits(oracle, bits):
    x = (np.arange(-(1 << 15), 1 << 15) * 2.0**-bits).astype(np.float32)[None]
    graph = one_input("tanh", x.shape[1:], (FLOAT32, None), (FLOAT32, None))
    assert_same_bits(tanhf(x), oracle.run(model_to_bytes(graph), [x]).tensors[graph.outputs[0]], "tanhf")
