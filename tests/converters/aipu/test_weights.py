"""Scales of weights that channels share, bits that biases lose, settings for layers of the IR by number and name."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.aipu.single_layers import OneLayer
from tflq.converters.aipu import AIPU, graph_of
from tflq.converters.aipu.weights import cleared
from tflq.converters.settings import parse_settings
from tflq.errors import OptionError
from tflq.graph import DType, Graph, GraphBuilder, Range


@pytest.mark.parametrize("least", [0, 1, 3])
@pytest.mark.parametrize("bits", [0, 2, 8, 16])
@pytest.mark.parametrize(
    "codes",
    [(0,), (1, -1), (127, -128), (128, 0), (0, -129), (255, 3), (-256, 100), (32767, -32768), (32768, 5), (99999, -7)],
)
def test_lowest_bits_of_biases(codes: tuple[int, ...], bits: int, least: int) -> None:
    """k = ceil(max(log2(max / (2^(B-1) - 1)), log2(min / -2^(B-1)))) bits at least are 0.

    Source: docs/rules/aipu/values.md#linear-layers.
    """
    k = least
    if bits:
        of_high = math.log2(max(*codes, 1, 1) / (2 ** (bits - 1) - 1))
        of_low = math.log2(min(*codes, -1, -1) / -(2 ** (bits - 1)))
        k = max(math.ceil(max(of_high, of_low)), least)
    assert cleared(np.array(codes), bits, least).tolist() == [(c // 2**k) * 2**k for c in codes]


def _scales(largest: tuple[float, ...], *settings: str) -> list[float]:
    """Scales of the weights of a layer whose output channels reach so far."""
    weights = np.array(largest, np.float32)[:, None] * np.array([[1, -0.5, 0.25]], np.float32)
    given = {"weights": weights, "biases": np.zeros(len(largest), np.float32)}
    keys = {"num_output": len(largest), "with_activation": "NONE"}
    graph = graph_of(OneLayer("fully_connected", ((1, 3),), ((1, len(largest)),), keys, given=given).network())
    for t in (*graph.inputs, *graph.outputs):
        limits = Range(np.array([-1], np.float32), np.array([1], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=limits)
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings, settings))
    (node,) = quantized.nodes
    return [float(s) * 127 for s in quantized.tensors[node.inputs[1]].affine.scale]


TINY = 2e-6
"""Above what counts as no range, 1.2e-7; below 2^-15 of the others."""


@pytest.mark.parametrize(
    ("largest", "shared"),
    [
        ((1, 2, 0.5, 4), (1, 2, 0.5, 4)),
        ((1, TINY, 4, 2), (1, 1, 4, 4)),
        ((1, 2, 4, TINY), (2, 2, 4, 4)),
        ((TINY, TINY, 2, 4), (4, 4, 4, 4)),
        ((1, TINY, 2, 3, 4, 5, 6, 7), (1, 1, 3, 3, 5, 5, 7, 7)),
        ((TINY, TINY, 2, 3, 4, 5, 6, 7), (3, 3, 3, 3, 7, 7, 7, 7)),
        ((1, TINY, 2, 3, 4), (2, 2, 2, 4, 4)),
        ((1, 2, TINY), (2, 2, 2)),
    ],
)
def test_channels_share_scales_where_a_multiplier_would_be_0(
    largest: tuple[float, ...], shared: tuple[float, ...]
) -> None:
    """Half as many scales as channels, and half as many again (docs/rules/aipu/values.md#multipliers)."""
    assert _scales(largest, "weights=per_channel") == pytest.approx(shared, rel=1e-5)


def test_one_scale_a_tensor() -> None:
    assert _scales((1, 2, 0.5, 4)) == pytest.approx([4], rel=1e-5)


def _chain() -> Graph:
    builder = GraphBuilder()
    t = builder.input("first", (1, 4), DType.FLOAT32)
    for operator in ("exp", "square", "log", "tanh"):
        t = builder.add(operator, (t,), (1, 4), DType.FLOAT32)
    graph = builder.build((t,))
    limits = Range(np.array([0.5], np.float32), np.array([2], np.float32))
    names = ("first", "part0", "part1", "part2", "part3")
    graph.tensors[:] = [replace(one, range=limits, name=n) for one, n in zip(graph.tensors, names, strict=True)]
    return graph


@pytest.mark.parametrize(
    ("pattern", "wide"),
    [
        ("0", (0,)),
        ("3", (3,)),
        ("4", (4,)),
        ("1-2", (1, 2)),
        ("0-9", (0, 1, 2, 3, 4)),
        ("2-2", (2,)),
        ("Square", (2,)),
        ("log", (3,)),
        ("TANH", (4,)),
        ("activation", (4,)),
        ("input", (0,)),
        ("{part[02]}", (1, 3)),
        ("{part1$}", (2,)),
    ],
)
def test_layers_of_the_ir_have_settings_of_their_own(pattern: str, wide: tuple[int, ...]) -> None:
    """The number 0 is the Input; types and methods in any letters; regular expressions from the name's beginning."""
    settings = parse_settings(AIPU.settings, layers=[f"IR {pattern}:activation_bits=16"])
    graph = AIPU.quantize(_chain(), settings)
    bits = [graph.tensors[t].affine.bits for t in (*graph.inputs, *(n.outputs[0] for n in graph.nodes))]
    assert tuple(k for k, b in enumerate(bits) if b == 16) == wide


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("5", "matches none of the 5 layers of the IR"),
        ("3-2", "matches none of the 5"),
        ("Softmax", "matches none of the 5"),
        ("{art}", "matches none of the 5"),
        ("{(}", "is no regular expression"),
        ("1-x", "matches none of the 5"),
    ],
)
def test_patterns_that_mean_no_layer(pattern: str, message: str) -> None:
    rules = [f"IR {pattern}:activation_bits=16", "IR 0:activation_bits=16"]
    with pytest.raises(OptionError, match=message):
        AIPU.quantize(_chain(), parse_settings(AIPU.settings, layers=rules))


def test_later_rules_win() -> None:
    rules = ["IR 0-4:activation_bits=16", "IR square:activation_bits=8"]
    graph = AIPU.quantize(_chain(), parse_settings(AIPU.settings, layers=rules))
    assert [graph.tensors[n.outputs[0]].affine.bits for n in graph.nodes] == [16, 8, 16, 16]
