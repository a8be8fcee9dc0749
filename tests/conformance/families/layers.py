"""Layers with windows or weights: pools, convolutions, products, resizing, SVDF."""

from __future__ import annotations

import numpy as np

from tests.conformance import draws as d
from tests.conformance.case import Case, graph_case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.support.draw import seeds
from tests.support.layers import (
    Geometry,
    Weighted,
    conv_graph,
    depthwise_graph,
    float_layer,
    geometries,
    pool_graph,
    weighted,
    weighted_graph,
)  # fmt: skip
from tests.support.nodes import Result, sampled
from tflq.graph import ABSENT, Affine, Attribute, DType, Graph, GraphBuilder

INT8, INT16, FLOAT32 = DType.INT8, DType.INT16, DType.FLOAT32


def run_on(draw: Draw, graph: Graph) -> Case:
    """A case of a graph with whole ranges at its inputs."""
    tensors = [graph.tensors[t] for t in graph.inputs]
    return graph_case(graph, [d.numbers(draw, t.dtype, t.shape) for t in tensors])


def pool(draw: Draw, cell: Cell) -> Case:
    where, channels = draw(geometries(1)), d.whole(draw, 1, 5)
    activation = str(d.pick(draw, d.FUSED))
    return run_on(
        draw, pool_graph(cell.operator, cell.dtype, d.quantization(draw, cell.kind), where, channels, activation)
    )


def convolution(draw: Draw, cell: Cell) -> Case:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    where = draw(geometries())
    deep = cell.operator == "depthwise_conv_2d"
    batch, depth, groups, each = (d.whole(draw, 1, n) for n in (2, 5, 2, 5))
    if cell.is_quantized:
        how = draw(weighted(cell.dtype, cell.kind.weights, _bias(draw, cell, deep)))
        if deep:
            return run_on(draw, depthwise_graph(how, where, batch, depth, groups))
        groups = 1 if cell.dtype is DType.UINT8 else groups
        return run_on(draw, conv_graph(how, where, batch, depth, groups, each))
    attributes = {**where.attributes, **where.dilations, "fused_activation_function": str(d.pick(draw, d.FUSED))}
    outputs = depth * groups if deep else groups * each
    shape = (batch, *where.size, depth if deep else depth * groups)
    weights = (1, *where.kernel, outputs) if deep else (outputs, *where.kernel, depth)
    if deep:
        attributes["depth_multiplier"] = groups
    scales = outputs if deep or groups > 1 else int(d.pick(draw, [1, outputs]))
    return _real_layer(draw, cell, shape, weights, (batch, *where.output, outputs), scales, 3 * deep, attributes)


def _bias(draw: Draw, cell: Cell, deep: bool = False) -> DType | None:
    if cell.dtype is not INT16:
        return DType.INT32
    if cell.operator == "conv_2d":  # needs a bias
        return draw_one(draw, [DType.INT64, DType.INT32])
    return draw_one(draw, [DType.INT64, None] if deep else [DType.INT64, DType.INT32, None])


def draw_one(draw: Draw, options: list[DType | None]) -> DType | None:
    return options[d.whole(draw, 0, len(options) - 1)]


def _real_layer(
    draw: Draw,
    cell: Cell,
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    output: tuple[int, ...],
    scales: int,
    axis: int,
    attributes: dict[str, Attribute],
) -> Case:
    """A layer of real activations, with weights of the same type or of integers."""
    rng = d.rng_of(draw)
    needs_bias = cell.operator == "conv_2d" or (cell.operator == "depthwise_conv_2d" and cell.kind.weights is not None)
    bias = rng.normal(size=output[-1]) if needs_bias or d.flag(draw) else None
    kind = cell.kind.weights
    if kind is None:
        return run_on(draw, float_layer(cell.operator, shape, rng.normal(size=weights), bias, output, **attributes))
    lowest = kind.minimum if kind is DType.UINT8 else -kind.maximum
    codes = rng.integers(lowest, kind.maximum, weights, kind.storage, endpoint=True)
    scale = rng.uniform(0.001, 0.1, scales).astype(np.float32)
    q = Affine(scale, np.zeros(scales, np.int64), axis if scales > 1 else None, kind.bits, kind.is_signed)
    b = GraphBuilder(cell.operator)
    operands = [b.input("x", shape, FLOAT32), b.constant("weights", codes, q, kind)]
    operands.append(ABSENT if bias is None else b.constant("bias", bias.astype(np.float32)))
    version = {"fully_connected": 9, "conv_2d": 8, "depthwise_conv_2d": 6}[cell.operator]
    return run_on(draw, b.build([b.add(cell.operator, operands, output, FLOAT32, version=version, **attributes)]))


