"""Columns of fully connected layers behind maps that NNTool holds channels first (docs/differences/gap9.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Limits, Net
from tflq.converters.gap9.departures import departures_of
from tflq.graph import Array, Graph
from tflq.interpreter import Engine, lower

_LIMITS: Limits = (-2.0, 2.0)
_FILE, _FIRST, _TURNED = "as in the file", "channels first", "of a turned shape"


def _dense(net: Net, x: int) -> int:
    size = int(np.prod(net.shapes[x]))
    flat = net.add("reshape", [x, _indices(net, 1, size)], (1, size), net.limits[x])
    return net.dense(flat, _LIMITS, 3)


def _indices(net: Net, *values: int) -> int:
    return net.builder.constant("indices", np.array(values, np.int32))


def _resized(net: Net, x: int, kind: str = "resize_nearest_neighbor") -> int:
    n, h, w, c = net.shapes[x]
    options = {"align_corners": False, "half_pixel_centers": False}
    return net.add(kind, [x, _indices(net, 2 * h, 2 * w)], (n, 2 * h, 2 * w, c), net.limits[x], **options)


def _pooled(net: Net, x: int) -> int:
    window = {"padding": "same", "stride_h": 1, "stride_w": 1, "filter_height": 3, "filter_width": 3}
    return net.add("max_pool_2d", [x], net.shapes[x], _LIMITS, **window)


def _softmax(net: Net, x: int) -> int:
    return net.add("softmax", [x], net.shapes[x], (0.0, 1.0), beta=1.0)


def _and(net: Net, x: int, *others: Callable[[Net, int], int]) -> list[int]:
    return [_dense(net, x), *(other(net, x) for other in others)]


def _convolved(net: Net, x: int) -> int:
    return net.conv(x, _LIMITS)


def _mean(net: Net, x: int) -> int:
    return net.dense(net.mean(x, _LIMITS), _LIMITS, 3)


def _resized_filter(net: Net) -> int:
    return _resized(net, _convolved(net, net.x))


def _sum(net: Net, a: int, b: int) -> int:
    return net.binary("add", a, b, _LIMITS)


def _sum_of_filters(net: Net) -> int:
    return _sum(net, _convolved(net, net.x), net.conv(net.x, _LIMITS, (3, 3)))


_NETWORKS: dict[str, tuple[Callable[[Net], list[int]], str, str]] = {
    "a resize": (lambda net: _and(net, _resized(net, net.x)), _FIRST, _FIRST),
    "bilinear": (lambda net: _and(net, _resized(net, net.x, "resize_bilinear")), _FIRST, _FIRST),
    "a resize of a filter": (lambda net: _and(net, _resized_filter(net)), _FIRST, _FIRST),
    "and a tanh": (lambda net: _and(net, net.unary("tanh", _resized(net, net.x), (-1.0, 1.0))), _FIRST, _FIRST),
    "a sum of two": (lambda net: _and(net, _sum(net, _resized(net, net.x), _resized_filter(net))), _FIRST, _FIRST),
    "a convolution beside it": (lambda net: _and(net, _resized_filter(net), _convolved), _TURNED, _TURNED),
    "a mean beside it": (lambda net: _and(net, _resized_filter(net), _mean), _TURNED, _TURNED),
    "a softmax beside it": (lambda net: _and(net, _resized_filter(net), _softmax), _FILE, _FILE),
    "a filter with a mean": (lambda net: _and(net, _convolved(net, net.x), _mean), _FIRST, _FILE),
    "a pool with a mean": (lambda net: _and(net, _pooled(net, net.x), _mean), _FIRST, _FIRST),
    "and a convolution": (lambda net: _and(net, _convolved(net, net.x), _mean, _convolved), _FILE, _FILE),
    "a sum with a mean": (lambda net: _and(net, _sum_of_filters(net), _mean), _FILE, _FILE),
    "an input with a mean": (lambda net: _and(net, net.unary("tanh", net.x, (-1.0, 1.0)), _mean), _TURNED, _TURNED),
}
"""What stands in front of the layer -> its columns on SQ8, and on NE16, as NNTool has them."""


def _orders(shape: tuple[int, ...]) -> dict[str, Array]:
    height, width, channels = shape
    all_ = np.arange(height * width * channels)
    return {
        _FILE: all_,
        _FIRST: all_.reshape(height, width, channels).transpose(2, 0, 1).reshape(-1),
        _TURNED: all_.reshape(width, channels, height).transpose(2, 0, 1).reshape(-1),
    }


def _lowered(name: str, target: str, numerics: str) -> Graph:
    net = Net(_LIMITS, (1, 7, 5, 4))
    outputs = _NETWORKS[name][0](net)
    return lower(quantized(net.model(*outputs), target, [f"numerics={numerics}"]), "gap9")


def _weights(name: str) -> Array:
    """The file's codes on the layer's own scales: max|w| becomes 127."""
    net = Net(_LIMITS, (1, 7, 5, 4))
    graph = net.graph(*_NETWORKS[name][0](net))
    data = next(graph.tensors[n.inputs[1]].data for n in graph.nodes if n.operator == "fully_connected")
    assert data is not None
    real = data.astype(np.float64)
    codes: Array = np.floor(real / (np.abs(real).max(1, keepdims=True) / 127) + 0.5).astype(np.int64)
    return codes


@pytest.mark.parametrize("target", ["gap9-sq8", "gap9-ne16"])
@pytest.mark.parametrize("name", _NETWORKS)
def test_columns(name: str, target: str) -> None:
    wanted = _NETWORKS[name][1 + (target == "gap9-ne16")]
    for numerics in ("exact", "nntool"):
        graph = _lowered(name, target, numerics)
        node = next(n for n in graph.nodes if n.operator == "fully_connected")
        codes, given = graph.tensors[node.inputs[1]].data, _weights(name)
        assert codes is not None
        orders = _orders((14, 10, 4) if given.shape[1] == 560 else (7, 5, 4))
        order = orders[_FIRST if wanted == _TURNED and numerics == "exact" else wanted]
        np.testing.assert_array_equal(codes.astype(int) - (128 if target == "gap9-ne16" else 0), given[:, order])
        warned = [text for text in departures_of(graph).values() if "NNTool permutes its columns" in text]
        assert bool(warned) is (wanted == _TURNED)


@pytest.mark.parametrize("name", ["a resize", "a pool with a mean"])
def test_results_are_the_same(name: str) -> None:
    """The order of a map and of the columns changes no sum."""
    graph = _lowered(name, "gap9-sq8", "exact")
    node = next(n for n in graph.nodes if n.operator == "fully_connected")
    x = np.random.default_rng(1).integers(-128, 128, (3, 1, 7, 5, 4)).astype(np.int8)
    turn = next(n for n in graph.nodes if n.operator == "transpose" and n.name.endswith("_trans_in0"))
    values = Engine(graph).run([x], [turn.inputs[0], node.inputs[0]])
    weights = graph.tensors[node.inputs[1]].data
    assert weights is not None
    as_turned = values[node.inputs[0]].reshape(3, -1).astype(np.int64) @ weights.astype(np.int64).T
    as_it_was = values[turn.inputs[0]].reshape(3, -1).astype(np.int64) @ _weights(name).T
    np.testing.assert_array_equal(as_turned, as_it_was)
