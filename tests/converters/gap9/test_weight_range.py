"""weight_range=full: NE16's weights down to -2^(b-1), with the scale that both ends need."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.digits_problem import model
from tflq.converters.gap9.passes.constants import quantize_filter
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.parallel.executions import for_target


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(2, 8))
def test_both_ends_are_kept_and_one_is_reached(seed: int, bits: int) -> None:
    random = np.random.default_rng(seed)
    weights = random.normal(size=(4, 3, 3, 2)).astype(np.float32)
    made = quantize_filter(weights, None, np.ones(1), 0, bits, True, is_full=True)
    q = made.codes.astype(int) - (1 << (bits - 1))
    top = (1 << (bits - 1)) - 1
    flat = q.reshape(4, -1)
    assert ((flat.max(1) == top) | (flat.min(1) == -top - 1)).all()
    assert np.abs(q * made.weights.scale[:, None, None, None] - weights).max() <= 0.5001 * made.weights.scale.max()
    narrow = quantize_filter(weights, None, np.ones(1), 0, bits, True)
    assert (made.weights.scale <= narrow.weights.scale).all()
    assert not made.weights.narrow_range
    again = quantize_filter(
        (q * made.weights.scale[:, None, None, None]).astype(np.float32), None, np.ones(1), 0, bits, True, is_full=True
    )
    assert np.array_equal(again.codes, made.codes)


def test_the_setting_reaches_ne16_alone() -> None:
    target = find_target("gap9-ne16")
    chosen = parse_settings(
        target.settings, ("weight_bits=2", "weight_range=full"), ("0:use_ne16=false", "0:weight_bits=8")
    )
    graph = for_target(model().main, target, chosen).graph
    ranges = {
        n.attributes.text("engine"): graph.tensors[n.inputs[1]].affine.narrow_range
        for n in graph.nodes
        if len(n.inputs) > 2
    }
    assert ranges == {"sq8": True, "ne16": False}
