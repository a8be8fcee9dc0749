"""Graphs of one operator with any mix of inputs and constants; the outputs' shapes are what tflq computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import settings

from tests.support.draw import kernel_settings
from tests.support.single_op import check_against_oracle
from tflq.converters.tflite import model_to_bytes
from tflq.errors import GraphError, InputError, OracleError, UnsupportedError
from tflq.graph import Affine, Array, Attribute, DType, Graph, GraphBuilder
from tflq.interpreter import Engine
from tflq.oracle import Oracle

few = settings(kernel_settings, max_examples=6)
"""For tests with many parameters, each of which draws its own examples."""
VERSIONS = {"broadcast_to": 2}
"""Where TFLite registers no version 1."""


@dataclass(frozen=True)
class Operand:
    """An input's samples [S, *shape], or a constant [*shape]."""

    value: Array
    constant: bool = False
    quantization: Affine | None = None
    dtype: DType | None = None

    @property
    def kind(self) -> DType:
        return self.dtype or DType.of(self.value.dtype)


@dataclass(frozen=True)
class Result:
    """Type and quantization of an output."""

    dtype: DType
    quantization: Affine | None = None


def sampled(value: Array, quantization: Affine | None = None, dtype: DType | None = None) -> Operand:
    return Operand(value, False, quantization, dtype)


def fixed(value: object, quantization: Affine | None = None, dtype: DType | None = None) -> Operand:
    """A constant; numbers of Python are int32."""
    array = value if isinstance(value, (np.ndarray, np.generic)) else np.asarray(value, np.int32)
    return Operand(np.asarray(array), True, quantization, dtype)


def long(value: object) -> Operand:
    """A constant of int64."""
    return fixed(np.asarray(value, np.int64))


def build(
    operator: str,
    operands: Sequence[Operand | None],
    results: Sequence[Result],
    shapes: Sequence[Sequence[int]],
    **attributes: Attribute,
) -> Graph:
    return one_operator(operator, operands, results, shapes, VERSIONS.get(operator, 1), attributes)


def one_operator(
    operator: str,
    operands: Sequence[Operand | None],
    results: Sequence[Result],
    shapes: Sequence[Sequence[int]],
    version: int,
    attributes: Mapping[str, Attribute],
) -> Graph:
    """Return a graph of one operator: operands that are no constants are its inputs, its results the outputs."""
    b = GraphBuilder(operator)
    inputs = []
    for i, operand in enumerate(operands):
        if operand is None:
            inputs.append(-1)
        elif operand.constant:
            inputs.append(b.constant(f"c{i}", operand.value, operand.quantization, operand.kind))
        else:
            inputs.append(b.input(f"x{i}", operand.value.shape[1:], operand.kind, operand.quantization))
    outputs = [
        b.tensor(f"y{i}", shape, result.dtype, result.quantization)
        for i, (result, shape) in enumerate(zip(results, shapes, strict=True))
    ]
    b.node(operator, inputs, outputs, version, **attributes)
    return b.build(outputs)


def graph_of(
    operator: str, operands: Sequence[Operand | None], results: Sequence[Result], **attributes: Attribute
) -> tuple[Graph, list[Array]]:
    """Return the graph, its outputs shaped as tflq computes them, and the samples of its inputs."""
    rough = build(operator, operands, results, [()] * len(results), **attributes)
    inputs = [operand.value for operand in operands if operand is not None and not operand.constant]
    ours = Engine(rough).run(inputs)
    shapes = [ours[t].shape[1:] for t in rough.outputs]
    return build(operator, operands, results, shapes, **attributes), inputs


def check(
    oracle: Oracle,
    operator: str,
    operands: Sequence[Operand | None],
    results: Sequence[Result | DType],
    **attributes: Attribute,
) -> list[Array]:
    """Assert that tflq equals TFLite, bit for bit; return tflq's outputs."""
    kinds = [Result(result) if isinstance(result, DType) else result for result in results]
    graph, inputs = graph_of(operator, operands, kinds, **attributes)
    ours = check_against_oracle(oracle, graph, inputs)
    return [ours[t] for t in graph.outputs]


def values(seed: int, shape: Sequence[int], dtype: DType) -> Array:
    """Draw values of a type: the whole range of integers, some strings, normal numbers otherwise."""
    rng = np.random.default_rng(seed)
    if dtype is DType.STRING:
        words = np.array([b"", b"a", b"word", "\N{GREEK SMALL LETTER ALPHA}".encode(), b"with\0nul"], object)
        return words[rng.integers(0, len(words), shape)]
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.is_integer:
        return rng.integers(dtype.minimum, dtype.maximum, shape, dtype.storage, endpoint=True)
    if dtype in (DType.BFLOAT16, DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2):
        return rng.integers(0, 100, shape).astype(dtype.storage)
    return rng.normal(size=shape).astype(dtype.storage)


def check_refused(
    oracle: Oracle,
    operator: str,
    operands: Sequence[Operand | None],
    results: Sequence[Result | DType],
    message: str | None = None,
    **attributes: Attribute,
) -> None:
    """Assert that TFLite refuses the model or its samples, and that tflq does so in one line that matches."""
    kinds = [Result(result) if isinstance(result, DType) else result for result in results]
    graph = build(operator, operands, kinds, [()] * len(kinds), **attributes)
    inputs = [operand.value for operand in operands if operand is not None and not operand.constant]
    with pytest.raises(OracleError):
        oracle.run(model_to_bytes(graph), inputs)
    with pytest.raises((GraphError, UnsupportedError, InputError), match=message) as refusal:
        Engine(graph).run(inputs)
    assert "\n" not in str(refusal.value)
