"""Runs one graph in TFLite and in tflq over the same inputs, and compares every bit of every tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import Array, Graph, Tensor
from tflq.interpreter import Engine
from tflq.interpreter.recording.primitive import Compute, Primitive, recorded_by
from tflq.oracle import Oracle


def random_value(rng: np.random.Generator, tensor: Tensor, samples: int) -> Array:
    """Draw samples of a graph input: the whole range of an integer type, normal numbers otherwise."""
    shape, kind = (samples, *tensor.shape), tensor.dtype.storage
    if tensor.dtype.is_integer:
        return rng.integers(tensor.dtype.minimum, tensor.dtype.maximum, shape, kind, endpoint=True)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    return rng.normal(size=shape).astype(kind)


def random_inputs(rng: np.random.Generator, graph: Graph, samples: int) -> list[Array]:
    return [random_value(rng, graph.tensors[t], samples) for t in graph.inputs]


class Rules:
    """A recorder that keeps nothing: no table and no map stands, so each rule runs as `explain` and C99 see it."""

    def call(self, rule: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return rule.function(*args, **kwargs)

    def move(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return function(*args)

    def entries(self, table: Array, index: Any) -> Any:
        return np.take(table, index)

    def stands(self, table: Array) -> bool:
        return False

    def computation(self, table: Array) -> Compute | None:
        return None


def check_against_oracle(oracle: Oracle, graph: Graph, inputs: Sequence[Array]) -> dict[int, Array]:
    """Assert that tflq's computed tensors equal TFLite's, bit for bit, and by the rules alone; return tflq's.

    The graph goes through our own writer and reader, so that both sides see the same file.
    """
    content = model_to_bytes(graph)
    read = model_from_bytes(content, "single operator").main
    judged = oracle.run(content, inputs)
    computed = [t for node in read.nodes for t in node.outputs]
    engine = Engine(read)
    ours = engine.run(inputs, computed)
    with recorded_by(Rules()):
        by_rule = engine.run([x[:1] for x in inputs], computed)
    for t in computed:
        assert_same_bits(by_rule[t], ours[t][:1], f"by the rule: tensor {t} '{read.tensors[t].name}'")
        assert t not in judged.unavailable, f"TFLite cannot return tensor {t}: {judged.unavailable[t]}"
        assert_same_bits(ours[t], judged.tensors[t], f"tensor {t} '{read.tensors[t].name}'")
    return ours


def assert_same_bits(ours: Array, theirs: Array, what: str) -> None:
    assert ours.dtype == theirs.dtype, f"{what}: {ours.dtype}, TFLite has {theirs.dtype}"
    assert ours.shape == theirs.shape, f"{what}: {ours.shape}, TFLite has {theirs.shape}"
    both_nan = (ours != ours) & (theirs != theirs)
    same = (bits(ours) == bits(theirs)) | both_nan
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        raise AssertionError(
            f"{what}: {np.count_nonzero(~same)} of {same.size} elements differ; first at {place}: "
            f"{ours[place]!r}, TFLite has {theirs[place]!r}"
        )


def bits(array: Array) -> Array:
    """View floats as integers of the same width, so that -0 and 0 differ."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "f" else array


def check_stream(oracle: Oracle, graph: Graph, inputs: Sequence[Array]) -> dict[int, Array]:
    """Assert that outputs equal TFLite's bit for bit when samples are successive invocations, and when each is alone.

    Returns the outputs of the stream.
    """
    content = model_to_bytes(graph)
    read = model_from_bytes(content, "single operator").main
    found: dict[int, Array] = {}
    for state in ("independent", "stream"):
        judged = oracle.run(content, inputs, tensors="outputs", state=state)
        found = Engine(read, state=state).run(inputs)
        for t in read.outputs:
            assert_same_bits(found[t], judged.tensors[t], f"{state}: tensor {t} '{read.tensors[t].name}'")
    return found
