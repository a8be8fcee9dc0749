"""Random streaming networks: variables that ordinary and recurrent operators write, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tests.support.draw import affine
from tflq.backends import Backend
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis.known_differences import rows_of_node
from tflq.errors import OracleError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Quantization
from tflq.interpreter import Engine
from tflq.interpreter.execution.engine import State
from tflq.oracle import Oracle

PAIRS = ("add", "sub", "mul", "maximum", "minimum")
SINGLES = ("relu", "relu6", "neg", "abs")
WIDTHS = (2, 4, 12)


def draw_streaming_network(seed: int) -> Graph:
    """Return a float32 or int8 network of 2 to 8 operators with 1 to 4 variables and one or two outputs.

    A variable may be read before and after it is written, written twice, returned, or never written. SVDF writes one
    of its own in a third of the float32 networks.
    """
    rng = np.random.default_rng(seed)
    width = int(rng.choice(WIDTHS))
    b = GraphBuilder("streaming")
    dtype, quantization = (DType.FLOAT32, None) if rng.random() < 0.5 else (DType.INT8, _quantization(rng))
    kind = (dtype, quantization)
    values = [b.input("x", (1, width), *kind)]
    variables = [b.variable(f"v{i}", (1, width), *kind) for i in range(rng.integers(1, 5))]
    if quantization is None and rng.random() < 0.3:
        values.append(_add_svdf(b, rng, values[0], variables, width))
    written = []
    for i in range(rng.integers(2, 9)):
        operator = str(rng.choice(PAIRS if rng.random() < 0.6 or quantization is not None else SINGLES))
        inputs = [int(t) for t in rng.choice([*values, *variables], 2 if operator in PAIRS else 1)]
        targets = [v for v in variables if v not in inputs]
        if targets and rng.random() < 0.45:
            output = int(rng.choice(targets))
        else:
            output = b.tensor(f"t{i}", (1, width), *kind)
            values.append(output)
        written.append(output)
        fused = {"fused_activation_function": "none"} if operator in ("add", "sub", "mul") else {}
        b.node(operator, inputs, [output], **fused)
    outputs = dict.fromkeys([written[-1], int(rng.choice([*written, *variables]))])
    return b.build(outputs)


def _quantization(rng: np.random.Generator) -> Quantization:
    return affine(DType.INT8, float(rng.uniform(0.01, 0.1)), int(rng.integers(-128, 128)))


def _add_svdf(b: GraphBuilder, rng: np.random.Generator, x: int, variables: list[int], width: int) -> int:
    """Add a SVDF of rank 1 with its own variable, which other operators may read and write too."""
    memory = int(rng.integers(1, 4))
    state = b.variable("state", (1, width * memory), DType.FLOAT32)
    if memory == 1:
        variables.append(state)
    weights = [b.constant(n, rng.normal(size=(width, m)).astype(np.float32)) for n, m in (("f", width), ("t", memory))]
    bias = b.constant("bias", rng.normal(size=width).astype(np.float32))
    return b.add("svdf", [x, *weights, bias, state], (1, width), DType.FLOAT32, version=4, rank=1,
                 fused_activation_function="none")  # fmt: skip


class Verdict(NamedTuple):
    """Outcome of a network in one mode; `is_named` if it is equal or a known difference explains it."""

    text: str
    is_named: bool


def judge_streaming_network(seed: int, oracle: Oracle, samples: int = 5) -> Iterator[Verdict]:
    """Yield a verdict for each state and backend."""
    graph = draw_streaming_network(seed)
    tensor = graph.tensors[graph.inputs[0]]
    rng = np.random.default_rng(seed)
    codes = rng.integers(-128, 128, (samples, *tensor.shape)).astype(np.int8)
    x: Array = codes if tensor.dtype is DType.INT8 else rng.normal(size=codes.shape).astype(np.float32)
    known = [row.what for node in graph.nodes for row in rows_of_node(graph, node) if "variable" in row.what]
    states: tuple[State, ...] = ("stream", "independent")
    for state in states:
        try:
            expected = oracle.run(model_to_bytes(Model([graph])), [x], tensors="outputs", state=state).tensors
        except OracleError as error:
            text = f"known difference: {known[0]}" if known else f"TFLite refuses: {str(error)[-80:]}"
            yield Verdict(text, bool(known))
            continue
        backends: tuple[Backend, ...] = ("numpy", "c")
        for backend in backends:
            results = Engine(graph, state=state, backend=backend).run([x])
            is_equal = all(np.array_equal(results[t], expected[t]) for t in graph.outputs)
            yield Verdict("equal" if is_equal else f"differs as {state} with backend {backend}", is_equal)
