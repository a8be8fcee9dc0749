"""Limits on running: what is beyond one is refused in one line that names how to raise it, and runs once raised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.hostile.raised import refused_unless_raised
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.limits import Limits

F32, I32 = DType.FLOAT32, DType.INT32
PLAIN = {"fused_activation_function": "none"}


def running(graph: Graph, inputs: list[Array], *others: Graph) -> Callable[[Limits], object]:
    return lambda limits: Engine(graph, graphs=[graph, *others], limits=limits).run(inputs)


def by_value(operator: str, dtype: DType, *values: object, **attributes: object) -> tuple[Graph, list[Array]]:
    """One operator whose operands are all given when it runs; the file states a result of one element."""
    b = GraphBuilder()
    arrays = [np.asarray(v, np.float32 if isinstance(v, float) or np.asarray(v).dtype.kind == "f" else np.int32)
              for v in values]  # fmt: skip
    given = [b.input(f"x{i}", a.shape, DType.of(a.dtype)) for i, a in enumerate(arrays)]
    graph = b.build([b.add(operator, given, (1,), dtype, **attributes)])
    return graph, [a[None] for a in arrays]


IMAGE = np.zeros((1, 2, 2, 1), np.float32)
WEIGHTS = np.zeros((50, 1, 1, 1), np.float32)
ROWS = np.zeros((2, 30), np.float32)
COLUMN, ROW = np.zeros((40, 1), np.float32), np.zeros((1, 30), np.float32)
CONV = {"padding": "same", "stride_h": 1, "stride_w": 1, **PLAIN}
GROWING = {
    "fill": (400, by_value("fill", F32, [10, 10], 1.0)),
    "tile": (400, by_value("tile", F32, [1.0, 2.0], [50])),
    "broadcast_to": (400, by_value("broadcast_to", F32, [1.0], [10, 10])),
    "range": (400, by_value("range", I32, 0, 100, 1)),
    "one_hot": (400, by_value("one_hot", F32, [0, 1], 50, 1.0, 0.0, axis=-1)),
    "pad": (400, by_value("pad", F32, [1.0, 2.0], [[48, 50]])),
    "mirror_pad": (80, by_value("mirror_pad", F32, [0.0] * 8, [[6, 6]], mode="reflect")),
    "scatter_nd": (400, by_value("scatter_nd", F32, [[3]], [1.0], [100])),
    "sparse_to_dense": (400, by_value("sparse_to_dense", F32, [3], [100], 1.0, 0.0)),
    "unsorted_segment_sum": (400, by_value("unsorted_segment_sum", F32, [1.0], [3], 99)),
    "resize_nearest_neighbor": (400, by_value("resize_nearest_neighbor", F32, IMAGE, [10, 10])),
    "resize_bilinear": (400, by_value("resize_bilinear", F32, IMAGE, [10, 10])),
    "random_uniform": (400, by_value("random_uniform", F32, [10, 10], seed=1, seed2=2)),
    "gather": (2400, by_value("gather", F32, ROWS, [0] * 20, axis=0)),
    "gather_nd": (2400, by_value("gather_nd", F32, ROWS, [[0]] * 20)),
    "add": (4800, by_value("add", F32, COLUMN, ROW, **PLAIN)),
    "less": (4800, by_value("less", DType.BOOL, COLUMN, ROW)),
    "batch_matmul": (4800, by_value("batch_matmul", F32, COLUMN, ROW)),
    "fully_connected": (6400, by_value("fully_connected", F32, COLUMN, COLUMN, **PLAIN)),
    "conv_2d": (800, by_value("conv_2d", F32, IMAGE, WEIGHTS, np.zeros(50, np.float32), **CONV)),
    "matrix_diag": (3600, by_value("matrix_diag", F32, ROW)),
    "pack": (240, by_value("pack", F32, ROW, ROW, axis=0, values_count=2)),
    "concatenation": (240, by_value("concatenation", F32, ROW, ROW, axis=1, **PLAIN)),
}


@pytest.mark.parametrize("operator", GROWING)
def test_results_larger_than_the_file_states(operator: str) -> None:
    """The size is checked before the result is made: by the values, and where a stated shape is wrong."""
    size, (graph, inputs) = GROWING[operator]
    message = refused_unless_raised(running(graph, inputs), "max_bytes", size)
    assert f"operator 0 ({operator} " in message


def test_a_result_beyond_any_memory_is_refused_at_once() -> None:
    graph, inputs = by_value("fill", F32, [2**31 - 1, 2**31 - 1], 1.0)
    with pytest.raises(UnsupportedError, match=r"of shape \(2147483647, 2147483647\): found 18446744056529682436"):
        Engine(graph).run(inputs)


def two_additions() -> Graph:
    b = GraphBuilder()
    x, y = b.input("x", (100,), F32), b.input("y", (100,), F32)
    first = b.add("add", [x, y], (100,), F32, **PLAIN)
    return b.build([b.add("add", [first, first], (100,), F32, **PLAIN)])


def test_memory_of_all_tensors_alive() -> None:
    """At the first addition two inputs and a sum are alive, at the second two sums."""
    inputs = [np.zeros((1, 100), np.float32)] * 2
    message = refused_unless_raised(running(two_additions(), inputs), "max_memory", 1200)
    assert "bytes of all tensors of one sample alive beside a result of shape (100,): found 1200" in message


def test_memory_of_a_subgraph_comes_on_top_of_its_caller() -> None:
    b = GraphBuilder()
    condition, x, y = b.input("condition", (1,), DType.BOOL), b.input("x", (100,), F32), b.input("y", (100,), F32)
    main = b.build([b.add("if", [condition, x, y], (100,), F32, then_subgraph_index=1, else_subgraph_index=1)])
    inputs = [np.ones((1, 1), np.bool_), *[np.zeros((1, 100), np.float32)] * 2]
    refused_unless_raised(running(main, inputs, two_additions()), "max_memory", 1 + 3 * 400 + 1200)


def test_memory_of_tensors_whose_shapes_come_from_the_data() -> None:
    b = GraphBuilder()
    size, value = b.input("size", (1,), I32), b.input("value", (), F32)
    filled = [b.add("fill", [size, value], (1,), F32) for _ in range(3)]
    graph = b.build(filled)
    inputs = [np.full((1, 1), 1000, np.int32), np.ones(1, np.float32)]
    refused_unless_raised(running(graph, inputs), "max_memory", 4 + 4 + 3 * 4000)


def test_memory_of_constants_that_are_computed_before_the_first_run() -> None:
    """Four of them, the sum so far and the next one."""
    b = GraphBuilder()
    x, size = b.input("x", (1000,), F32), b.constant("size", np.array([1000], np.int32))
    for value in (1.0, 2.0, 3.0, 4.0):
        filled = b.add("fill", [size, b.constant("value", np.array(value, np.float32))], (1000,), F32)
        x = b.add("add", [x, filled], (1000,), F32, **PLAIN)
    graph = b.build([x])
    message = refused_unless_raised(running(graph, [np.zeros((1, 1000), np.float32)]), "max_memory", 6 * 4000)
    assert message.startswith("operator 7 (add 'ADD_0_7'): bytes of all tensors of one sample alive beside a result")


def nested(levels: int) -> list[Graph]:
    """Graph i runs graph i + 1; the last one adds."""
    graphs = []
    for level in range(levels - 1):
        b = GraphBuilder(f"level {level}")
        x = b.input("x", (4,), F32)
        name = {"decomposition_subgraph_index": level + 1, "name": "c"}
        graphs.append(b.build([b.add("stablehlo_composite", [x], (4,), F32, **name)]))
    b = GraphBuilder("last")
    x = b.input("x", (4,), F32)
    return [*graphs, b.build([b.add("add", [x, x], (4,), F32, **PLAIN)])]


def test_levels_of_subgraphs() -> None:
    main, *others = nested(70)
    inputs = [np.ones((1, 4), np.float32)]
    message = refused_unless_raised(running(main, inputs, *others), "max_depth", 70)
    assert "levels of subgraphs that run each other" in message
    with pytest.raises(UnsupportedError, match="64 are allowed"):
        Engine(main, graphs=[main, *others])


def test_levels_that_are_found_by_a_shorter_way_first() -> None:
    """The main graph runs the deep end before its beginning, so the whole way is never walked at once."""
    b = GraphBuilder()
    x = b.input("x", (4,), F32)
    for called in (4, 1):
        x = b.add("stablehlo_composite", [x], (4,), F32, decomposition_subgraph_index=called, name="c")
    main = b.build([x])
    _, *others = nested(6)
    refused_unless_raised(running(main, [np.ones((1, 4), np.float32)], *others), "max_depth", 6)


def endless() -> list[Graph]:
    """WHILE x < limit: x = x + step."""
    b = GraphBuilder("main")
    x, limit, step = (b.input(n, (1,), F32) for n in ("x", "limit", "step"))
    outputs = [b.tensor(n, (1,), F32) for n in ("x2", "limit2", "step2")]
    b.node("while", [x, limit, step], outputs, cond_subgraph_index=1, body_subgraph_index=2)
    c = GraphBuilder("condition")
    x, limit, _ = (c.input(n, (1,), F32) for n in ("x", "limit", "step"))
    d = GraphBuilder("body")
    x2, limit2, step2 = (d.input(n, (1,), F32) for n in ("x", "limit", "step"))
    condition = c.build([c.add("less", [x, limit], (1,), DType.BOOL)])
    body = d.build([d.add("add", [x2, step2], (1,), F32, **PLAIN), limit2, step2])
    return [b.build(outputs), condition, body]


def test_a_loop_that_never_ends() -> None:
    main, *others = endless()
    inputs = [np.full((1, 1), value, np.float32) for value in (0, 1, 0)]
    words = r"runs of subgraphs in one invocation \(a loop without end\?\), .*: found 1001, 1000 are allowed; raise"
    with pytest.raises(UnsupportedError, match=words):
        Engine(main, graphs=[main, *others], limits=Limits(max_subgraph_runs=1000)).run(inputs)


def test_the_limit_of_turns_is_that_of_each_invocation() -> None:
    main, *others = endless()
    inputs = [np.full((1, 1), value, np.float32) for value in (0, 10, 1)]
    refused_unless_raised(running(main, inputs, *others), "max_subgraph_runs", 21)
    engine = Engine(main, graphs=[main, *others], state="stream", limits=Limits(max_subgraph_runs=21))
    for _ in range(3):
        engine.run(inputs)


def test_subgraphs_that_run_each_other_more_often_at_each_level() -> None:
    graphs = nested(40)
    for level, graph in enumerate(graphs[:-1]):
        b = GraphBuilder()
        x = b.input("x", (4,), F32)
        for _ in range(2):
            x = b.add("stablehlo_composite", [x], (4,), F32, decomposition_subgraph_index=level + 1, name="c")
        graphs[level] = replace(b.build([x]), name=graph.name)
    with pytest.raises(UnsupportedError, match="runs of subgraphs in one invocation"):
        Engine(graphs[0], graphs=graphs, limits=Limits(max_subgraph_runs=2000)).run([np.ones((1, 4), np.float32)])
