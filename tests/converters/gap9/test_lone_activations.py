"""A hard swish that stands alone in front of NE16's filters: uint8 where its range begins at 0."""

from __future__ import annotations

import pytest

from tests.support.gap9_golden import quantised
from tests.support.gap9_nets import Net
from tflq.graph import DType


@pytest.mark.parametrize(("lowest", "written"), [(0.0, DType.UINT8), (-0.4, DType.INT8)])
@pytest.mark.parametrize("behind", [False, True])
def test_a_lone_hard_swish_obeys_a_demand_with_zero_point_0(lowest: float, written: DType, behind: bool) -> None:
    net = Net()
    x = net.conv(net.x, (0.0, 3.0), activation="relu") if behind else net.x
    bent = net.unary("hard_swish", x, (lowest, 3.0))
    graph = quantised(net.model(net.conv(bent, (-3.0, 3.0))), "gap9-ne16")
    (node,) = (n for n in graph.nodes if n.operator == "hard_swish")
    assert graph.tensors[node.outputs[0]].dtype is written
    assert (f"{_reader(behind)}_qin0" in [n.name for n in graph.nodes]) == (written is DType.INT8)


def _reader(behind: bool) -> str:
    """The convolution behind the hard swish."""
    return f"CONV_2D_0_{1 + behind}"
