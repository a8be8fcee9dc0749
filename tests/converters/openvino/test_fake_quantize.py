"""FakeQuantize against the runtime: the index of the level, exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.support.openvino import Runtime
from tflq.converters.openvino.ir import Builder
from tflq.converters.openvino.ir.files import network_to_bytes
from tflq.converters.openvino.reader import model_from_bytes
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, DType, FakeQuantize, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.openvino.levels import level_indices, require_sound

VALUES = 100_000


def runtime_of(rule: FakeQuantize) -> Runtime:
    b = Builder("fake_quantize")
    x = b.parameter("x", (1, 10, VALUES // 10))
    bounds = (rule.input_low, rule.input_high, rule.output_low, rule.output_high)
    inputs = [x, *(b.constant(f"bound{i}", value.reshape(1, 1, 1)) for i, value in enumerate(bounds))]
    y = b.add("FakeQuantize", "y", inputs, x.shape, levels=str(rule.levels), auto_broadcast="numpy")
    b.result("out", y)
    return Runtime(*network_to_bytes(b.build()))


@pytest.mark.parametrize("levels", [2, 3, 4, 8, 15, 16, 17, 32, 64, 127, 128, 255, 256, 512, 1024, 4096, 65535])
@pytest.mark.parametrize("kind", ["free", "symmetric", "nudged", "other output"])
def test_random_values(levels: int, kind: str) -> None:
    rng = np.random.default_rng(levels)
    low, high = np.sort(rng.normal(size=2) * 10 ** rng.uniform(-3, 3))
    if kind == "symmetric":
        low, high = -abs(high), abs(high)
    elif kind == "nudged":
        scale, zero = rng.uniform(0.001, 0.1), rng.integers(0, levels)
        low, high = -zero * scale, (levels - 1 - zero) * scale
    outputs = (0, levels - 1) if kind == "other output" else (low, high)
    rule = FakeQuantize(levels, *(np.array([v], np.float32) for v in (low, high, *outputs)))
    width = high - low
    x = rng.uniform(low - width / 10, high + width / 10, (1, 1, 10, VALUES // 10)).astype(np.float32)
    y = runtime_of(rule).run([x]).astype(np.float64)
    bottom, top = float(rule.output_low[0]), float(rule.output_high[0])
    theirs = np.rint((y - bottom) / (top - bottom) * (levels - 1))
    assert np.array_equal(level_indices(x, rule), theirs)


@pytest.mark.parametrize("several", [*product((False, True), repeat=4)], ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5), (2, 3, 4)], ids=str)
def test_bounds_of_one_number_beside_those_of_channels(shape: tuple[int, ...], several: tuple[bool, ...]) -> None:
    """Against the formula of OpenVINO's page of FakeQuantize.

    The plug-in (2026.4.1) reads beyond the one number of an output bound whose other one has several; so it judges
    where both have as many.
    """
    b, rank, bounds = Builder("bounds"), len(shape), list[Array]()
    given = [b.parameter("x", shape)]
    for i, (start, each) in enumerate(zip((-2, 1, -3, 0.5), several, strict=True)):
        values = np.array([start, start + 0.25, start - 0.5] if each else [start], np.float32)
        stated = (1,) * (i % 2)  # the first axis of bounds may be left out
        bounds.append(values.reshape(*stated, -1, *(1,) * (rank - 2)))
        given.append(b.constant(f"bound{i}", bounds[-1]))
    b.result("y", b.add("FakeQuantize", "levels", given, shape, levels="16", auto_broadcast="numpy"))
    xml, content = network_to_bytes(b.build())
    if rank == 3 and any(several):
        with pytest.raises(UnsupportedError, match="bounds per channel of a value with 3 axes; read are 2 and 4"):
            model_from_bytes(xml, content, "bounds.xml")
        return
    graph = model_from_bytes(xml, content, "bounds.xml").main
    x = np.random.default_rng(rank).uniform(-4, 3, (2, *shape)).astype(np.float32)
    ours = Engine(graph, "openvino").run([x])[graph.outputs[0]]
    il, ih, ol, oh = (v.astype(np.float64) for v in bounds)
    wanted = np.rint(np.clip((x - il) / (ih - il), 0, 1) * 15) / 15 * (oh - ol) + ol
    assert np.allclose(ours, wanted, rtol=1e-6, atol=1e-6)
    if several[2] == several[3]:
        assert np.allclose(ours, Runtime(xml, content).run([x]), rtol=1e-6, atol=1e-6)


def test_ties_go_to_the_even_level() -> None:
    """Not to the even code: with an odd level at zero the two differ."""
    for zero in (0, 1, 122, 123):
        bounds = (np.array([-zero], np.float32), np.array([255 - zero], np.float32))
        rule = FakeQuantize(256, *bounds, *bounds)
        x = np.resize(np.arange(-140, 140) + 0.5, (1, 1, 10, VALUES // 10)).astype(np.float32)
        assert np.array_equal(level_indices(x, rule), runtime_of(rule).run([x]) + zero)


def test_the_channel_that_is_inverted_is_named() -> None:
    low, high = np.array([-1, 2, -3], np.float32), np.array([1, 1, 3], np.float32)
    with pytest.raises(GraphError, match="input_low 2 is above input_high 1; swap them"):
        require_sound(FakeQuantize(256, low, high, low, high), "here")


def test_a_mean_over_channels_with_ranges_of_their_own_is_refused() -> None:
    b = GraphBuilder()
    own = Affine(np.array([0.5, 0.25], np.float32), np.zeros(2, np.int64), 3, 8)
    inputs = [b.input("x", (1, 4, 4, 2), DType.INT8, own), b.constant("axes", np.array([3], np.int32))]
    graph = b.build([b.add("mean", inputs, (1, 4, 4), DType.FLOAT32)])
    with pytest.raises(UnsupportedError, match="channels that have ranges of their own"):
        lower(graph, "openvino")
