"""Constants added behind filters, and reshapes that undo each other: what NNTool's importer makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net, encoding
from tflq.converters.gap9.departures import departures_of
from tflq.converters.gap9.emit.hardware import constants_of, filter_integers
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Model
from tflq.interpreter import lower

_FILTER, _SUM = (-2.0, 3.0), (-2.5, 3.5)


def _sum(
    shape: tuple[int, ...], operator: str = "add", activation: str = "none", readers: int = 1, side: int = 8
) -> Model:
    net = Net(shape=(1, side, side, 4))
    x = net.conv(net.x, _FILTER)
    codes = np.arange(np.prod(shape), dtype=np.int8).reshape(shape) * 9 - 30
    added = net.builder.constant("k", codes, encoding((-1.0, 1.0)))
    y = net.binary(operator, x, added, (0.0, 3.5) if activation == "relu" else _SUM, activation)
    outputs = [net.conv(y, (-1.0, 1.0))]
    return net.model(*outputs, *([net.conv(x, (-1.0, 1.0))] if readers == 2 else []))


def _lowered(model: Model, *sets: str) -> Graph:
    return lower(quantized(model, "gap9-ne16", sets), "gap9")


@pytest.mark.parametrize("shape", [(4,), (1, 1, 1, 4), (1,)])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_a_constant_behind_a_filter_is_part_of_its_bias(shape: tuple[int, ...], activation: str) -> None:
    model = _sum(shape, activation=activation)
    graph = _lowered(model)
    assert not [n for n in graph.nodes if n.operator == "add"]
    node = graph.nodes[0]
    b = model.main.tensors[model.main.nodes[0].inputs[2]]
    constant = model.main.tensors[model.main.nodes[1].inputs[1]]
    assert b.data is not None
    assert constant.data is not None
    real = b.data * b.affine.scale.astype(np.float64)
    real = (
        real
        + (
            (constant.data.astype(np.int64) - constant.affine.zero_point[0]) * np.float64(constant.affine.scale[0])
        ).ravel()
    )
    scale = graph.tensors[node.inputs[2]].affine.scale
    assert np.array_equal(filter_integers(node).bias, np.floor(real / scale + 0.5))


def test_nntool_keeps_the_range_in_front_of_the_sum() -> None:
    model = _sum((4,))
    exact, vendor = (_lowered(model, f"numerics={n}") for n in ("exact", "nntool"))
    assert "(17.13)" in departures_of(exact)["CONV_2D_0_0"]
    scales = [g.tensors[g.nodes[0].outputs[0]].affine.scale[0] for g in (exact, vendor)]
    assert scales == pytest.approx([6 / 255, 5 / 255])
    assert set(constants_of(exact)) == set(constants_of(vendor))


@pytest.mark.parametrize(
    ("shape", "operator", "readers"),
    [
        *(((1, 4, 4, 4), "add", 1), ((4, 1), "add", 1), ((4, 1, 1), "add", 1), ((1, 4, 1), "add", 1)),
        *(((4,), "sub", 1), ((4,), "mul", 1), ((4,), "add", 2)),
    ],
)
def test_sums_that_stay(shape: tuple[int, ...], operator: str, readers: int) -> None:
    """Maps, one number a row or column, other operators, and what another reader takes without the constant."""
    assert [n.name for n in _lowered(_sum(shape, operator, readers=readers, side=4)).nodes if n.operator == operator]


def test_reshapes_that_undo_each_other_let_a_pool_into_the_fusion() -> None:
    """Keras' Conv1D and MaxPooling1D: SQUEEZE and EXPAND_DIMS between them."""
    net = Net(shape=(1, 1, 20, 4))
    x = net.conv(net.x, (0.0, 2.0), activation="relu")
    squeezed = net.add("squeeze", [x], (1, 20, 4), (0.0, 2.0), squeeze_dims=(1,))
    axis = net.builder.constant("axis", np.array(1, np.int32))
    image = net.add("expand_dims", [squeezed, axis], (1, 1, 20, 4), (0.0, 2.0))
    window = {"padding": "valid", "stride_h": 1, "stride_w": 2, "filter_height": 1, "filter_width": 2}
    pooled = net.add("max_pool_2d", [image], (1, 1, 10, 4), (0.0, 2.0), **window)
    graph = quantized(net.model(net.conv(pooled, (-1.0, 1.0))), "gap9-sq8")
    assert [n.name for n in graph.nodes if n.attributes.text("fusion", "") == "CONV_2D_0_0_fusion"] == [
        "CONV_2D_0_0",
        "MAX_POOL_2D_0_3",
        "CONV_2D_0_0_activation",
    ]


def test_what_computes_on_batches_fails_in_nntool() -> None:
    net = Net()
    block, none = (net.builder.constant("k", np.array(v, np.int32)) for v in ([2, 2], [[0, 0], [0, 0]]))
    batches = net.add("space_to_batch_nd", [net.x, block, none], (4, 4, 4, 4), (-1.0, 1.0))
    back = net.add("batch_to_space_nd", [net.conv(batches, (-2.0, 2.0)), block, none], (1, 8, 8, 4), (-2.0, 2.0))
    model = net.model(back)
    assert "(17.9)" in departures_of(_lowered(model))["SPACE_TO_BATCH_ND_0_0"]
    with pytest.raises(UnsupportedError, match=r"SPACE_TO_BATCH_ND.*numerics=exact converts it"):
        _lowered(model, "numerics=nntool")
