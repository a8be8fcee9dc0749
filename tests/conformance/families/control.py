"""Control flow, resources and tables: models of several subgraphs, and of state."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case
from tests.conformance.cells import Cell
from tests.conformance.draws import Draw, flag, numbers, pick, quantization, shape_of, whole
from tflq.graph import Affine, Attribute, DType, Graph, GraphBuilder, Model
from tflq.schemas.tflite.flexbuffer import encode_flexbuffer

BOOL, INT32, RESOURCE = DType.BOOL, DType.INT32, DType.RESOURCE
Shape = tuple[int, ...]


def _mover(operator: str, cell: Cell, shape: Shape, q: Affine | None) -> Graph:
    """A branch: x as it is, or backwards along its first axis."""
    b = GraphBuilder(operator)
    x = b.input("x", shape, cell.dtype, q)
    rest = (
        [b.constant("axis", np.array([0], np.int32))]
        if operator == "reverse_v2"
        else [b.constant("shape", np.array(shape, np.int32))]
    )
    return b.build([b.add(operator, [x, *rest], shape, cell.dtype, q)])


def branches(draw: Draw, cell: Cell) -> Case:
    """IF and STABLEHLO_CASE: each sample goes its own way."""
    shape, q = shape_of(draw), quantization(draw, cell.kind)
    by_index = cell.operator == "stablehlo_case"
    b = GraphBuilder(cell.operator)
    choice = b.input("choice", (1,), INT32 if by_index else BOOL)
    x = b.input("x", shape, cell.dtype, q)
    options: dict[str, Attribute] = (
        {"branch_subgraph_indices": (1, 2)} if by_index else {"then_subgraph_index": 1, "else_subgraph_index": 2}
    )
    y = b.add(cell.operator, [choice, x], shape, cell.dtype, q, **options)
    models = [b.build([y]), *(_mover(name, cell, shape, q) for name in ("reverse_v2", "reshape"))]
    picked = numbers(draw, BOOL, (1,), 4)
    return Case(Model(models), (picked.astype(np.int32) if by_index else picked, numbers(draw, cell.dtype, shape, 4)))


def loop(draw: Draw, cell: Cell) -> Case:
    """WHILE turns x around as often as a counter says."""
    shape, q = shape_of(draw), quantization(draw, cell.kind)
    main = GraphBuilder("while")
    i, n, x = main.input("i", (1,), INT32), main.input("n", (1,), INT32), main.input("x", shape, cell.dtype, q)
    outs = [main.tensor("i2", (1,), INT32), main.tensor("n2", (1,), INT32), main.tensor("x2", shape, cell.dtype, q)]
    main.node(cell.operator, [i, n, x], outs, cond_subgraph_index=1, body_subgraph_index=2)
    test = GraphBuilder("condition")
    i, n, _ = test.input("i", (1,), INT32), test.input("n", (1,), INT32), test.input("x", shape, cell.dtype, q)
    less = test.add("less", [i, n], (1,), BOOL)
    body = GraphBuilder("body")
    i, n, x = body.input("i", (1,), INT32), body.input("n", (1,), INT32), body.input("x", shape, cell.dtype, q)
    more = body.add("add", [i, body.constant("one", np.ones(1, np.int32))], (1,), INT32)
    turned = body.add("reverse_v2", [x, body.constant("axis", np.array([0], np.int32))], shape, cell.dtype, q)
    limits = np.array([[whole(draw, 0, 5)] for _ in range(4)], np.int32)
    inputs = (np.zeros((4, 1), np.int32), limits, numbers(draw, cell.dtype, shape, 4))
    return Case(Model([main.build(outs), test.build([less]), body.build([more, n, turned])]), inputs)


def composite(draw: Draw, cell: Cell) -> Case:
    """STABLEHLO_COMPOSITE runs its decomposition."""
    shape, q = shape_of(draw), quantization(draw, cell.kind)
    b = GraphBuilder("composite")
    x = b.input("x", shape, cell.dtype, q)
    none = np.frombuffer(encode_flexbuffer({}), np.uint8)
    options: dict[str, Attribute] = {"decomposition_subgraph_index": 1, "composite_attributes": none, "name": "turn"}
    y = b.add("stablehlo_composite", [x], shape, cell.dtype, q, **options)
    return Case(Model([b.build([y]), _mover("reverse_v2", cell, shape, q)]), (numbers(draw, cell.dtype, shape),))


def variable(draw: Draw, cell: Cell) -> Case:
    """VAR_HANDLE, ASSIGN_VARIABLE, READ_VARIABLE and CALL_ONCE: returns what the sample before has left."""
    shape, q = shape_of(draw), quantization(draw, cell.kind)
    handle_of = {"container": "", "shared_name": "v"}
    start = GraphBuilder("start")
    handle = start.add("var_handle", [], (1,), RESOURCE, **handle_of)
    start.node(
        "assign_variable", [handle, start.constant("first", numbers(draw, cell.dtype, shape)[0], q, cell.dtype)], []
    )
    main = GraphBuilder("main")
    x = main.input("x", shape, cell.dtype, q)
    main.node("call_once", [], [], init_subgraph_index=1)
    handle = main.add("var_handle", [], (1,), RESOURCE, **handle_of)
    old = main.add("read_variable", [handle], shape, cell.dtype, q)
    main.node("assign_variable", [handle, x], [])
    state = str(pick(draw, ["stream", "independent"]))
    return Case(Model([main.build([old]), start.build([])]), (numbers(draw, cell.dtype, shape, 4),), state)


def table(draw: Draw, cell: Cell) -> Case:
    """HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND and HASHTABLE_SIZE: strings to int64 or back."""
    to_strings = cell.dtype is DType.STRING
    keys_type, values_type = (DType.INT64, DType.STRING) if to_strings else (DType.STRING, DType.INT64)
    count = whole(draw, 1, 5)
    words = np.array([f"word{i}".encode() for i in range(count)], object)
    ids = np.arange(count, dtype=np.int64) * 7 - 3
    keys, stored = (ids, words) if to_strings else (words, ids)
    options: dict[str, Attribute] = {"table_id": 1, "key_dtype": keys_type.value, "value_dtype": values_type.value}
    start = GraphBuilder("start")
    handle = start.add("hashtable", [], (1,), RESOURCE, **options)
    start.node("hashtable_import", [handle, start.constant("k", keys), start.constant("v", stored)], [])
    main = GraphBuilder("main")
    wanted = main.input("wanted", (3,), keys_type)
    main.node("call_once", [], [], init_subgraph_index=1)
    handle = main.add("hashtable", [], (1,), RESOURCE, **options)
    missing = np.array([b"none"], object) if to_strings else np.array([-9], np.int64)
    found = main.add("hashtable_find", [handle, wanted, main.constant("default", missing)], (3,), values_type)
    size = main.add("hashtable_size", [handle], (1,), DType.INT64)
    rows = np.array([[keys[whole(draw, 0, count - 1)] for _ in range(3)] for _ in range(3)], keys.dtype)
    if not to_strings and flag(draw):
        rows[0, 0] = b"elsewhere"
    return Case(Model([main.build([found, size]), start.build([])]), (rows,))
