"""Which tensors hold quantized values (docs/rules/openvino.md#quantize-dequantize-requantize): what a layer on them
reads or writes, moved or not.

Not the network's output, unless output=int8, and not the filter's result that the runtime adds before it rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.converters.openvino.networks import WINDOW, with_ranges
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.graph import DType, Graph, GraphBuilder

SHAPE = (1, 3, 3, 2)
FLOAT = DType.FLOAT32


class Drawing:
    """A graph whose tensors have short names."""

    def __init__(self) -> None:
        self.b = GraphBuilder("drawing")
        self.x = self.b.input("x", SHAPE, FLOAT)

    def named(self, name: str, operator: str, *inputs: int, **options: object) -> int:
        """Add a node with one result of the image's shape."""
        t = self.b.tensor(name, SHAPE, FLOAT)
        self.b.node(operator, inputs, [t], **options)  # type: ignore[arg-type]
        return t

    def conv(self, name: str, x: int, operator: str = "conv_2d") -> int:
        """Add a filter of 1 x 1."""
        deep = operator == "depthwise_conv_2d"
        w = self.b.constant("w", np.ones((1, 1, 1, 2) if deep else (2, 1, 1, 2), np.float32))
        return self.named(name, operator, x, w, **WINDOW, **({"depth_multiplier": 1} if deep else {}))

    def pool(self, name: str, x: int, operator: str = "max_pool_2d") -> int:
        """Add a pool that keeps the size."""
        size = {"filter_height": 2, "filter_width": 2}
        return self.named(name, operator, x, **WINDOW, **size)

    def shaped(self, name: str, x: int) -> int:
        """Add a RESHAPE to the same shape."""
        return self.named(name, "reshape", x, self.b.constant("s", np.array(SHAPE, np.int32)), new_shape=SHAPE)

    def number(self) -> int:
        """Add a constant of float32."""
        return self.b.constant("c", np.ones(SHAPE, np.float32))


def after_moves(d: Drawing) -> list[int]:
    return [d.shaped("moved", d.pool("pooled", d.conv("filtered", d.x)))]


def moved_and_read(d: Drawing) -> list[int]:
    y = d.conv("filtered", d.x)
    return [d.pool("pooled", y), d.named("other", "tanh", y)]


def moved_twice(d: Drawing) -> list[int]:
    y = d.conv("filtered", d.x)
    return [d.pool("pooled", y), d.named("other", "tanh", d.shaped("moved", y))]


def output_in_between(d: Drawing) -> list[int]:
    y = d.conv("first", d.x)
    return [y, d.conv("second", y)]


def sum_of_filters(
    operator: str, *, read_twice: bool = False, is_output: bool = False
) -> Callable[[Drawing], list[int]]:
    def make(d: Drawing) -> list[int]:
        first = d.conv("first", d.x)
        second = d.conv("second", d.x, "depthwise_conv_2d")
        total = d.named("total", operator, first, second, fused_activation_function="none")
        more = [d.named("other", "tanh", second)] if read_twice else []
        return [d.named("end", "tanh", total), *more, *([second] if is_output else [])]

    return make


def sum_with(other: Callable[[Drawing], int], is_second: bool = False) -> Callable[[Drawing], list[int]]:
    def make(d: Drawing) -> list[int]:
        both = [d.conv("filtered", d.x), other(d)]
        total = d.named("total", "add", *both[:: -1 if is_second else 1], fused_activation_function="none")
        return [d.named("end", "tanh", total)]

    return make


