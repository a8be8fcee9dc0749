"""FULLY_CONNECTED with int4 weights in blocks, against TFLite's optimized kernel: the reference one has no scales."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Blockwise, DType, GraphBuilder
from tflq.interpreter import lower


def in_blocks(seed=0, rows=(3,), blocks=2, size=32, outputs=8, bias=True, dtype=DType.INT4, scales=None, **attributes):
    rng = np.random.default_rng(seed)
    depth = blocks * size
    b = GraphBuilder("blocks")
    x = b.input("x", (*rows, depth), FLOAT32)
    shape = scales or (outputs, blocks)
    held = b.constant("scales", rng.uniform(0.001, 0.1, shape).astype(np.float16))
    codes = rng.integers(-8, 8, (outputs, depth)).astype(np.int8)
    weights = b.constant("w", codes, Blockwise(held, -1, size), dtype)
    added = b.constant("bias", rng.normal(size=outputs).astype(np.float32)) if bias else ABSENT
    shape = (*rows, outputs) if attributes.get("keep_num_dims") else (int(np.prod(rows)), outputs)
    return b.build([b.add("fully_connected", [x, weights, added], shape, FLOAT32, version=14, **attributes)])


@kernel_settings
@given(
    seed=st.integers(0, 999),
    rows=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    blocks=st.integers(1, 4),
    size=st.sampled_from([32, 64]),
    outputs=st.integers(4, 20),
    bias=st.booleans(),
    keep=st.booleans(),
)
def test_against_the_optimized_kernel(optimized_oracle, seed, rows, blocks, size, outputs, bias, keep):
    graph = in_blocks(seed, tuple(rows), blocks, size, outputs, bias, keep_num_dims=keep)
    check_against_oracle(optimized_oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fused_activation_function": "relu"}, "kernel takes none"),
        ({"scales": (8, 3)}, "needs a constant of 16 scales"),
        ({"size": 3}, "blocks of 3"),
        ({"dtype": DType.INT8}, "takes int4"),
    ],
)
def test_refused(changes, message):
    with pytest.raises((GraphError, UnsupportedError), match=message):
        lower(in_blocks(**changes))
