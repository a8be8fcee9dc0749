"""What TFLite does not check, or not everywhere: weights that do not fit, quantizations that stand for nothing.

Order, cycles, buffers, axes and the scales of whole files are in tests/converters/tflite/test_damage.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.interpreter.tflite.test_blockwise_fully_connected import in_blocks
from tests.support.draw import affine
from tests.support.lstm import Lstm, eight_bit_graph, lstm_graph
from tests.support.types import INT8, INT16, UINT8
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.converters.tflite.extras import NodeExtra
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Affine, DType, Graph, GraphBuilder
from tflq.interpreter import Engine

F32 = DType.FLOAT32
Shapes = tuple[tuple[int, ...], ...]
ROWS, IMAGE, OUTPUT = (2, 4), (1, 4, 4, 2), (1, 4, 4, 3)
WINDOW = {"padding": "same", "stride_h": 1, "stride_w": 1}
PLAIN = {"fused_activation_function": "none"}
UNSOUND = [0.0, -1.0, np.nan, np.inf, -np.inf]


def layer(operator: str, kind: str, shapes: Shapes, output: tuple[int, ...], **options: object) -> Graph:
    """A layer of an input and constants of these shapes, in `kind` "integer", "float" or "hybrid"."""
    b = GraphBuilder(operator)
    floats = kind != "integer"
    given = [b.input("x", shapes[0], F32 if floats else INT8, None if floats else affine(INT8, 0.5))]
    for name, shape in zip(("w", "b"), shapes[1:], strict=False):
        wide, storage = name == "b", np.int32 if name == "b" else np.int8
        if kind == "float" or (kind == "hybrid" and wide):
            given.append(b.constant(name, np.ones(shape, np.float32)))
        else:
            scale = Affine.per_tensor(np.float32(0.25 if wide else 0.5), 0, 32 if wide else 8)
            given.append(b.constant(name, np.ones(shape, storage), scale))
    if operator == "transpose_conv":
        size = b.constant("size", np.array(output, np.int32))
        given = [size, given[1], given[0], *given[2:]]
    y = b.add(operator, given, output, F32 if floats else INT8, None if floats else affine(INT8, 2), **options)
    return b.build([y])


MISFITS = {
    "conv_2d": [
        (IMAGE, (3, 1, 1, 5), (3,)),  # other channels
        (IMAGE, (3, 1, 2), (3,)),  # three axes
        (IMAGE, (3, 1, 1, 2), (4,)),  # another bias
        (IMAGE, (3, 0, 1, 2), (3,)),  # nothing to add up
    ],
    "depthwise_conv_2d": [(IMAGE, (1, 1, 1, 3), (3,)), (IMAGE, (2, 1, 1, 4), (4,)), (IMAGE, (1, 1, 1, 2), (3,))],
    "fully_connected": [(ROWS, (3, 5), (3,)), (ROWS, (3, 2, 2), (3,)), (ROWS, (3, 4), (4,)), (ROWS, (3, 0), (3,))],
    "transpose_conv": [(IMAGE, (3, 1, 1, 5), (3,)), (IMAGE, (2, 1, 1, 2), (2,)), (IMAGE, (3, 1, 1, 2), (4,))],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["integer", "float", "hybrid"])
@pytest.mark.parametrize(("operator", "shapes"), [(name, shapes) for name, all_ in MISFITS.items() for shapes in all_])
def test_weights_that_do_not_fit_shapes(operator: str, shapes: Shapes, kind: str) -> None:
    """Refused with the operator's name, after a way through the file as before it."""
    options = WINDOW if "conv" in operator else PLAIN
    graph = layer(operator, kind, shapes, OUTPUT, **options)
    for found in (graph, model_from_bytes(model_to_bytes(graph)).main):
        with pytest.raises((GraphError, UnsupportedError), match=rf"^operator 0 \({operator} '[^']*'\): ") as error:
            Engine(found).run([np.zeros((1, *shapes[0]), np.int8 if kind == "integer" else np.float32)])
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["int8", "float", "hybrid"])
@pytest.mark.parametrize("position", [1, 5, 12, 16])
def test_weights_of_an_lstm_that_do_not_fit(kind: str, position: int) -> None:
    graph = lstm_graph("unidirectional_sequence_lstm", Lstm(projection=True), kind)
    t = graph.nodes[0].inputs[position]
    tensor = graph.tensors[t]
    graph.tensors[t] = replace(tensor, shape=(tensor.shape[0] + 1, *tensor.shape[1:]),
                               data=np.concatenate([tensor.data, tensor.data[:1]]))  # fmt: skip
    with pytest.raises(GraphError, match=r"^operator 0 \(unidirectional_sequence_lstm"):
        Engine(graph)