def fully_connected(draw: Draw, cell: Cell) -> Case:
    rows = [d.whole(draw, 1, 3) for _ in range(d.whole(draw, 1, 3))]
    depth, outputs, keep = d.whole(draw, 1, 70), d.whole(draw, 1, 20), d.flag(draw)
    output = (*rows, outputs) if keep else (int(np.prod(rows)), outputs)
    attributes: dict[str, Attribute] = {"keep_num_dims": keep}
    if cell.is_quantized:
        how: Weighted = draw(weighted(cell.dtype, cell.kind.weights, _bias(draw, cell)))
        if how.dtype is INT16 and how.bias_dtype is not None:
            attributes["quantized_bias_type"] = how.bias_dtype.value
        graph = weighted_graph("fully_connected", how, (*rows, depth), (outputs, depth), output, 0, **attributes)
        return run_on(draw, graph)
    attributes["fused_activation_function"] = str(d.pick(draw, d.FUSED))
    if cell.kind.weights is not None:
        attributes["asymmetric_quantize_inputs"] = d.flag(draw)
    scales = 1 if cell.kind.weights is DType.UINT8 else int(d.pick(draw, [1, outputs]))
    return _real_layer(draw, cell, (*rows, depth), (outputs, depth), output, scales, 0, attributes)


def transpose_conv(draw: Draw, cell: Cell) -> Case:
    """The window is that of the convolution whose gradient it is: input and output change places."""
    where: Geometry = draw(geometries(1))
    batch, depth, outputs = d.whole(draw, 1, 2), d.whole(draw, 1, 5), d.whole(draw, 1, 5)
    shape, output = (batch, *where.output, depth), (batch, *where.size, outputs)
    weights = (outputs, *where.kernel, depth)
    attributes: dict[str, Attribute] = {**where.attributes, "fused_activation_function": str(d.pick(draw, d.FUSED[:3]))}
    if not cell.is_quantized:
        rng = d.rng_of(draw)
        bias = rng.normal(size=outputs) if d.flag(draw) else None
        graph = float_layer(cell.operator, shape, rng.normal(size=weights), bias, output, **attributes)
    else:
        how = draw(weighted(cell.dtype, cell.kind.weights, _bias(draw, cell)))
        attributes.pop("fused_activation_function")
        if how.dtype is INT16 and how.bias_dtype is DType.INT32:
            attributes["quantized_bias_type"] = "int32"
        graph = weighted_graph(cell.operator, how, shape, weights, output, 0, **attributes)
    return run_on(draw, _with_output_shape(graph, output, 4 if cell.operator == "transpose_conv" else 1))


def _with_output_shape(graph: Graph, output: tuple[int, ...], version: int) -> Graph:
    """Return the graph with the operands in TFLite's order: output shape, weights, input, bias."""
    b = GraphBuilder("transposed")
    node = graph.nodes[0]
    stated = b.constant("output_shape", np.array(output, np.int32))
    places = [b.input(t.name, t.shape, t.dtype, t.quantization) if t.data is None
              else b.constant(t.name, t.data, t.quantization, t.dtype)
              for t in (graph.tensors[i] for i in node.inputs)]  # fmt: skip
    y = graph.tensors[node.outputs[0]]
    order = [stated, places[1], places[0], *places[2:]]
    return b.build([b.add(node.operator, order, output, y.dtype, y.quantization, version, **dict(node.attributes))])