CASES: dict[str, tuple[Callable[[Drawing], list[int]], list[str], set[str]]] = {
    "a filter": (lambda d: [d.conv("y", d.x)], [], {"x"}),
    "a filter, bytes out": (lambda d: [d.conv("y", d.x)], ["output=int8"], {"x", "y"}),
    "no filter": (lambda d: [d.named("y", "tanh", d.x)], [], set()),
    "no filter, bytes out": (lambda d: [d.named("y", "tanh", d.x)], ["output=int8"], {"y"}),
    "a filter in float": (lambda d: [d.conv("y", d.x)], ["precision=float"], set()),
    "behind a function": (lambda d: [d.conv("y", d.named("t", "tanh", d.x))], [], {"t"}),
    "in front of a function": (lambda d: [d.named("t", "tanh", d.conv("y", d.x))], [], {"x", "y"}),
    "an average": (lambda d: [d.named("t", "tanh", d.pool("y", d.x, "average_pool_2d"))], [], {"x", "y"}),
    "a largest": (lambda d: [d.named("t", "tanh", d.pool("y", d.x))], [], set()),
    "moved to a filter": (lambda d: [d.conv("y", d.pool("p", d.shaped("r", d.x)))], [], {"x", "r", "p"}),
    "moved to a function": (
        lambda d: [d.named("t", "tanh", d.pool("p", d.conv("y", d.x)))], [], {"x", "y", "p"}),
    "moved to the output": (after_moves, [], {"x"}),
    "moved to the output, bytes out": (after_moves, ["output=int8"], {"x", "filtered", "pooled", "moved"}),
    "moved to the output and read": (moved_and_read, [], {"x", "filtered", "pooled"}),
    "moved to the output and to a function": (moved_twice, [], {"x", "filtered", "pooled", "moved"}),
    "an output that a filter reads": (output_in_between, [], {"x", "first"}),
    **{f"{o} of two filters": (sum_of_filters(o), [], {"x", "first", "total"}) for o in ("add", "sub")},
    "mul of two filters": (sum_of_filters("mul"), [], {"x", "first", "second", "total"}),
    "add of two filters, the last read twice": (
        sum_of_filters("add", read_twice=True), [], {"x", "second", "total"}),
    "add of two filters, the last an output": (
        sum_of_filters("add", is_output=True), [], {"x", "second", "total"}),
    **{f"add with a function {second}": (
        sum_with(lambda d: d.named("t", "tanh", d.x), second), [], {"x", "t", "total"}) for second in (False, True)},
    **{f"add with the input {second}": (sum_with(lambda d: d.x, second), [], {"x", "total"})
       for second in (False, True)},
    "add with a constant": (sum_with(Drawing.number), [], {"x", "filtered", "total"}),
    "add with a constant in float": (sum_with(Drawing.number), ["add:precision=float"], {"x", "filtered"}),
    "add of two filters in float": (sum_of_filters("add"), ["add:precision=float"], {"x", "first", "second"}),
    "add of a filter in float": (
        sum_of_filters("add"), ["depthwise_conv_2d:precision=float"], {"x", "second", "total"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_tensors_have_levels(name: str) -> None:
    make, given, wanted = CASES[name]
    d = Drawing()
    outputs = make(d)
    graph = with_ranges(settled_graph(d.b.build(outputs)))
    layers = [text for text in given if ":" in text]
    settings = parse_settings(OPENVINO.settings, [text for text in given if ":" not in text], layers)
    made: Graph = OPENVINO.quantize(graph, settings)
    found = {t.name for t in made.tensors if t.dtype is DType.INT8 and not t.is_constant}
    assert found == wanted
    read = {made.tensors[t].name for n in made.nodes if n.operator == "quantize" for t in n.outputs}
    assert read <= found
    real = {made.tensors[t].dtype for t in made.outputs}
    assert real == ({DType.INT8} if "output=int8" in given else {FLOAT})


@pytest.mark.parametrize(
    ("make", "is_integer"),
    [
        (lambda d: [d.conv("y", d.x)], True),
        (lambda d: [d.conv("y", d.x), d.conv("z", d.x)], True),
        (lambda d: [d.conv("y", d.x), d.named("t", "tanh", d.x)], True),
        (lambda d: [d.named("t", "tanh", d.x)], False),
        (lambda d: [d.conv("y", d.x), d.x], False),
        (lambda d: [d.conv("y", d.pool("p", d.x))], True),
    ],
)
def test_inputs_of_bytes(make: Callable[[Drawing], list[int]], is_integer: bool) -> None:
    """input=int8: where a Quantize alone reads the input: what else reads it reads its levels."""
    d = Drawing()
    graph = with_ranges(settled_graph(d.b.build(make(d))))
    for text, wanted in (("input=int8", DType.INT8 if is_integer else FLOAT), ("input=float", FLOAT)):
        made = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings, [text]))
        assert [made.tensors[t].dtype for t in made.inputs] == [wanted]
        assert [n.operator for n in made.nodes].count("quantize") == (wanted is FLOAT and "conv_2d" in str(made.nodes))
