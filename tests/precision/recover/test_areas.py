"""Areas of a filter's output positions: means of its windows over tiles and whole images."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.precision.recover.test_filters import network
from tflq.converters.settled import settled_graph
from tflq.graph import Attributes, Node
from tflq.precision.recover.areas import Areas, areas_of
from tflq.precision.recover.filters import Filter, filter_of


def filter_on(height: int, width: int) -> Filter:
    attributes = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    node = Node("conv_2d", (0, 1, 2), (3,), Attributes(attributes), "filter")
    graph = settled_graph(network(node, (1, height, width, 2), np.ones((2, 3, 3, 2), np.float32), None))
    found = filter_of(graph, 0)
    assert isinstance(found, Filter)
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 12), st.integers(1, 12), st.integers(1, 6), st.integers(1, 6))
def test_windows_of_an_area_are_the_mean_of_its_positions(
    seed: int, height: int, width: int, rows: int, columns: int
) -> None:
    of = filter_on(height, width)
    x = np.random.default_rng(seed).integers(-9, 10, (2, 1, height, width, 2))
    areas = Areas(of, (min(rows, height), min(columns, width)), np.arange(0), 1.0)
    every = of.windows(x, np.arange(2 * of.positions)).reshape(1, 2, height, width, -1)
    down, across = areas.grid
    wanted = [
        every[0, s, y * areas.size[0] : (y + 1) * areas.size[0], z * areas.size[1] : (z + 1) * areas.size[1]].mean(
            (0, 1)
        )
        for s in range(2)
        for y in range(down)
        for z in range(across)
    ]
    found = areas.windows(x, np.arange(2 * areas.each))[0]
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-12)
    chosen = np.arange(0, 2 * areas.each, 2)
    assert np.array_equal(areas.windows(x, chosen)[0], found[chosen])


def test_what_a_filter_is_fitted_to() -> None:
    whole = areas_of(filter_on(12, 7), 3, 100, 0)
    assert [(a.size, len(a.chosen)) for a in whole] == [((1, 1), 100), ((5, 5), 18), ((12, 7), 3)]
    assert [a.weight for a in whole] == [1.0, 4.0 * 18 / 72, 8.0 * 3 / 72]
    assert [a.size for a in areas_of(filter_on(1, 1), 3, 100, 0)] == [(1, 1)]
    assert [a.size for a in areas_of(filter_on(4, 4), 3, 100, 0)] == [(1, 1), (4, 4)]