def conv_3d(draw: Draw, cell: Cell) -> Case:
    """CONV_3D and CONV_3D_TRANSPOSE."""
    rng = d.rng_of(draw)
    kernel, stride = [d.whole(draw, 1, 3) for _ in range(3)], [d.whole(draw, 1, 2) for _ in range(3)]
    size, batch, depth, outputs = [d.whole(draw, 3, 6) for _ in range(3)], *(d.whole(draw, 1, 3) for _ in range(3))
    names = ("stride_d", "stride_h", "stride_w")
    padding = str(d.pick(draw, ["same", "valid"]))
    attributes: dict[str, Attribute] = {**dict(zip(names, stride, strict=True)), "padding": padding}
    attributes["fused_activation_function"] = str(d.pick(draw, d.FUSED))
    less = [k - 1 if padding == "valid" else 0 for k in kernel]
    small = [-(-(n - less_) // s) for n, less_, s in zip(size, less, stride, strict=True)]
    bias = sampled(np.broadcast_to(rng.normal(size=outputs).astype(np.float32), (d.SAMPLES, outputs)).copy())
    if cell.operator == "conv_3d":
        weights = rng.normal(size=(*kernel, depth, outputs)).astype(np.float32)
        operands = [d.data(draw, cell, (batch, *size, depth)), ints32(weights), bias]
    else:
        weights = rng.normal(size=(*kernel, outputs, depth)).astype(np.float32)
        shape = np.array((batch, *size, outputs), np.int32)
        operands = [ints32(shape), ints32(weights), d.data(draw, cell, (batch, *small, depth)), bias]
    return node_case(cell.operator, operands, [cell.dtype], **attributes)


def ints32(value: np.ndarray) -> object:
    """A constant as it is."""
    from tests.support.nodes import fixed

    return fixed(value)


def resize(draw: Draw, cell: Cell) -> Case:
    height, width, rows, columns = (d.whole(draw, 1, 12) for _ in range(4))
    q = d.quantization(draw, cell.kind)
    corners, centers = [(False, False), (True, False), (False, True)][d.whole(draw, 0, 2)]
    x = d.data(draw, cell, (d.whole(draw, 1, 2), height, width, d.whole(draw, 1, 3)), q)
    size = d.either(draw, sampled(np.tile(np.array([rows, columns], np.int32), (d.SAMPLES, 1))))
    options = {"align_corners": corners, "half_pixel_centers": centers}
    return node_case(cell.operator, [x, size], [d.result(cell, q)], **options)


def batch_matmul(draw: Draw, cell: Cell) -> Case:
    rows, inner, columns = (d.whole(draw, 1, n) for n in (5, 40, 6))
    outer = [d.whole(draw, 1, 3) for _ in range(d.whole(draw, 0, 3))]
    adjoint = d.flag(draw), d.flag(draw)
    left = (*outer, inner, rows) if adjoint[0] else (*outer, rows, inner)
    stack = [d.pick(draw, [1, n]) for n in outer[d.whole(draw, 0, len(outer)) :]]
    right = (*stack, *((columns, inner) if adjoint[1] else (inner, columns)))
    x, y = (d.quantization(draw, cell.kind, -8, -2) for _ in range(2))
    out = None
    if x is not None and y is not None:
        typical = float(x.scale[0]) * float(y.scale[0]) * cell.dtype.maximum * inner**0.5
        out = d.affine(
            cell.dtype,
            typical * 2.0 ** d.whole(draw, -4, 4),
            0 if cell.dtype is INT16 else d.whole(draw, -99, 99) + 100 * (cell.dtype is DType.UINT8),
        )
    second = d.data(draw, cell, right, y)
    if cell.kind.weights is not None:
        kind = cell.kind.weights
        second = sampled(
            d.numbers(draw, kind, right),
            d.quantization(draw, kind, -8, -2).__class__.per_tensor(np.float32(0.02)),
            kind,
        )
    options: dict[str, Attribute] = {"adj_x": adjoint[0], "adj_y": adjoint[1]}
    second = d.either(draw, second)
    if cell.kind.weights is not None and second.constant:  # TFLite keeps sums of weights from one sample to the next
        options["asymmetric_quantize_inputs"] = d.flag(draw)
    return node_case(cell.operator, [d.data(draw, cell, left, x), second], [Result(cell.dtype, out)], **options)


def svdf(draw: Draw, cell: Cell) -> Case:
    from tests.interpreter.tflite.test_svdf import svdf_graph

    sizes = tuple(d.whole(draw, 1, n) for n in (2, 40, 6, 5, 11))
    changes: dict[str, object] = {}
    kind = "int8"
    if not cell.is_quantized:
        kind = {None: "float", DType.INT8: "hybrid", DType.UINT8: "uint8"}[cell.kind.weights]
        changes["activation"] = d.pick(draw, d.FUSED)
        if cell.kind.weights is not None:
            changes["asymmetric_quantize_inputs"] = d.flag(draw)
    graph = svdf_graph(kind, sizes, draw(seeds) % 1000, **changes)
    inputs = [d.numbers(draw, graph.tensors[t].dtype, graph.tensors[t].shape, 4) for t in graph.inputs]
    return graph_case(graph, inputs, str(d.pick(draw, ["independent", "stream"])))