@pytest.mark.parametrize(
    ("operator", "position", "value"),
    [
        ("split", 0, np.array([np.nan], np.float32)),
        ("expand_dims", 1, np.array([np.nan], np.float32)),
        ("transpose", 1, np.array([np.inf, 0], np.float32)),
        ("pad", 1, np.full((2, 2), np.nan, np.float32)),
        ("sum", 1, np.array([np.nan], np.float32)),
        ("transpose_conv", 0, np.full(4, np.nan, np.float32)),
    ],
)
def test_axes_and_sizes_that_are_no_integers(operator: str, position: int, value: np.ndarray) -> None:
    b = GraphBuilder()
    x, given = b.input("x", (2, 2), F32), b.constant("given", value)
    inputs = (
        [given, b.constant("w", np.ones((1, 1, 1, 1), np.float32)), x] if operator == "transpose_conv" else [x, given]
    )
    graph = b.build([b.add(operator, inputs[:: -1 if operator == "split" else 1], (2, 2), F32, num_splits=1)])
    with pytest.raises(UnsupportedError, match=f"input {position} 'given' is float32; the kernel takes integers"):
        Engine(graph)


def test_a_split_without_an_axis() -> None:
    b = GraphBuilder()
    x, axis = b.input("x", (2, 2), F32), b.constant("axis", np.zeros(0, np.int32))
    with pytest.raises(GraphError, match="input 0 names 0 axes; split takes one"):
        Engine(b.build([b.add("split", [axis, x], (2, 2), F32, num_splits=1)]))


@pytest.mark.parametrize("scale", UNSOUND)
@pytest.mark.parametrize("eight", [False, True])
def test_scales_of_intermediates(scale: float, eight: bool) -> None:
    graph = eight_bit_graph(Lstm()) if eight else lstm_graph("lstm", Lstm(steps=0, norm=True), "int8")
    t = graph.nodes[0].intermediates[1]
    graph.tensors[t] = replace(graph.tensors[t], quantization=affine(graph.tensors[t].dtype, scale))
    with pytest.raises(GraphError, match=rf"tensor '{graph.tensors[t].name}' has scale {scale}"):
        Engine(graph)


def test_zero_points_of_intermediates() -> None:
    graph = eight_bit_graph(Lstm())
    t = graph.nodes[0].intermediates[1]
    graph.tensors[t] = replace(graph.tensors[t], quantization=affine(INT8, 0.5, 128))
    with pytest.raises(GraphError, match=r"has zero point 128; those of int8 are -128\.\.127"):
        Engine(graph)


@pytest.mark.parametrize("scale", UNSOUND)
def test_scales_of_a_table_that_is_looked_up(scale: float) -> None:
    b = GraphBuilder()
    rows = b.input("rows", (2,), DType.INT32)
    scales = np.array([1, scale, 1], np.float32)
    table = b.constant("table", np.ones((3, 4), np.int8), Affine(scales, np.zeros(3, np.int64), 0))
    graph = b.build([b.add("embedding_lookup", [rows, table], (2, 4), F32)])
    with pytest.raises(GraphError, match=rf"tensor 'table' has scale {scale} in channel 1; scales are positive"):
        Engine(graph)


@pytest.mark.parametrize("scale", [-1.0, np.nan, np.inf])
def test_scales_of_blocks(scale: float) -> None:
    graph = in_blocks()
    t = next(i for i, tensor in enumerate(graph.tensors) if tensor.name == "scales")
    values = graph.tensors[t].data.copy()
    values[2, 1] = scale
    graph.tensors[t] = replace(graph.tensors[t], data=values)
    with pytest.raises(GraphError, match=rf"the scales 'scales' of 'w' hold {scale}; scales are finite"):
        Engine(graph)


