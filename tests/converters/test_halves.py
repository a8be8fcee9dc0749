"""Weights of float16 behind a DEQUANTIZE are constants of float32 to every target."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.converters.passes.conversions import widen_halves
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import find_target, target_names
from tflq.graph import DType, Graph, GraphBuilder


def _network(half: bool) -> Graph:
    """A convolution whose weights are float16 in the file, or the same numbers as float32."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(4, 3, 3, 2)).astype(np.float16)
    b = GraphBuilder()
    x = b.input("x", (1, 6, 6, 2), DType.FLOAT32)
    if half:
        w = b.add("dequantize", (b.constant("w16", values),), values.shape, DType.FLOAT32)
    else:
        w = b.constant("w", values.astype(np.float32))
    keys = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    return b.build((b.add("conv_2d", (x, w), (1, 4, 4, 4), DType.FLOAT32, **keys),))


def test_only_halves_are_widened() -> None:
    found = widen_halves(_network(half=True))
    (node,) = found.nodes
    weights = found.tensors[node.inputs[1]]
    assert weights.dtype is DType.FLOAT32
    assert np.array_equal(weights.data, widen_halves(_network(half=False)).tensors[node.inputs[1] - 1].data)
    plain = _network(half=False)
    assert widen_halves(plain) is plain
    assert settled_graph(plain) is plain


@pytest.mark.parametrize("name", target_names())
def test_every_target_takes_them(name: str) -> None:
    target = find_target(name)
    settings = parse_settings(target.settings)
    assert target.check(settled_graph(_network(half=True)), settings) == ()
