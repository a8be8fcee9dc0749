"""Operators whose result has four axes though no image goes in, or another one: they must say in which layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflq.converters.settled import settled_graph
from tflq.graph import Array, DType, Graph, GraphBuilder

FLOAT = DType.FLOAT32
CASES: dict[str, tuple[str, tuple[object, ...], dict[str, Any]]] = {
    "embedding_lookup": ("embedding_lookup", ((2, 0), "x5"), {}),
    "gather": ("gather", ("x5", (2, 0)), {"axis": 0, "batch_dims": 0}),
    "gather of rows": ("gather", ("x3", ((2, 0), (1, 1))), {"axis": 0, "batch_dims": 0}),
    "gather of several axes": ("gather", ("x4", (2, 0, 1)), {"axis": 3, "batch_dims": 0}),
    "gather_nd": ("gather_nd", ("x5", ((1, 0), (0, 2))), {}),
    "scatter_nd": ("scatter_nd", (((2,), (0,)), "two", (3, 2, 4, 5)), {}),
    "fill": ("fill", ((2, 3, 4, 5), "x0"), {}),
    "broadcast_to": ("broadcast_to", ("x3", (2, 2, 3, 4)), {}),
    "one_hot": ("one_hot", (np.arange(6).reshape(1, 2, 3), 5, "x0", 0.5), {"axis": -1}),
    "one_hot in front": ("one_hot", (np.arange(6).reshape(1, 2, 3), 5, "x0", 0.5), {"axis": 1}),
    "pack": ("pack", ("x3", "x3"), {"axis": 1, "values_count": 2}),
    "expand_dims": ("expand_dims", ("x3", 1), {}),
    "squeeze": ("squeeze", ("x5",), {"squeeze_dims": (0,)}),
    "reshape of rows": ("reshape", ("x3", (1, 4, 3, 2)), {"new_shape": (1, 4, 3, 2)}),
    "reshape of images": ("reshape", ("x4", (1, 5, 6, 4)), {"new_shape": (1, 5, 6, 4)}),
    "batch_matmul": ("batch_matmul", ("x4", "x4"), {"adj_x": False, "adj_y": True}),
    "mean": ("mean", ("x5", (2,)), {"keep_dims": False}),
    "reduce_max": ("reduce_max", ("x5", (-1,)), {"keep_dims": False}),
    "arg_max": ("arg_max", ("x5", 1), {"output_type": "int32"}),
    "cumsum": ("cumsum", ("x4", 2), {"exclusive": False, "reverse": False}),
    "new axis": ("strided_slice", ("x3", (0, 0, 0, 0), (9, 9, 9, 9), (1, 1, 1, 1)),
                 {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 2, "shrink_axis_mask": 0}),
    "one axis less": ("strided_slice", ("x5", (0, 0, 1, 0, 0), (9, 9, 2, 9, 9), (1, 1, 1, 1, 1)),
                      {"begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 4}),
    "transpose": ("transpose", ("x4", (0, 3, 1, 2)), {}),
    "reverse_sequence": ("reverse_sequence", ("x4", (2, 1)), {"seq_dim": 2, "batch_dim": 0}),
    "space_to_batch_nd": ("space_to_batch_nd", ("x4", (2, 1), ((0, 0), (0, 0))), {}),
    "batch_to_space_nd": ("batch_to_space_nd", ("x4", (2, 1), ((0, 0), (0, 0))), {}),
    "fully_connected": ("fully_connected", ("x4", np.linspace(-1, 1, 21).reshape(7, 3)), {"keep_num_dims": True}),
    "add of rows": ("add", ("x3", "x4"), {"fused_activation_function": "none"}),
    "select_v2": ("select_v2", ((True, False, True), "x4", "x1"), {}),
    "l2_normalization": ("l2_normalization", ("x4",), {}),
    "local_response_normalization": (
        "local_response_normalization", ("x4",), {"radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.5}),
    "segment_sum": ("segment_sum", ("x4", (0, 1)), {}),
}  # fmt: skip
"""Operator, inputs (names of computed ones, values of constants), options."""
SHAPES = {"x0": (), "x1": (3,), "x3": (2, 3, 4), "x4": (2, 4, 5, 3), "x5": (1, 3, 2, 4, 5), "two": (2, 2, 4, 5)}


def four_axes(name: str) -> tuple[Graph, list[Array]]:
    """Return the graph of one case, and two samples of its inputs."""
    operator, operands, options = CASES[name]
    if operator in ("embedding_lookup", "gather") and "x5" in operands:
        shapes = {**SHAPES, "x5": (3, 2, 4, 5)}
    elif name == "gather of rows":
        shapes = {**SHAPES, "x3": (3, 4, 5)}
    elif name == "gather_nd":
        shapes = {**SHAPES, "x5": (2, 3, 2, 4, 5)}
    elif name == "add of rows":
        shapes = {**SHAPES, "x3": (4, 5, 3)}
    else:
        shapes = SHAPES
    b, inputs = GraphBuilder(name), list[int]()
    for place, given in enumerate(operands):
        if isinstance(given, str):
            x = b.input(f"{given}_{place}", shapes[given], FLOAT)
            inputs.append(b.add("tanh", [x], shapes[given], FLOAT))
            continue
        value = np.asarray(given)
        kind = {"b": np.bool_, "f": np.float32}.get(value.dtype.kind, np.int32)
        inputs.append(b.constant(f"c{place}", value.astype(kind)))
    result = DType.INT32 if operator == "arg_max" else FLOAT
    graph = settled_graph(b.build([b.add(operator, inputs, (1,), result, **options)]))
    draw = np.random.default_rng(7)
    return graph, [draw.normal(size=(2, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]
