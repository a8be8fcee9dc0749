"""Every form of small network that GAP9 takes: near what it computes, and its files read back (float_forms.py)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.support.float_forms import FORMS, built
from tests.support.gap9_read_back import read_graph
from tflq.arrays import is_same
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.errors import TflqError
from tflq.graph import Array, Graph, Model
from tflq.graph.float_view import dequantize
from tflq.interpreter import Engine, lower

SAMPLES = 6
ENGINES = ("gap9-ne16", "gap9-sq8")
TAKEN = 351
"""How many of the forms GAP9 takes; the others are refused."""
ELSEWHERE = ("max_pool_2d of (2, 2, 'same')", "max_pool_2d of (3, 1, 'same')", "average_pool_2d of (2, 2, 'same')",
             "average_pool_2d of (3, 1, 'same')", "bilinear", "nearest_neighbor ((3, 3)")  # fmt: skip
"""What NNTool computes otherwise (docs/differences/gap9.md): padded pools, resizing."""
STEEP = ("div of two", "div swapped", "0.5 div", "1.0 div", "div channels first", "rectified below 0.0")
"""Quotients by numbers near 0, and a network that is 0."""

ROUGH = ("tanh, then", "power of 0.5", "Reshapes in front of sqrt", "two Reshapes")
"""Two tables, or a root, one behind the other: 7 % of the largest result, all others 5 %."""


@cache
def _quantized(name: str, engine: str) -> tuple[Graph, list[Array], Graph | None]:
    """The float network, samples, and the lowered graph where the target takes it."""
    graph, inputs = built(name)
    given, target = [x[:SAMPLES] for x in inputs], find_target(engine)
    try:
        ranged = calibrate(graph, given, StatisticsOptions("extrema"))
        return graph, given, lower(target.quantize(ranged, parse_settings(target.settings)), "gap9")
    except TflqError:
        return graph, given, None


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith((*ELSEWHERE, *STEEP))])
def test_near_what_the_model_computes(name: str, engine: str) -> None:
    graph, given, found = _quantized(name, engine)
    if found is not None:
        target = find_target(engine)
        codes = [target.encode(x, found.tensors[t]) for x, t in zip(given, found.inputs, strict=True)]
        output = found.tensors[found.outputs[0]]
        ours = dequantize(Engine(found).run(codes)[found.outputs[0]], output.affine)
        wanted = Engine(graph, "float").run(given)[graph.outputs[0]]
        share = 0.07 if name.startswith(ROUGH) else 0.05
        assert np.abs(ours.reshape(wanted.shape) - wanted).max() <= share * np.abs(wanted).max()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", FORMS)
def test_the_files_read_back(name: str, engine: str) -> None:
    graph, _, found = _quantized(name, engine)
    if found is not None:
        again = lower(read_graph(find_target(engine).emit(found, Model([graph]))), "gap9")
        assert all(is_same(a.params, b.params) for a, b in zip(found.nodes, again.nodes, strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_so_many_are_taken(engine: str) -> None:
    assert sum(_quantized(name, engine)[2] is not None for name in FORMS) == TAKEN
