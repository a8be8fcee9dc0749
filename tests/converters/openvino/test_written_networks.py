"""Networks of many forms in OpenVINO's runtime: the numbers that tflq computes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.float_networks import NETWORKS, measured
from tests.support.openvino import Runtime, channels_first, converted, sums_saturate
from tests.support.tpu_mlir_variants import VARIANTS
from tflq.graph import Model

CLOSE = {
    "mul and a number behind a filter", "mul of a number behind a filter", "mul and a number below 0 behind a filter",
    "mul of a number below 0 behind a filter", "div and a number behind a filter",
    "div and a number below 0 behind a filter", "mul of rows (1, 5, 8) and (1, 5, 1)",
    "relu_0_to_1 behind a concatenation", "a softsign, of another", "drawn 0", "drawn 2", "drawn 19", "drawn 27",
    "drawn 33", "values near 0, bias False", *(f"{o} {w} {n} behind {x}" for o in ("add", "sub") for w in ("and", "of")
                  for n in ("a number", "a number below 0") for x in ("nothing", "a filter", "relu")),
}  # fmt: skip
"""Networks of which a real lies so close to the middle of two levels that the plug-in's float32 decides otherwise, or
adds a constant in float32 behind its levels (values of 1e-7 differ by up to 2.8e-9)."""
STEEP = {"slopes up to 63.5": 63.5}
"""Network -> the slope of its PRELU, which multiplies what the plug-in's float32 sums differ by."""
AVERAGED = "average_pool_2d of 3 by 1, valid, rectified False, border 1"
CHOSEN = [*NETWORKS, *(n for n in [*VARIANTS][::2] if n != AVERAGED)]


@pytest.mark.parametrize("name", CHOSEN)
def test_the_runtimes_numbers(name: str) -> None:
    if sums_saturate():
        pytest.skip("no VNNI: OpenVINO's sums of two products saturate at int16 there")
    make = NETWORKS.get(name) or VARIANTS[name]
    graph, inputs, _ = measured(make)
    engine, xml, weights = converted(Model([graph], source="network.tflite"))
    ours = engine.run(inputs)
    theirs = Runtime(xml, weights).run_all([channels_first(x) for x in inputs])
    for t, other in zip(engine.graph.outputs, theirs, strict=True):
        mine = channels_first(ours[t])
        assert mine.shape == other.shape
        share = 0.025 if name in CLOSE else 1e-5 * STEEP.get(name, 1)
        assert np.abs(mine.astype(np.float64) - other).max() <= share * np.abs(mine).max()
