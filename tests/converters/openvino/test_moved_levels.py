"""Operators that move data in front of and behind layers on levels: where FakeQuantize stands, which types run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.converters.openvino.networks import with_ranges
from tests.support.openvino import Runtime, channels_first, converted, sums_saturate
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.graph import DType, Graph, GraphBuilder, Model

FLOAT = DType.FLOAT32
IMAGE = (1, 6, 4, 3)
POOL = {"padding": "valid", "stride_h": 2, "stride_w": 2, "filter_height": 2, "filter_width": 2}
MOVES: dict[str, tuple[Callable[..., tuple[int, ...]], list[object], dict[str, Any]]] = {
    "max_pool_2d": (lambda n, h, w, c: (n, h // 2, w // 2, c), [], {**POOL, "fused_activation_function": "none"}),
    "pad": (lambda n, h, w, c: (n, h + 1, w + 2, c), [[[0, 0], [1, 0], [0, 2], [0, 0]]], {}),
    "transpose": (lambda n, h, w, c: (n, w, h, c), [[0, 2, 1, 3]], {}),
    "reshape": (lambda n, h, w, c: (n, h * w, c), [], {}),
    "squeeze": (lambda n, h, w, c: (h, w, c), [], {"squeeze_dims": (0,)}),
    "expand_dims": (lambda n, h, w, c: (1, n, h, w, c), [0], {}),
}
"""The shape behind an operator, its constants, its options."""
CHAINS = [*((m,) for m in MOVES), ("transpose", "pad"), ("pad", "squeeze"), ("max_pool_2d", "pad", "reshape")]


def network(moves: Sequence[str], first: str, last: str) -> Graph:
    """Return x -> first -> moves -> last; "" is nothing, a filter has weights."""
    b = GraphBuilder("moved")
    t, shape = b.input("x", IMAGE, FLOAT), IMAGE

    def add(operator: str) -> None:
        nonlocal t, shape
        if operator == "fully_connected":
            w = b.constant("w", np.random.default_rng(3).normal(size=(3, shape[-1])).astype(np.float32))
            t, shape = b.add(operator, [t, w], (*shape[:-1], 3), FLOAT, keep_num_dims=True), (*shape[:-1], 3)
        elif operator in MOVES:
            follows, given, options = MOVES[operator]
            shape = follows(*shape)
            values = [shape] if operator == "reshape" else given
            constants = [b.constant("given", np.array(value, np.int32)) for value in values]
            t = b.add(operator, [t, *constants], shape, FLOAT, **options)
        elif operator:
            t = b.add(operator, [t], shape, FLOAT)

    for operator in (first, *moves, last):
        add(operator)
    return with_ranges(b.build([t]))


def kinds(graph: Graph, *assignments: str, layers: Sequence[str] = ()) -> list[tuple[str, str]]:
    made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, [*assignments], [*layers]))
    return [(n.operator, made.tensors[n.outputs[0]].dtype.value) for n in made.nodes]


@pytest.mark.parametrize("first", ["", "tanh"])
@pytest.mark.parametrize("moves", CHAINS, ids="-".join)
def test_levels_stand_in_front_of_what_moves_them(moves: tuple[str, ...], first: str) -> None:
    graph = network(moves, first, "fully_connected")
    own = [(first, "float32")] if first else []
    wanted = [*own, ("quantize", "int8"), *((m, "int8") for m in moves), ("fully_connected", "float32")]
    assert kinds(graph) == wanted
    assert kinds(graph, layers=["FULLY_CONNECTED*:precision=float"]) == [
        *own, *((m, "float32") for m in moves), ("fully_connected", "float32")
    ]  # fmt: skip


@pytest.mark.parametrize("moves", CHAINS, ids="-".join)
def test_levels_that_are_moved_to_the_output(moves: tuple[str, ...]) -> None:
    graph = network(moves, "fully_connected", "")
    moved = [(m, "float32") for m in moves]
    assert kinds(graph) == [("quantize", "int8"), ("fully_connected", "float32"), *moved]
    both = [("quantize", "int8"), ("fully_connected", "int8"), *((m, "int8") for m in moves)]
    assert kinds(graph, "output=int8") == both
    assert kinds(graph, "output=int8", "input=int8") == both[1:]


@pytest.mark.parametrize("moves", CHAINS, ids="-".join)
def test_nothing_is_quantized_that_no_layer_reads(moves: tuple[str, ...]) -> None:
    graph = network(moves, "tanh", "logistic")
    assert kinds(graph) == [("tanh", "float32"), *((m, "float32") for m in moves), ("logistic", "float32")]


@pytest.mark.parametrize("moves", CHAINS, ids="-".join)
def test_the_runtime_computes_the_same(moves: tuple[str, ...]) -> None:
    if sums_saturate():
        pytest.skip("no VNNI: OpenVINO's sums of two products saturate at int16 there")
    graph = network(moves, "tanh", "fully_connected")
    engine, xml, weights = converted(Model([graph], source="moved.tflite"))
    x = np.random.default_rng(2).normal(size=(4, *IMAGE)).astype(np.float32)
    ours = channels_first(engine.run([x])[engine.graph.outputs[0]])
    theirs = Runtime(xml, weights).run([channels_first(x)])
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5 * float(np.abs(theirs).max()))
