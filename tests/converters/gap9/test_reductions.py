"""Reductions over one axis: where NNTool puts Quantize nodes, and how it calls them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net


@pytest.mark.parametrize(("axis", "name"), [(1, "MEAN_0_2_trans_in0_reshape_qin0"), (2, "MEAN_0_2_trans_qin0")])
def test_quantize_in_front_of_a_mean_of_rank_3(axis: int, name: str) -> None:
    """NNTool transposes in front of it; over positions a reshape follows, over channels none does."""
    net = Net(shape=(1, 1, 20, 4))
    x = net.conv(net.x, (0.0, 3.0), outputs=8, activation="relu")
    shape = net.builder.constant("shape", np.array([1, 20, 8], np.int32))
    flat = net.add("reshape", [x, shape], (1, 20, 8), (0.0, 3.0))
    axes = net.builder.constant("axes", np.array([axis], np.int32))
    mean = net.add("mean", [flat, axes], (1, 8 if axis == 1 else 20), (0.0, 2.0), keep_dims=False)
    assert name in [node.name for node in quantized(net.model(mean), "gap9-ne16").nodes]
