"""Fully connected layers whose columns NNTool permutes: on which networks, and how (docs/differences/gap9.md)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gap9_golden import quantized
from tests.support.gap9_nets import Net
from tflq.converters.gap9.departures import departures_of
from tflq.converters.gap9.passes.columns import vendor_columns
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Model
from tflq.interpreter import lower

LIMITS = (-4.0, 4.0)
SHAPE = (1, 5, 7, 4)


def _maps(net: Net, activation: str = "none") -> tuple[int, int, int]:
    """Three convolutions of the input, which nothing merges."""
    a, b, c = (net.conv(net.x, LIMITS, kernel, activation=activation) for kernel in ((1, 1), (3, 3), (5, 5)))
    return a, b, c


def _add(net: Net, a: int, b: int) -> int:
    return net.add("add", [a, b], net.shapes[a], LIMITS)


def _dense(net: Net, t: int) -> int:
    size = int(np.prod(net.shapes[t]))
    shape = net.builder.constant("flat", np.array([1, size], np.int32))
    return net.dense(net.add("reshape", [t, shape], (1, size), LIMITS), LIMITS)


def first_of_a_sum(shape: tuple[int, ...]) -> Model:
    net = Net(shape=shape)
    a, b, _ = _maps(net)
    return net.model(_dense(net, a), net.conv(_add(net, a, b), LIMITS))


def second_of_a_sum(shape: tuple[int, ...]) -> Model:
    net = Net(shape=shape)
    a, b, _ = _maps(net, "relu6")
    return net.model(_dense(net, b), net.conv(_add(net, a, b), LIMITS))


def the_sum(shape: tuple[int, ...]) -> Model:
    net = Net(shape=shape)
    a, b, c = _maps(net)
    total = _add(net, a, b)
    return net.model(_dense(net, total), net.conv(_add(net, total, c), LIMITS))


def doubled_beside_a_sum(shape: tuple[int, ...]) -> Model:
    """The search from the first convolution is given up at b + b; that from the second one comes to `a` upwards."""
    net = Net(shape=shape)
    a, b, c = _maps(net)
    doubled, total = _add(net, b, b), _add(net, a, b)
    return net.model(_dense(net, _add(net, c, a)), net.conv(doubled, LIMITS), net.conv(total, LIMITS))


def sum_of_parallel_convolutions(shape: tuple[int, ...]) -> Model:
    """The two become one with twice the channels."""
    net = Net(shape=shape)
    first = net.conv(net.x, LIMITS, activation="relu")
    return net.model(_dense(net, _add(net, net.conv(first, LIMITS), net.conv(first, LIMITS))))


def a_concatenation(shape: tuple[int, ...]) -> Model:
    net = Net(shape=shape)
    a, b, _ = _maps(net)
    return net.model(_dense(net, net.join([a, b], LIMITS)))


def _lowered(model: Model, numerics: str) -> tuple[Graph, Array]:
    graph = lower(quantized(model, "gap9-ne16", [f"numerics={numerics}"]), "gap9")
    weights = next(graph.tensors[n.inputs[1]].data for n in graph.nodes if n.operator == "fully_connected")
    assert weights is not None
    return graph, weights


@pytest.mark.parametrize("size", [(5, 7), (6, 6), (1, 8), (8, 1)])
@pytest.mark.parametrize(
    ("network", "factor"),
    [(first_of_a_sum, 0), (the_sum, 0), (second_of_a_sum, 1), (doubled_beside_a_sum, 1)],
)
def test_columns_as_nntool_has_them(
    network: Callable[[tuple[int, ...]], Model], factor: int, size: tuple[int, int]
) -> None:
    """NNTool was run on these very networks: column j holds column j C H^2 mod (n - 1), or all stays."""
    model = network((1, *size, 4))
    exact, right = _lowered(model, "exact")
    vendor, permuted = _lowered(model, "nntool")
    n = right.shape[1]
    order = np.append(np.arange(n - 1) * (4 * size[0] ** 2 if factor else 1) % (n - 1), n - 1)
    np.testing.assert_array_equal(permuted, right[:, order])
    for graph in (exact, vendor):
        assert any("NNTool permutes its columns" in text for text in departures_of(graph).values()) is bool(factor)


def test_columns_that_nntool_fails_on() -> None:
    """NNTool, run on the network: cannot reshape array of size 560 into shape (4,8,5,7)."""
    model = sum_of_parallel_convolutions(SHAPE)
    assert any(
        "NNTool fails" in text and "17.15" in text for text in departures_of(_lowered(model, "exact")[0]).values()
    )
    with pytest.raises(UnsupportedError, match=r"17\.15.*numerics=exact"):
        quantized(model, "gap9-ne16", ["numerics=nntool"])


def test_columns_behind_a_concatenation() -> None:
    """NNTool fails on this one, and on all 27 of the recorded networks whose search comes to another shape."""
    graph, _ = _lowered(a_concatenation(SHAPE), "exact")
    assert any("NNTool fails" in text and "17.15" in text for text in departures_of(graph).values())
    with pytest.raises(UnsupportedError, match=r"other shapes \(17\.15\); numerics=exact"):
        _lowered(a_concatenation(SHAPE), "nntool")


@pytest.mark.parametrize(
    ("first", "second", "factor"), [(False, False, 1), (True, True, 648), (False, True, 576), (True, False, 100)]
)
def test_columns_of_both_searches(first: bool, second: bool, factor: int) -> None:
    """Factors that NNTool's weights showed behind a map of 9 x 11 x 8, which each of the two searches turned or not."""
    found = vendor_columns((1, 9, 11, 8), first, second)
    np.testing.assert_array_equal(found, np.append(np.arange(791) * factor % 791, 791))


def test_a_relu_between_two_sums() -> None:
    """NNTool was run on both: its first search goes up through the ReLU that a range from 0 on implies."""

    def two_sums(low: float) -> Model:
        net = Net(shape=SHAPE)
        a, b, _ = _maps(net)
        total = net.add("add", [a, b], SHAPE, (low, 4.0))
        return net.model(_dense(net, total), net.conv(_add(net, total, b), LIMITS))

    for low, factor in ((-4.0, 1), (0.0, 36)):
        right, permuted = (_lowered(two_sums(low), numerics)[1] for numerics in ("exact", "nntool"))
        order = np.append(np.arange(139) * factor % 139, 139)
        np.testing.assert_array_equal(permuted, right[:, order])


@pytest.mark.parametrize("top", [5.99, 6.0, 5.0])
def test_columns_behind_a_sum_of_a_pool_with_itself(top: float) -> None:
    """NNTool was run on these networks: all stays."""
    limits = (0.0, top)
    net = Net(shape=(1, 10, 14, 4))
    pool = net.pool(net.conv(net.x, limits, activation="relu6"), limits)
    model = net.model(_dense(net, net.binary("add", pool, pool, (0.0, 12.0))), net.conv(pool, LIMITS))
    right, columns = (_lowered(model, numerics)[1] for numerics in ("exact", "nntool"))
    np.testing.assert_array_equal(columns, right)
