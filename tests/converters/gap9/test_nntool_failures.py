"""What NNTool 4.1 was seen to fail on, each with a neighbor that it takes (docs/differences/gap9_failures.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Limits, Net
from tflq.converters.gap9.departures import departures_of
from tflq.errors import UnsupportedError
from tflq.graph import Affine
from tflq.interpreter import lower

_LIMITS: Limits = (-2.0, 2.0)


def _fails(net: Net, output: int, target: str, section: str, *sets: str) -> bool:
    """Whether numerics=nntool refuses it; numerics=exact converts it and warns just then."""
    model = net.model(output)
    exact = lower(quantized(model, target, [*sets]), "gap9")
    warned = any(section in text for text in departures_of(exact).values())
    said = ""
    try:
        quantized(model, target, [*sets, "numerics=nntool"])
    except UnsupportedError as error:
        said = str(error)
    assert (section in said and "numerics=exact" in said) is warned is bool(said)
    return warned


def _indices(net: Net, *values: int) -> int:
    return net.builder.constant("indices", np.array(values, np.int32))


def _sliced(net: Net, strided: bool) -> int:
    shape = (1, 3, 5, 4)
    if not strided:
        return net.add("slice", [net.x, _indices(net, 0, 1, 0, 0), _indices(net, *shape)], shape, _LIMITS)
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    ends = [_indices(net, 0, 1, 0, 0), _indices(net, 1, 4, 5, 4), _indices(net, 1, 1, 1, 1)]
    return net.add("strided_slice", [net.x, *ends], shape, _LIMITS, **masks)


def _reduced(net: Net, x: int) -> int:
    return net.dense(net.mean(x, _LIMITS), _LIMITS)


def _pooled(net: Net, x: int, kind: str = "max_pool_2d") -> int:
    window = {"padding": "same", "stride_h": 1, "stride_w": 1, "filter_height": 2, "filter_width": 2}
    return net.add(kind, [x], net.shapes[x], _LIMITS, **window)


def _flattened(net: Net, x: int) -> int:
    size = int(np.prod(net.shapes[x]))
    return net.dense(net.add("reshape", [x, _indices(net, 1, size)], (1, size), net.limits[x]), _LIMITS)


def _resized(net: Net, x: int, kind: str = "resize_bilinear") -> int:
    n, h, w, c = net.shapes[x]
    options = {"align_corners": False, "half_pixel_centers": False}
    return net.add(kind, [x, _indices(net, 2 * h, 2 * w)], (n, 2 * h, 2 * w, c), _LIMITS, **options)


_READERS: dict[str, tuple[Callable[[Net, int], int], bool]] = {
    "a mean": (_reduced, True),
    "a ReLU and a mean": (lambda net, x: _reduced(net, net.unary("relu", x, (0.0, 2.0))), True),
    "a convolution": (lambda net, x: net.conv(x, _LIMITS), True),
    "a pool": (_pooled, True),
    "a resize": (_resized, True),
    "a dense layer": (_flattened, False),
    "an output": (lambda _net, x: x, False),
    "a softmax": (lambda net, x: net.add("softmax", [x], net.shapes[x], (0.0, 1.0), beta=1.0), False),
}


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("reader", _READERS)
def test_what_reads_a_slice_by_its_axes(reader: str, strided: bool) -> None:
    """NNTool's SLICE has no batch axis; its STRIDED_SLICE has."""
    read, fails = _READERS[reader]
    net = Net(_LIMITS, (1, 7, 5, 4))
    assert _fails(net, read(net, _sliced(net, strided)), "gap9-sq8", "17.31") is (fails and not strided)


@pytest.mark.parametrize("kind", ["resize_bilinear", "resize_nearest_neighbor"])
@pytest.mark.parametrize(("height", "width"), [(1, 5), (5, 1), (1, 1), (2, 5), (5, 2)])
def test_resizes_of_thin_maps(height: int, width: int, kind: str) -> None:
    net = Net(_LIMITS, (1, height, width, 4))
    fails = kind == "resize_bilinear" and 1 in (height, width)
    assert _fails(net, _resized(net, net.x, kind), "gap9-sq8", "17.32") is fails


def _number(net: Net, value: float) -> int:
    return net.builder.constant("k", np.full(1, 127, np.int8), Affine.per_tensor(np.float32(value / 127), 0))


_BEHIND: dict[str, tuple[Callable[[Net, int], int], tuple[bool, bool]]] = {
    "an output": (lambda _net, y: y, (False, False)),
    "a mean": (_reduced, (False, False)),
    "a convolution": (lambda net, y: net.conv(y, _LIMITS), (False, True)),
    "a dense layer": (_flattened, (False, True)),
    "an average pool": (lambda net, y: _pooled(net, y, "average_pool_2d"), (True, True)),
}
"""What reads it -> whether NNTool fails on SQ8, and on NE16."""


@pytest.mark.parametrize("target", ["gap9-sq8", "gap9-ne16"])
@pytest.mark.parametrize("rectified", [False, True])
@pytest.mark.parametrize("reader", _BEHIND)
def test_hard_sigmoids_of_three_operators(reader: str, rectified: bool, target: str) -> None:
    """In a filter's fusion; behind a ReLU it stands alone, and NNTool takes it."""
    read, fails = _BEHIND[reader]
    net = Net(_LIMITS, (1, 7, 5, 4))
    x = net.conv(net.x, (0.0, 3.0), (3, 3), activation="relu") if rectified else net.conv(net.x, _LIMITS, (3, 3))
    bounded = net.unary("relu6", net.binary("add", x, _number(net, 3.0), (-1.0, 6.5)), (0.0, 6.0))
    y = net.binary("mul", bounded, _number(net, 1 / 6), (0.0, 1.0))
    wanted = not rectified and fails[target == "gap9-ne16"]
    assert _fails(net, read(net, y), target, "17.33") is wanted


@pytest.mark.parametrize("kind", ["max_pool_2d", "average_pool_2d"])
@pytest.mark.parametrize("curve", ["tanh", "logistic", "leaky_relu", "hard_swish"])
@pytest.mark.parametrize("filtered", [False, True])
def test_curves_behind_pools(filtered: bool, curve: str, kind: str) -> None:
    """A pool alone stays apart from a tanh behind it; with the others, or behind a filter, NNTool joins and fails."""
    net = Net(_LIMITS, (1, 7, 5, 4))
    x = _pooled(net, net.conv(net.x, _LIMITS) if filtered else net.x, kind)
    options = {"alpha": 0.25} if curve == "leaky_relu" else {}
    model = net.model(net.unary(curve, x, (-1.0, 1.0), **options))
    if curve == "tanh" and not filtered:
        assert [n.operator for n in quantized(model, "gap9-sq8", ["numerics=nntool"]).nodes] == [kind, "tanh"]
        return
    with pytest.raises(UnsupportedError, match="cannot quantize the two"):
        quantized(model, "gap9-sq8", ["numerics=nntool"])
