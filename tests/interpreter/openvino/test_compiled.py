"""Engine(backend="c") gives what numpy gives, in every tensor, on networks of many forms."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import c_compiler
from tests.support.compiled_networks import CHOSEN, differing
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import Engine

CLAMPS = {"none": (-np.inf, np.inf), "relu": (0, np.inf), "relu6": (0, 6)}


@pytest.mark.parametrize("name", CHOSEN)
def test_every_tensor(name: str) -> None:
    assert differing("openvino", name) == []


@pytest.mark.parametrize("fused", CLAMPS)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("channels", [False, True])
def test_a_filters_reals_beside_quantized_values(fused: str, turned: bool, narrow: bool, channels: bool) -> None:
    """Against round half even((a + b) / S + zero level), on every pair of two operands; scales are powers of two."""
    c_compiler.compiler()
    b, size = GraphBuilder("sum"), 256
    first, second = Affine.per_tensor(np.float32(0.5), 3, 8), Affine.per_tensor(np.float32(0.25), -7, 8)
    scale = np.array([1, 2] * 128 if channels else [1], np.float32)
    kind = Affine(scale, np.full(scale.size, -5), 1 if channels else None, 8, True, narrow)
    x, other = (b.input(name, (1, size), DType.INT8, k) for name, k in (("x", first), ("other", second)))
    weights = b.constant("w", np.eye(size, dtype=np.int8), Affine.per_tensor(np.float32(1), 0, 8))
    real = b.add("fully_connected", [x, weights], (1, size), DType.FLOAT32, fused_activation_function="none")
    operands = [other, real] if turned else [real, other]
    y = b.add("add", operands, (1, size), DType.INT8, kind, fused_activation_function=fused)
    graph, codes = b.build([y]), np.arange(-128, 128)
    samples = [np.tile(codes, (size, 1))[:, None].astype(np.int8), np.repeat(codes, size).reshape(size, 1, size)]
    compiled = Engine(graph, "openvino", backend="c")
    found, plain = (e.run([s.astype(np.int8) for s in samples])[y] for e in (compiled, Engine(graph, "openvino")))
    total = np.clip((samples[0] - 3.0) / 2 + (samples[1] + 7.0) / 4, *CLAMPS[fused])
    low = -127 if narrow else -128
    wanted = np.clip(np.rint(total / scale + (-5 - low)), 0, 127 - low) + low
    assert np.array_equal(found, wanted)
    assert np.array_equal(plain, wanted)
    assert bool(compiled.in_numpy()) == channels
