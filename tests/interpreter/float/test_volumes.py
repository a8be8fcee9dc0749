"""CONV_3D and CONV_3D_TRANSPOSE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, seeds
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32
from tflq.errors import GraphError
from tflq.graph import GraphBuilder
from tflq.interpreter import lower


@st.composite
def geometries(draw):
    """Size of the larger volume, kernel, strides, dilations, padding and the size of the smaller volume."""
    size = [draw(st.integers(3, 6)) for _ in range(3)]
    kernel = [draw(st.integers(1, 2)) for _ in range(3)]
    stride = [draw(st.integers(1, 3)) for _ in range(3)]
    dilation = [draw(st.integers(1, 2)) for _ in range(3)]
    padding = draw(st.sampled_from(["same", "valid"]))
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    small = [
        -(-n // s) if padding == "same" else (n + s - e) // s for n, s, e in zip(size, stride, extents, strict=True)
    ]
    options = {"padding": padding}
    for axis, s, d in zip("dhw", stride, dilation, strict=True):
        options |= {f"stride_{axis}": s, f"dilation_{axis}_factor": d}
    return size, kernel, small, options


def volume(geometry, rng, transposed, with_bias, activation="none"):
    size, kernel, small, options = geometry
    b = GraphBuilder("volume")
    inputs, outputs = 3, 4
    shape = (outputs, inputs) if transposed else (inputs, outputs)
    weights = b.constant("weights", rng.normal(size=(*kernel, *shape)).astype(np.float32))
    source, target = (small, size) if transposed else (size, small)
    x = b.input("x", (2, *source, inputs), FLOAT32)
    output = (2, *target, outputs)
    operands = [b.constant("shape", np.array(output, np.int32)), weights, x] if transposed else [x, weights]
    if with_bias:
        operands.append(b.constant("bias", rng.normal(size=outputs).astype(np.float32)))
    operator = "conv_3d_transpose" if transposed else "conv_3d"
    options = {**options, "fused_activation_function": activation}
    return b.build([b.add(operator, operands, output, FLOAT32, **options)])


@pytest.mark.parametrize("transposed", [False, True])
@kernel_settings
@given(geometry=geometries(), seed=seeds, with_bias=st.booleans(), relu=st.booleans())
def test_in_order(oracle, transposed, geometry, seed, with_bias, relu):
    rng = np.random.default_rng(seed)
    graph = volume(geometry, rng, transposed, with_bias, "relu" if relu else "none")
    check_against_oracle(oracle, graph, random_inputs(rng, graph, 3))


def test_refusals():
    options = {"padding": "same", **dict.fromkeys(("stride_d", "stride_h", "stride_w"), 2)}
    geometry = ([4, 4, 4], [2, 2, 2], [3, 2, 2], options)
    with pytest.raises(GraphError, match="belongs to inputs of"):
        lower(volume(geometry, np.random.default_rng(1), True, False))
    geometry = ([2, 2, 2], [3, 3, 3], [1, 1, 1], {**options, "padding": "valid"})
    with pytest.raises(GraphError, match="does not fit a volume"):
        lower(volume(geometry, np.random.default_rng(1), False, False))
