"""What fits no other family: suppression, detection, spectra, STABLEHLO's own forms of moving data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tests.conformance import draws as d
from tests.conformance.case import Case, Outputs, defined_by, graph_case, node_case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw
from tests.interpreter.move.test_stablehlo import gathers
from tests.interpreter.move.test_stablehlo_scatter import COMPUTATIONS, computation, scatters
from tests.support.nodes import fixed, sampled
from tflq.graph import DType, GraphBuilder, Model

FLOAT32, INT32 = DType.FLOAT32, DType.INT32


def suppression(draw: Draw, cell: Cell) -> Case:
    """NON_MAX_SUPPRESSION_V4 and V5."""
    rng, count = d.rng_of(draw), d.whole(draw, 1, 30)
    boxes = rng.integers(0, 6, (d.SAMPLES, count, 4)).astype(np.float32)
    scores = (rng.integers(0, 6, (d.SAMPLES, count)) / 5).astype(np.float32)
    overlap, threshold = d.pick(draw, [0.0, 0.3, 0.5]), d.pick(draw, [-1.0, 0.0, 0.3])
    limits = [fixed(d.whole(draw, 0, 12)), fixed(np.float32(overlap)), fixed(np.float32(threshold))]
    operands = [sampled(boxes), sampled(scores), *limits]
    if cell.operator == "non_max_suppression_v4":
        return node_case(cell.operator, operands, [INT32, INT32])
    sigma = fixed(np.float32(d.pick(draw, [0.0, 0.1, 0.5])))
    return node_case(cell.operator, [*operands, sigma], [INT32, FLOAT32, INT32])


def detection(draw: Draw, cell: Cell) -> Case:
    """TFLite_Detection_PostProcess; slots behind the number of boxes are undefined."""
    from tests.interpreter.move.test_suppression import OPTIONS, detection, drawn

    rng, boxes, classes = d.rng_of(draw), d.whole(draw, 1, 30), d.whole(draw, 1, 5)
    regular, per_box = d.flag(draw), d.whole(draw, 1, 3)
    options = OPTIONS | {"num_classes": classes, "use_regular_nms": regular}
    options |= {"max_classes_per_detection": per_box, "detections_per_class": d.whole(draw, 1, 4)}
    anchors = drawn(rng, (boxes, 4), 0, 1, cell.dtype)
    if cell.dtype is DType.UINT8:
        anchors = np.maximum(anchors, 3)
    columns = classes + d.whole(draw, 0, 1)
    graph = detection(options, boxes, columns, anchors, cell.dtype)
    inputs = [drawn(rng, (3, 1, boxes, 4), -3, 3, cell.dtype), drawn(rng, (3, 1, boxes, columns), 0, 1, cell.dtype)]

    def defined(outputs: Outputs) -> Outputs:
        found = [outputs[3]]
        for sample, count in enumerate(outputs[3][:, 0].astype(int)):
            slots = np.arange(count)[:, None] * per_box + np.arange(min(classes, per_box))
            kept = np.arange(count) if regular else slots.reshape(-1)
            found += [y[sample, 0, kept] for y in outputs[:3]]
        return found

    return defined_by(graph_case(graph, inputs), defined)


def rfft2d(draw: Draw, cell: Cell) -> Case:
    """Its real and imaginary parts: TFLite's Python interface shows complex results of no other operator."""
    height, width = 2 ** d.whole(draw, 1, 4), 2 ** d.whole(draw, 1, 4)
    shape = (*d.shape_of(draw, 1, 3), d.whole(draw, 1, 16), d.whole(draw, 1, 16))
    b = GraphBuilder("rfft2d")
    output = (*shape[:-2], height, width // 2 + 1)
    operands = [b.input("x", shape, FLOAT32), b.constant("lengths", np.array([height, width], np.int32))]
    graph = b.build([b.add("rfft2d", operands, output, DType.COMPLEX64)])
    return graph_case(graph, [d.numbers(draw, FLOAT32, shape)])


def stablehlo_gather(draw: Draw, cell: Cell) -> Case:
    shape, indices, options = draw(gathers())
    q = d.quantization(draw, cell.kind)
    places = d.rng_of(draw).integers(-2, 5, (d.SAMPLES, *indices))
    operands = [d.data(draw, cell, shape, q), d.index_operand(draw, places)]
    return node_case("stablehlo_gather", operands, [d.result(cell, q)], **options)


def stablehlo_pad(draw: Draw, cell: Cell) -> Case:
    shape, q = d.shape_of(draw, 4, 4), d.quantization(draw, cell.kind)
    amounts = {"edge_padding_low": (-1, 3), "edge_padding_high": (0, 3), "interior_padding": (0, 2)}
    options = {name: tuple(d.whole(draw, *bounds) for _ in shape) for name, bounds in amounts.items()}
    operands = [d.data(draw, cell, shape, q), d.either(draw, d.data(draw, cell, (), q))]
    return node_case("stablehlo_pad", operands, [d.result(cell, q)], **options)


def stablehlo_scatter(draw: Draw, cell: Cell) -> Case:
    shape, indices, updates, options = draw(scatters())
    places = d.rng_of(draw).integers(-1, 4, (d.SAMPLES, *indices)).astype(np.int32)
    operands = [d.data(draw, cell, shape), d.either(draw, sampled(places)), d.data(draw, cell, updates)]
    case = node_case("stablehlo_scatter", operands, [cell.dtype], shape=shape, **options)
    name = d.pick(draw, COMPUTATIONS)
    body = computation([] if name is None else [str(name)], FLOAT32)
    return Case(Model([case.model.main, body]), case.inputs)


def lsh_projection(draw: Draw, cell: Cell) -> Case:
    seeds = fixed(d.numbers(draw, FLOAT32, (d.whole(draw, 1, 4), d.whole(draw, 1, 5)))[0])
    rows = d.whole(draw, 1, 4)
    operands = [seeds, d.data(draw, cell, (rows, d.whole(draw, 1, 40)))]
    if d.flag(draw):
        operands.append(sampled(d.numbers(draw, FLOAT32, (rows,))))
    return node_case("lsh_projection", operands, [INT32], type=str(d.pick(draw, ["sparse", "dense"])))


def skip_gram(draw: Draw, cell: Cell) -> Case:
    words = ["".join(draw(st.lists(st.sampled_from("ab \t\n"), max_size=14))).encode() for _ in range(d.SAMPLES)]
    x = sampled(np.array(words, object).reshape(d.SAMPLES, 1))
    options = {
        "ngram_size": d.whole(draw, 1, 3),
        "max_skip_size": d.whole(draw, 0, 2),
        "include_all_ngrams": d.flag(draw),
    }
    return node_case("skip_gram", [x], [cell.dtype], **options)


def random_numbers(draw: Draw, cell: Cell) -> Case:
    """RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL, whose seeds are given."""
    seeds = {"seed": d.whole(draw, 1, 999), "seed2": d.whole(draw, 0, 999)}
    if cell.operator == "multinomial":
        logits = d.data(draw, cell, (d.whole(draw, 1, 3), d.whole(draw, 1, 6)))
        kind = DType.INT64 if d.flag(draw) else INT32
        return node_case(cell.operator, [logits, fixed(d.whole(draw, 1, 40))], [kind], **seeds)
    shape = sampled(np.tile(np.array(d.shape_of(draw), np.int32), (1, 1)))
    return node_case(cell.operator, [shape], [cell.dtype], **seeds)


def random_bits(draw: Draw, cell: Cell) -> Case:
    """STABLEHLO_RNG_BIT_GENERATOR."""
    algorithm = str(d.pick(draw, ["default", "philox", "threefry"]))
    words = 2 if algorithm == "threefry" else d.whole(draw, 2, 3)
    state = sampled(d.numbers(draw, DType.UINT64, (words,)))
    shape = d.shape_of(draw)
    return replace_shapes(
        node_case(cell.operator, [state], [DType.UINT64, cell.dtype], shape=(), algorithm=algorithm), [(words,), shape]
    )


def replace_shapes(case: Case, shapes: list[tuple[int, ...]]) -> Case:
    """Return the case with these shapes at its outputs."""
    graph = case.model.main.copy()
    for t, shape in zip(graph.outputs, shapes, strict=True):
        graph.tensors[t] = replace(graph.tensors[t], shape=shape)
    return Case(Model([graph]), case.inputs)


def reduce_window(draw: Draw, cell: Cell) -> Case:
    """STABLEHLO_REDUCE_WINDOW; its body is one operator."""
    shape = d.shape_of(draw, 3, 6)
    names = ["add", "multiply", "minimum", "maximum"] if cell.dtype is not DType.BOOL else ["and", "or"]
    largest = {"window_dimensions": 3, "window_strides": 2, "base_dilations": 2, "window_dilations": 2}
    dims = {name: tuple(d.whole(draw, 1, high) for _ in shape) for name, high in largest.items()}
    padding = np.array([[d.whole(draw, 0, 2), d.whole(draw, 0, 2)] for _ in shape], np.int64).reshape(-1)
    start = fixed(d.numbers(draw, cell.dtype, ())[0])
    case = node_case("stablehlo_reduce_window", [d.data(draw, cell, shape), start], [cell.dtype], shape=shape,
                     body_subgraph_index=1, padding=tuple(padding.tolist()), **dims)  # fmt: skip
    body = computation([f"stablehlo_{d.pick(draw, names)}"], cell.dtype)
    return Case(Model([case.model.main, body]), case.inputs)
