"""Layers of which the device's results are not the model's: `convert` says by which factor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.aipu import AIPU
from tflq.converters.calibration.ranges import range_of
from tflq.converters.settings import parse_settings
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine, lower

PAIRS = {"sub": np.subtract, "add": np.add, "maximum": np.maximum, "mul": np.multiply}


@pytest.mark.parametrize(
    ("operator", "largest", "factor"),
    [
        ("sub", (1.0, 1.0, 1.5), 1.5),
        ("maximum", (1.0, 1.0, 0.5), 0.5),
        ("sub", (1.0, 0.75, 1.5), 1),
        ("sub", (1.0, 1.0, 1.0), 1),
        ("add", (1.0, 1.0, 1.5), 1),
        ("mul", (1.0, 1.0, 0.5), 1),
    ],
)
def test_results_differ_by_the_factor_that_is_said(
    operator: str, largest: tuple[float, float, float], factor: float
) -> None:
    builder = GraphBuilder()
    inputs = [builder.input(name, (1, 64), DType.FLOAT32) for name in "ab"]
    graph = builder.build([builder.add(operator, inputs, (1, 64), DType.FLOAT32)])
    graph.tensors = [replace(t, range=range_of(-r, r)) for t, r in zip(graph.tensors, largest, strict=True)]
    lowered = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, [])), AIPU.arithmetic)
    a, b = np.random.default_rng(3).uniform(-0.4, 0.4, (2, 32, 1, 64)).astype(np.float32)
    given = [AIPU.encode(side, lowered.tensors[t]) for side, t in zip((a, b), lowered.inputs, strict=True)]
    y = lowered.outputs[0]
    found = Engine(lowered).run(given)[y] * float(lowered.tensors[y].affine.scale[0])
    right = PAIRS[operator](a, b)
    far = np.abs(right) > 0.1
    assert np.median(found[far] / right[far]) == pytest.approx(factor, rel=0.03)
    assert [words.split(": ")[1].split(" what")[0] for words in AIPU.departures(lowered).values()] == (
        [] if factor == 1 else [f"results are {factor:g} times"]
    )
