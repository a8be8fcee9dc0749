"""Softmax by powers of two: values that the Optimizer's own functions gave, when it is used, and what it writes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import DType, Graph, GraphBuilder, Range
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.softmax import _power

# Compass Optimizer, commit d7b2bb7e: ops/softmax.py with simple_log2, Log2_norm and Pow2 of utils/math_utils.py, run on
# these quantized values at a scale of 12.7.
CODES = [[-50, 10, 42, 41, -128, 39], [0, 0, 0, 0, 0, 0], [5, 3, 2, -7, 100, 99]]
GOLDEN = {
    (0, 8): [[0, 8, 128, 64, 0, 64], [128, 128, 128, 128, 128, 128], [0, 0, 0, 0, 255, 128]],
    (0, 16): [[16, 2048, 32768, 16384, 0, 16384], [32768] * 6, [32, 16, 16, 8, 65535, 32768]],
    (1, 8): [[0, 8, 128, 64, 0, 64], [64, 64, 64, 64, 64, 64], [0, 0, 0, 0, 128, 64]],
    (1, 16): [[16, 2048, 32768, 16384, 0, 16384], [16384] * 6, [16, 8, 8, 4, 32768, 16384]],
    (8, 8): [[0, 7, 91, 84, 0, 72], [64, 64, 64, 64, 64, 64], [0, 0, 0, 0, 133, 122]],
    (8, 16): [[16, 1893, 23550, 21712, 0, 18557], [16428] * 6, [19, 16, 15, 7, 34126, 31464]],
    (12, 8): [[0, 7, 91, 84, 0, 72], [64, 64, 64, 64, 64, 64], [0, 0, 0, 0, 132, 122]],
    (12, 16): [[16, 1888, 23486, 21712, 0, 18507], [16384] * 6, [19, 16, 15, 7, 34034, 31464]],
}


def _softmax(*behind: str, limit: float = 127.5 / 12.7) -> Graph:
    """Return a softmax over 6 terms, and layers behind it."""
    builder = GraphBuilder()
    t = builder.input("x", (3, 6), DType.FLOAT32)
    ranges = {t: (-limit, limit)}
    for operator in ("softmax", *behind):
        t = builder.add(operator, (t,), (3, 6), DType.FLOAT32)
        ranges[t] = (0.0, 0.7)
    graph = builder.build((t,))
    for tensor, limits in ranges.items():
        found = Range(*(np.array([x], np.float32) for x in limits))
        graph.tensors[tensor] = replace(graph.tensors[tensor], range=found)
    return graph


def _quantized(graph: Graph, *settings: str) -> Graph:
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), "aipu")


@pytest.mark.parametrize(("adjust", "bits"), GOLDEN)
def test_the_optimizers_values(adjust: int, bits: int) -> None:
    sets = ("softmax=fast_exp", f"softmax_adjust_q={adjust}")
    layers = [f"softmax:activation_bits={bits}"]
    graph = lower(AIPU.quantize(_softmax(), parse_settings(AIPU.settings, sets, layers)), "aipu")
    found = Engine(graph).run([np.array([CODES], np.int8)])[graph.outputs[0]]
    assert found[0].tolist() == GOLDEN[adjust, bits]
    assert np.float32(1 / graph.tensors[graph.outputs[0]].affine.scale[0]) == (1 << bits) - 1
    again = graph_of(network_of(graph))
    np.testing.assert_array_equal(Engine(again).run([np.array([CODES], np.int8)])[again.outputs[0]], found)


@pytest.mark.parametrize("adjust", [8, 12, 15])
def test_tables_come_close_to_float(adjust: int) -> None:
    graph = _quantized(_softmax(), "softmax=fast_exp", f"softmax_adjust_q={adjust}")
    codes = np.random.default_rng(adjust).integers(-128, 128, (50, 3, 6)).astype(np.int8)
    found = Engine(graph).run([codes])[graph.outputs[0]].astype(np.float64) / 255
    real = np.exp(codes / 12.7)
    assert np.abs(found - real / real.sum(axis=-1, keepdims=True)).max() < 0.02


def test_keys() -> None:
    """log2(e) / 12.7 = 0.1136: M = RNE(0.1136 * 2^16) = 7445 below 2^13; Q = 31 - 2."""
    (layer,) = (x for x in network_of(_quantized(_softmax(), "softmax=fast_exp")).layers if x.type == "Softmax")
    computed = list(layer.entries.items())
    start = [key for key, _ in computed].index("unquantifiable") + 1
    assert computed[start:-1] == [
        ("input_scale_value", 7445),
        ("input_shift_value", 16),
        ("input_scale_type", "uint16"),
        ("input_shift_type", "int8"),
        ("pow2_out_q", 29),
        ("adjust_q", 1),
        ("quantize_method", "FAST_EXP"),
    ]
    assert layer.entries["layer_top_scale"] == (255.0,)
    assert not layer.constants
    fine = _quantized(_softmax(), "softmax=fast_exp", "softmax_adjust_q=9")
    assert list(network_of(fine).layers[1].constants) == ["log2_lut", "pow2_lut"]


@pytest.mark.parametrize(
    ("behind", "settings", "method"),
    [
        ((), (), "LUT"),
        (("abs",), (), "FAST_EXP"),
        (("abs",), ("softmax=lut",), "LUT"),
        ((), ("softmax=fast_exp",), "FAST_EXP"),
        (("abs", "neg"), ("activations=asymmetric",), "FAST_EXP"),
    ],
)
def test_which_one_is_used(behind: tuple[str, ...], settings: tuple[str, ...], method: str) -> None:
    layers = network_of(_quantized(_softmax(*behind), *settings)).layers
    assert [x.entries["quantize_method"] for x in layers if x.type == "Softmax"] == [method]


def test_a_ranking_layer_further_on_asks_for_the_table() -> None:
    graph = _softmax("abs")
    builder = GraphBuilder()
    t = builder.input("x", (3, 6), DType.FLOAT32)
    for operator in ("softmax", "abs"):
        t = builder.add(operator, (t,), (3, 6), DType.FLOAT32)
    axis = builder.constant("axis", np.array(1, np.int32))
    ranked = builder.build((builder.add("arg_max", (t, axis), (3,), DType.INT32),))
    for i, tensor in enumerate(graph.tensors):
        place = next((j for j, other in enumerate(ranked.tensors) if other.name == tensor.name), None)
        if place is not None:
            ranked.tensors[place] = replace(ranked.tensors[place], range=graph.tensors[i].range)
    layers = network_of(_quantized(ranked)).layers
    assert [x.entries["quantize_method"] for x in layers if x.type == "Softmax"] == ["LUT"]


def test_steps_that_are_too_coarse_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="they are too coarse; use softmax=lut"):
        _quantized(_softmax(limit=1e7), "softmax=fast_exp")


def test_powers_of_two_begin_with_that_of_zero() -> None:
    exponents = [-7, -1, 0, 1, 30]
    assert _power(np.array(exponents)).tolist() == [1 << e if e >= 0 else 0 for e in exponents]