@pytest.mark.parametrize(
    ("dtype", "zero_point"), [(INT8, -129), (INT8, 128), (UINT8, -1), (UINT8, 256), (INT16, 1 << 15)]
)
@pytest.mark.parametrize("operator", ["logistic", "mean", "add", "dequantize", "leaky_relu"])
def test_zero_points_outside_the_type(operator: str, dtype: DType, zero_point: int) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), dtype, affine(dtype, 0.5, zero_point))
    options = {"add": [x, x], "mean": [x, b.constant("axis", np.array([1], np.int32))]}
    kind = F32 if operator == "dequantize" else dtype
    y = b.add(operator, options.get(operator, [x]), (1, 4), kind, None if kind is F32 else affine(dtype, 1 / 256))
    with pytest.raises(GraphError, match=f"tensor 'x' has zero point {zero_point}; those of {dtype.value} are"):
        Engine(b.build([y]))


def test_zero_points_of_weights_outside_the_type() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), INT8, affine(INT8, 0.5))
    weights = b.constant("w", np.ones((2, 4), np.int8), Affine(np.ones(2, np.float32), np.array([0, 200]), 0))
    graph = b.build([b.add("fully_connected", [x, weights, ABSENT], (1, 2), INT8, affine(INT8, 1))])
    with pytest.raises(GraphError, match=r"tensor 'w' has zero point 200 in channel 1; those of int8 are -128\.\.127"):
        Engine(graph)


@pytest.mark.parametrize("alpha", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", [INT8, INT16])
def test_slopes_that_are_no_numbers(dtype: DType, alpha: float) -> None:
    b = GraphBuilder()
    x = b.input("x", (4,), dtype, affine(dtype, 0.5))
    graph = b.build([b.add("leaky_relu", [x], (4,), dtype, affine(dtype, 0.5), alpha=alpha)])
    with pytest.raises(UnsupportedError, match=r"operator 0 .*infinite or NaN"):
        Engine(graph)


def test_an_int16_sum_of_which_one_input_has_no_scale() -> None:
    """TFLite computes with a scale of 0; without any scale it would add the integers."""
    b = GraphBuilder()
    x, y = b.input("x", (4,), INT16), b.input("y", (4,), INT16, affine(INT16, 0.5))
    graph = b.build([b.add("add", [x, y], (4,), INT16, affine(INT16, 0.5), **PLAIN)])
    with pytest.raises(GraphError, match=r"'x'.* has no scale"):
        Engine(graph)


def test_mirror_pad_without_options() -> None:
    """TFLite's mode is then neither reflect nor symmetric, and it refuses."""
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    graph = b.build([b.add("mirror_pad", [x, b.constant("p", np.ones((1, 2), np.int32))], (6,), F32, mode="unknown")])
    graph.nodes[0] = replace(graph.nodes[0], extra=NodeExtra(options=""))
    content = model_to_bytes(graph)
    read = model_from_bytes(content, "pad").main
    assert read.nodes[0].attributes["mode"] == "unknown"
    with pytest.raises(UnsupportedError, match="mode unknown; known are reflect, symmetric"):
        Engine(read)


@pytest.mark.parametrize("shape", [(0,), (2,)])
def test_handles_of_resources_are_one_element(shape: tuple[int, ...]) -> None:
    b = GraphBuilder()
    x = b.input("x", (2,), F32)
    handle = b.add("var_handle", [], shape, DType.RESOURCE, container="", shared_name="v")
    b.node("assign_variable", [handle, x], [])
    with pytest.raises(GraphError, match=f"assign_variable .*input 0 has {shape[0]} elements"):
        Engine(b.build([x]))


def test_a_first_run_that_returns_something() -> None:
    start, main = GraphBuilder("start"), GraphBuilder("main")
    first = start.build([start.constant("one", np.ones(1, np.float32))])
    x = main.input("x", (1,), F32)
    main.node("call_once", [], [], init_subgraph_index=1)
    graph = main.build([main.add("relu", [x], (1,), F32)])
    with pytest.raises(GraphError, match="call_once runs subgraph 1, which has outputs"):
        Engine(graph, graphs=[graph, first]).run([np.ones((1, 1), np.float32)])


def test_parts_that_the_options_count_otherwise() -> None:
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    parts = [b.tensor(name, (2,), F32) for name in "yz"]
    sizes, axis = b.constant("s", np.array([2, 2], np.int32)), b.constant("a", np.array(0, np.int32))
    b.node("split_v", [x, sizes, axis], parts, num_splits=7)
    with pytest.raises(GraphError, match=r"the sizes are \(2, 2\), num_splits is 7 and there are 2 outputs"):
        Engine(b.build(parts))
