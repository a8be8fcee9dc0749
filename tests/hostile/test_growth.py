"""Graphs that grow are refused before what they grow to is made: little memory beyond the limit, and quickly.

Each case runs in a process of its own, which tells its peak of resident memory over what it had after its imports.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.tracked import ROOT
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import LimitError
from tflq.graph import DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.limits import Limits

LIMIT = 48 << 20
SHARE = 1.2
SECONDS = 3.0

F32, I32 = DType.FLOAT32, DType.INT32
SHAPE = (64, 64)
PLAIN = {"fused_activation_function": "none"}
Step = Callable[[GraphBuilder, int, int], int]


def chain(step: Step, shape: tuple[int, ...] = SHAPE, length: int = 20, constant: bool = False) -> list[Graph]:
    """A graph whose file states the first shape for every tensor."""
    b = GraphBuilder()
    x = b.input("x", shape, F32)
    y = b.constant("y", np.ones(shape, np.float32)) if constant else x
    for i in range(length):
        y = step(b, y, i)
    return [b.build([b.add("add", [b.add("sum", [y, integers(b, list(range(len(shape))))], (), F32), x], shape, F32)])]


def integers(b: GraphBuilder, values: object) -> int:
    return b.constant("c", np.array(values, np.int32))


def twice(b: GraphBuilder, x: int, _: int = 0) -> int:
    return b.add("concatenation", [x, x], SHAPE, F32, axis=0, **PLAIN)


def tile(b: GraphBuilder, x: int, _: int) -> int:
    return b.add("tile", [x, integers(b, [2, 1])], SHAPE, F32)


def pad(b: GraphBuilder, x: int, i: int) -> int:
    return b.add("pad", [x, integers(b, [[0, 64 << i], [0, 0]])], SHAPE, F32)


def gather(b: GraphBuilder, x: int, i: int) -> int:
    return b.add("gather", [x, integers(b, np.zeros(64 << (i + 1)))], SHAPE, F32, axis=0)


def pack(b: GraphBuilder, x: int, _: int) -> int:
    flat = b.add("reshape", [x, integers(b, [-1])], (1,), F32)
    return b.add("pack", [flat] * 8, (1,), F32, axis=0, values_count=8)


def broadcast(b: GraphBuilder, x: int, _: int) -> int:
    flat = b.add("reshape", [x, integers(b, [1, -1])], (1,), F32)
    shape = b.add("concatenation", [integers(b, [8]), b.add("shape", [x], (1,), I32)], (1,), I32, axis=0, **PLAIN)
    whole = b.add("reduce_prod", [shape, integers(b, [0])], (), I32, keep_dims=True)
    rows = b.add("concatenation", [integers(b, [8]), b.add("div", [whole, integers(b, [8])], (1,), I32, **PLAIN)],
                 (2,), I32, axis=0, **PLAIN)  # fmt: skip
    return b.add("broadcast_to", [flat, rows], (1,), F32)


def outer(b: GraphBuilder, x: int, _: int) -> int:
    column = b.add("reshape", [x, integers(b, [-1, 1])], (1, 1), F32)
    row = b.add("reshape", [x, integers(b, [1, -1])], (1, 1), F32)
    return b.add("mul", [column, row], (1, 1), F32, **PLAIN)


def resize(operator: str) -> Step:
    return lambda b, x, i: b.add(operator, [x, integers(b, [16 << i, 16 << i])], (1, 8, 8, 16), F32)


def transposed(b: GraphBuilder, x: int, i: int) -> int:
    weights = b.constant("w", np.ones((4, 2, 2, 4), np.float32))
    size = integers(b, [1, 16 << i, 16 << i, 4])
    return b.add("transpose_conv", [size, weights, x], (1, 8, 8, 4), F32, padding="same", stride_h=2, stride_w=2)


def many(b: GraphBuilder, x: int, i: int) -> int:
    """Nothing grows twice; all of it is alive until the end."""
    filled = b.add("fill", [integers(b, [4096, 64]), b.constant("v", np.float32(i))], SHAPE, F32)
    return b.add("concatenation", [x, filled], SHAPE, F32, axis=0, **PLAIN)


def while_(step: Step) -> list[Graph]:
    c = GraphBuilder("condition")
    c.input("a", SHAPE, F32)
    less = c.add("less", [c.constant("0", np.zeros(1, np.float32)), c.constant("1", np.ones(1, np.float32))],
                 (1,), DType.BOOL)  # fmt: skip
    d = GraphBuilder("body")
    body = d.build([step(d, d.input("a", SHAPE, F32), 0)])
    b = GraphBuilder()
    y = b.tensor("y", SHAPE, F32)
    b.node("while", [b.input("x", SHAPE, F32)], [y], cond_subgraph_index=1, body_subgraph_index=2)
    return [b.build([y]), c.build([less]), body]


def by_data(operator: str) -> list[Graph]:
    """What is repeated how often, and how long a range is, comes from an input (2)."""
    b = GraphBuilder()
    x, times = b.input("x", SHAPE, F32), b.input("times", (2,), I32)
    if operator == "tile":
        for _ in range(10):
            x = b.add("tile", [x, times], SHAPE, F32)
        return [b.build([x])]
    count = b.add("mul", [b.add("reduce_prod", [times, integers(b, [0])], (), I32), integers(b, 1 << 20)], (), I32)
    ranges = [b.add("range", [integers(b, 0), count, integers(b, 1)], (1,), I32) for _ in range(40)]
    return [b.build([b.add("concatenation", ranges, (1,), I32, axis=0, **PLAIN), x])]


CASES: dict[str, Callable[[], list[Graph]]] = {
    "concatenation": lambda: chain(twice),
    "tile": lambda: chain(tile),
    "pad": lambda: chain(pad),
    "gather": lambda: chain(gather, length=14),
    "pack": lambda: chain(pack),
    "broadcast_to": lambda: chain(broadcast, constant=True),
    "mul": lambda: chain(outer, (2, 1)),
    "resize_nearest_neighbor": lambda: chain(resize("resize_nearest_neighbor"), (1, 8, 8, 16)),
    "resize_bilinear": lambda: chain(resize("resize_bilinear"), (1, 8, 8, 16)),
    "transpose_conv": lambda: chain(transposed, (1, 8, 8, 4)),
    "many": lambda: chain(many, length=200),
    "constants": lambda: chain(twice, constant=True),
    "while": lambda: while_(twice),
    "while, slowly": lambda: while_(many),
    "tile by data": lambda: by_data("tile"),
    "range by data": lambda: by_data("range"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_before_it_is_made(name: str) -> None:
    command = [sys.executable, "-m", "tests.hostile.test_growth", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    peak, seconds, message = done.stdout.split(" ", 2)
    assert " are allowed; raise the limit with limits " in message
    assert int(peak) <= SHARE * LIMIT, f"{int(peak) / LIMIT:.2f} of the limit"
    assert float(seconds) < SECONDS


def main(name: str) -> None:
    """Run a case; print the bytes above what a small graph leaves behind, the seconds, and the message."""
    small = GraphBuilder()
    Engine(small.build([twice(small, small.input("x", SHAPE, F32))])).run([np.zeros((1, *SHAPE), np.float32)])
    content = model_to_bytes(Model(CASES[name]()))
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        model = model_from_bytes(content, "model")
        engine = Engine(model.main, graphs=model.graphs, limits=Limits(max_memory=LIMIT))
        engine.run([np.full((1, *model.main.tensors[t].shape), 2, model.main.tensors[t].dtype.storage)
                    for t in model.main.inputs])  # fmt: skip
        words = "runs"
    except LimitError as error:
        words = str(error)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(f"{(peak - before) << 10} {seconds} {words}\n")


if __name__ == "__main__":
    main(sys.argv[1])
