"""Networks that tflq writes anew for TPU-MLIR compute what the model does: in onnxruntime, in reals, nearly in int8."""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.tpu_mlir.networks import quantized
from tests.support.float_networks import (
    BOTH,
    NETWORKS,
    WHOLE,
    Make,
    Network,
    Stride,
    built,
    image,
    measured,
    normalized,
    normalized_by_keras,
)  # fmt: skip
from tests.support.onnx_run import run_onnx
from tests.support.tpu_mlir_variants import VARIANTS
from tflq.converters.onnx import model_bytes
from tflq.converters.tpu_mlir.quantize import float_network
from tflq.errors import UnsupportedError
from tflq.interpreter import Engine

SCHEMES = {"float16": ([], ["*:mode=F16"]), "symmetric": ([], []), "asymmetric": (["asymmetric=true"], [])}
"""Settings of the whole network, and of layers."""
NORM = "layer_normalization"
FAR = 0.025
"""Three steps of 1/127: what the drawn networks may lose in 8 bits, of their largest result."""


FILTERS = {
    **{f"filters of one pixel, biases {bias}": 1 for bias in BOTH},
    **{f"a filter behind one of one pixel, biases {bias}": 1 for bias in BOTH},
    "a filter of one pixel with a stride": 1,
    "a filter with a stride behind one of one pixel": 1,
    "filters behind few of one pixel": 1,
    "many filters behind few of one pixel": 2,
    "a padded filter behind one of one pixel": 2,
    "a filter of one pixel behind another": 2,
    "filters of one pixel with a rectifier": 2,
}
"""How many convolutions are left."""


QUOTIENTS = {
    *(f"div of rows {a} and {b}" for a, b in (((1, 5, 8), (1, 5, 1)), ((1, 5, 8), (1, 5, 8)), ((5, 8), (8,)),
                                              ((1, 5, 8), (8,)))),
    "div of an image behind nothing", "div of a row behind nothing", "div and a row behind nothing",
    *(f"div and an image behind {x}" for x in ("nothing", "a filter", "relu")),
}  # fmt: skip
"""Networks that divide by, or into, a constant of several numbers."""


@pytest.mark.parametrize("name", [*NETWORKS, *VARIANTS])
def test_what_is_written_computes_what_the_model_does(name: str) -> None:
    graph, inputs, wanted = measured(NETWORKS.get(name) or VARIANTS[name])
    if name in QUOTIENTS:
        with pytest.raises(UnsupportedError, match="the quotient with a constant of several numbers; write it as"):
            float_network(graph)
        return
    found = run_onnx(model_bytes(float_network(graph).onnx), inputs)
    assert np.abs(found[0] - wanted).max() <= 1e-5 * np.abs(wanted).max()


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_averages_without_padding_say_that_they_count_it(padding: str) -> None:
    """TPU-MLIR leaves the integers for averages that may meet padding."""
    b = Network()
    shape = (1, 3, 3, 4) if padding == "valid" else (1, 6, 5, 4)
    y = b.do("average_pool_2d", b.real("x", (1, 6, 5, 4)), shape=shape, padding=padding, filter_height=4,
             filter_width=3, stride_h=1, stride_w=1)  # fmt: skip
    (pool,) = (n for n in float_network(b.build([y])).onnx.nodes if n.op_type == "AveragePool")
    assert pool.attributes.get("count_include_pad", 0) == (padding == "valid")


@pytest.mark.parametrize(
    ("name", "mode"), [(n, m) for n in NETWORKS for m in SCHEMES if (n, m) != ("softsign", "float16")]
)
def test_what_is_quantized_computes_nearly_what_the_model_does(name: str, mode: str) -> None:
    graph, inputs, wanted = built(name)
    sets, layers = SCHEMES[mode]
    engine = Engine(quantized(graph, sets, layers), "tpu_mlir")
    computed = [t for node in engine.graph.nodes for t in node.outputs]
    values = engine.run(inputs, computed)
    assert [values[t].shape[1:] for t in computed] == [engine.graph.tensors[t].shape for t in computed]
    found = values[engine.graph.outputs[0]]
    assert np.abs(found - wanted).max() <= FAR * np.abs(wanted).max()


@pytest.mark.parametrize(("name", "count"), FILTERS.items())
def test_filters_that_become_one(name: str, count: int) -> None:
    """As TPU-MLIR's lowered graphs have them (scripts/peer tpu-mlir on these networks)."""
    graph = quantized(built(name)[0])
    assert [n.operator for n in graph.nodes].count("conv_2d") == count


@pytest.mark.parametrize(("stride", "window"), [((2, 1), (2, 2)), ((1, 2), (2, 2)), ((1, 1), (1, 2)), ((1, 1), (2, 1))])
def test_filters_that_the_tool_merges_wrongly_are_refused(stride: Stride, window: tuple[int, int]) -> None:
    """It ends there, or takes the window for square."""
    b = Network()
    x = b.conv(image(b), 3, stride=stride)
    sides = [n - w + 1 for n, w in zip(b.shapes[x][1:3], window, strict=True)]
    y = b.do("conv_2d", x, b.reals(5, *window, 3), b.reals(5), shape=(1, *sides, 5), **WHOLE)
    with pytest.raises(UnsupportedError, match="put an activation between them"):
        quantized(b.build([y]))


@pytest.mark.parametrize("make", [normalized(False, True), *(normalized_by_keras(False, n) for n in (False, True))])
def test_a_normalization_with_beta_alone_is_refused(make: Make) -> None:
    b = Network()
    with pytest.raises(UnsupportedError, match="with beta and without gamma"):
        quantized(b.build([make(b)]))


@pytest.mark.parametrize(
    ("name", "operator"),
    [("a written slope", "prelu"), ("a written slope, swapped", "prelu"), ("normalized, gamma True, beta True", NORM),
     ("normalized, constants first", NORM), ("normalized by Keras, negated True", NORM), ("softsign", "softsign"),
     ("squares of a difference", "mul"), ("rows of length 1", "div")],
)  # fmt: skip
def test_forms_that_are_one_layer(name: str, operator: str) -> None:
    graph = quantized(built(name)[0])
    assert [n.operator for n in graph.nodes].count(operator) == 1


@pytest.mark.parametrize("name", ["normalized, read inside"])
def test_forms_that_are_read_inside_stay(name: str) -> None:
    assert "pow" in [n.operator for n in quantized(built(name)[0]).nodes]


def test_an_axis_that_is_not_stated_is_the_first() -> None:
    """As in the operator's own kernel."""
    found = []
    for options in ({}, {"axis": 0}):

        def make(b: Network, options: dict[str, int] = options) -> int:
            return b.do("pack", b.real("x", (3, 4)), b.real("y", (3, 4)), shape=(2, 3, 4), **options)

        graph, inputs, _ = measured(make)
        engine = Engine(quantized(graph), "tpu_mlir")
        found.append(engine.run([x[:2] for x in inputs])[engine.graph.outputs[0]])
    assert np.array_equal(*found)


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("last", ["add", "sub", "mul", "maximum"])
def test_only_a_sum_ends_a_normalization(last: str, negated: bool) -> None:
    graph, _, _ = measured(normalized_by_keras(True, negated, last))
    assert (NORM in {node.operator for node in quantized(graph).nodes}) == (last == "add")
