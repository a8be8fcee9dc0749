"""What a calibration finds for other targets is in no .tflite."""

from __future__ import annotations

import numpy as np

from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.calibration.calibrate import DIFFERENCE_RANGE
from tflq.converters.tflite_quantizer.prepare import prepare
from tflq.graph import DType, GraphBuilder


def test_the_range_of_a_difference_stays_behind() -> None:
    builder = GraphBuilder()
    x, y = (builder.input(name, (1, 4), DType.FLOAT32) for name in "xy")
    graph = builder.build((builder.add("squared_difference", (x, y), (1, 4), DType.FLOAT32),))
    rng = np.random.default_rng(1)
    ranged = calibrate(graph, [rng.normal(size=(6, 1, 4)).astype(np.float32) for _ in "xy"], StatisticsOptions())
    assert DIFFERENCE_RANGE in ranged.nodes[0].attributes
    assert DIFFERENCE_RANGE not in prepare(ranged).graph.nodes[0].attributes
