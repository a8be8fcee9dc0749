"""Ranges that nothing states: functions behind the last range of a file, and what a flat function reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.aipu_layers import Output, float_layer
from tflq.converters.aipu.options import LayerOptions, options_of
from tflq.converters.aipu.ranges import range_of, with_function_ranges
from tflq.converters.aipu.target import AIPU
from tflq.converters.settings import parse_settings
from tflq.graph import Graph, Range

# A function, the range of its input and that of its output: numbers of a table of the function, at the range widened
# to 0.
FUNCTIONS: tuple[tuple[str, dict[str, object], tuple[float, float], tuple[float, float]], ...] = (
    ("exp", {}, (-2, 1), (np.exp(-2), np.exp(1))),
    ("exp", {}, (1, 2), (1, np.exp(2))),
    ("exp", {}, (-2, -1), (np.exp(-2), 1)),
    ("square", {}, (-3, 2), (0, 9)),
    ("square", {}, (2, 3), (0, 9)),
    ("sqrt", {}, (1, 4), (0, 2)),
    ("floor", {}, (-2.5, 1.5), (-3, 1)),
    ("ceil", {}, (-2.5, 1.5), (-2, 2)),
    ("sine", {}, (0, 10), (-1, 1)),
    ("activation", {"method": "SIGMOID"}, (-1, 2), (1 / (1 + np.exp(1)), 1 / (1 + np.exp(-2)))),
    ("activation", {"method": "TANH"}, (0.5, 2), (0, np.tanh(2))),
    ("activation", {"method": "TANH"}, (-2, -0.5), (np.tanh(-2), 0)),
    ("activation", {"method": "ELU", "alpha": 1.0}, (-3, -1), (np.exp(-3) - 1, 0)),
)


def _graph(operator: str, keys: dict[str, object], limits: tuple[float, float] | None) -> Graph:
    graph = float_layer(operator, [np.zeros((1, 4), np.float32)], [Output((4,))], **keys)  # type: ignore[arg-type]
    known = None if limits is None else Range(*(np.float32([limit]) for limit in limits))
    graph.tensors[graph.inputs[0]] = replace(graph.tensors[graph.inputs[0]], range=known)
    return graph


def _options(graph: Graph, *texts: str) -> dict[str, LayerOptions]:
    return dict.fromkeys((n.name for n in graph.nodes), options_of(dict(parse_settings(AIPU.settings, texts).values)))


@pytest.mark.parametrize(("operator", "keys", "limits", "wanted"), FUNCTIONS)
def test_a_function_reaches_what_it_gives_of_its_inputs_range_and_of_0(
    operator: str, keys: dict[str, object], limits: tuple[float, float], wanted: tuple[float, float]
) -> None:
    graph = _graph(operator, keys, limits)
    found = with_function_ranges(graph, _options(graph))
    # 1024 points: the extremes of a wave lie between two of them.
    assert range_of(found.tensors[found.outputs[0]]) == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    assert range_of(found.tensors[found.inputs[0]]) == pytest.approx(limits)
    assert graph.tensors[graph.outputs[0]].range is None, "the graph itself stays"


def test_infinities_and_what_is_no_number_count_nothing() -> None:
    """log is -infinity at 0, and no number below."""
    graph = _graph("log", {}, (-1, 4))
    low, high = range_of(with_function_ranges(graph, _options(graph)).tensors[graph.outputs[0]])
    assert high == pytest.approx(np.log(4))
    assert np.log(5 / 1023 / 5) < low < 0


@pytest.mark.parametrize(
    ("operator", "keys", "limits"),
    [("exp", {}, None), ("abs", {}, (-1, 2)), ("activation", {"method": "RELU"}, (-1, 2))],
)
def test_others_keep_what_they_have(operator: str, keys: dict[str, object], limits: tuple[float, float] | None) -> None:
    graph = _graph(operator, keys, limits)
    assert with_function_ranges(graph, _options(graph)) is graph


def test_a_stated_range_stands() -> None:
    graph = _graph("exp", {}, (-2, 1))
    t = graph.outputs[0]
    graph.tensors[t] = replace(graph.tensors[t], range=Range(np.float32([0.5]), np.float32([2])))
    assert with_function_ranges(graph, _options(graph)) is graph


@pytest.mark.parametrize(
    ("method", "given", "cut"),
    [
        ("SIGMOID", (-9, 3), (-6, 3)),
        ("SIGMOID", (-5, 8), (-5, 6)),
        ("TANH", (-9, 9), (-3, 3)),
        ("TANH", (-2, 1), (-2, 1)),
        ("SOFTSIGN", (-9, 9), (-9, 9)),
    ],
)
def test_what_a_flat_function_reads_is_cut_where_it_is_requested(
    method: str, given: tuple[float, float], cut: tuple[float, float]
) -> None:
    graph = _graph("activation", {"method": method}, given)
    for texts, wanted in (((), given), (("cut_inputs=true",), cut)):
        found = with_function_ranges(graph, _options(graph, *texts))
        assert range_of(found.tensors[found.inputs[0]]) == wanted
    empty = _graph("activation", {"method": method}, None)
    assert with_function_ranges(empty, _options(empty, "cut_inputs=true")) is empty
