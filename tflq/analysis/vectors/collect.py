"""Runs samples and keeps what each layer reads and writes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from tflq.analysis.executions import Execution
from tflq.analysis.inputs import Samples
from tflq.analysis.vectors.ne16 import REGISTERS, job_vectors
from tflq.analysis.vectors.params import integers_of
from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Graph, Node
from tflq.interpreter.execution.values import concatenate
from tflq.quoting import c_identifiers
from tflq.schemas import Json


@dataclass(frozen=True, eq=False)
class Vector:
    """One array of a layer.

    Attributes:
        role: "input", "constant", "integers", "output" or, of an accelerator's jobs, "memory".
        name: "input0", "constant1", "output0"; for integers the dotted name of the field.
        values: [S, *shape] of what is computed, [*shape] of what is fixed.
        tensor: name of the tensor; empty for integers.
        quantisation: of the tensor, if it is affine.
    """

    role: str
    name: str
    values: Array
    tensor: str = ""
    quantisation: Affine | None = None

    @property
    def identifier(self) -> str:
        """The name as C and Verilog take it."""
        return re.sub(r"\W", "_", self.name, flags=re.ASCII)


@dataclass(frozen=True, eq=False)
class LayerVectors:
    """One layer.

    Attributes:
        index: of the node.
        name: of the node.
        identifier: the name as C and Verilog take it, unique among the layers.
        operator: its operator.
        arithmetic: whose kernel computed it.
        vectors: inputs, constants, integers and outputs, in this order, then the accelerator's jobs.
        numbers: what `lower` decided beside the arrays.
        left_out: tensors that have no form in a file, with the reason.
    """

    index: int
    name: str
    identifier: str
    operator: str
    arithmetic: str
    vectors: tuple[Vector, ...]
    numbers: dict[str, Json]
    left_out: dict[str, str]


def selected_layers(graph: Graph, patterns: Sequence[str]) -> list[int]:
    """Return the nodes that patterns name: an index, a name or a glob of names, or an operator; all without patterns.

    Raises:
        OptionError: a pattern that matches no node.
    """
    chosen: set[int] = set()
    for pattern in patterns:
        found = [i for i, node in enumerate(graph.nodes) if _matches(pattern, i, node)]
        if not found:
            names = ", ".join(node.name for node in graph.nodes[:3])
            raise OptionError(
                f"layer pattern '{pattern}' matches no operator; give an index 0..{len(graph.nodes) - 1}, a name such "
                f"as {names}, a glob of names, or an operator"
            )
        chosen.update(found)
    return sorted(chosen) if patterns else list(range(len(graph.nodes)))


def _matches(pattern: str, index: int, node: Node) -> bool:
    if pattern.isdecimal():
        return int(pattern) == index
    return pattern.lower() == node.operator.lower() or fnmatchcase(node.name, pattern)


def collect(execution: Execution, samples: Samples, layers: Collection[int]) -> list[LayerVectors]:
    """Run the samples once, and return what the layers read, hold and write.

    Raises:
        InputError: samples that do not fit.
    """
    graph = execution.graph
    wanted = {t for i in layers for t in (*graph.nodes[i].inputs, *graph.nodes[i].outputs) if t != ABSENT}
    computed = tuple(sorted(t for t in wanted if graph.tensors[t].data is None and t not in graph.inputs))
    chunks = list(execution.iterate(samples, computed))
    values = {t: concatenate([chunk[t] for chunk in chunks]) for t in computed}
    values.update(zip(graph.inputs, execution.encode(samples.take(0, samples.count)), strict=True))
    identifiers = c_identifiers([node.name.lower() for node in graph.nodes])
    return [_layer(graph, i, identifiers[i], values) for i in sorted(layers)]


def _layer(graph: Graph, index: int, identifier: str, values: dict[int, Array]) -> LayerVectors:
    node = graph.nodes[index]
    found = integers_of(node.params)
    vectors: list[Vector] = []
    left_out: dict[str, str] = {}
    for role, t, name in _tensors(graph, node):
        tensor = graph.tensors[t]
        array = tensor.data if tensor.data is not None else values[t]
        affine = tensor.quantisation if isinstance(tensor.quantisation, Affine) else None
        if array.dtype.kind in "biuf":
            vectors.append(Vector(role, name, np.asarray(array), tensor.name, affine))
        else:
            left_out[name] = "its shape differs between samples, or its elements are no real numbers"
    vectors[len(vectors) - sum(v.role == "output" for v in vectors) :] = [
        *(Vector("integers", name, array) for name, array in found.arrays.items() if array.dtype.kind in "biuf"),
        *(v for v in vectors if v.role == "output"),
    ]
    if is_on_ne16(node):
        try:
            jobs = job_vectors(graph, index, values[node.inputs[0]], values[node.outputs[0]])
            vectors += [Vector("integers" if name == REGISTERS else "memory", name, a) for name, a in jobs.items()]
        except UnsupportedError as error:
            left_out["ne16_registers"] = str(error)
    arithmetic = node.arithmetic or ""
    return LayerVectors(
        index, node.name, identifier, node.operator, arithmetic, tuple(vectors), found.numbers, left_out
    )


def _tensors(graph: Graph, node: Node) -> list[tuple[str, int, str]]:
    found = []
    for position, t in enumerate(node.inputs):
        if t != ABSENT:
            role = "constant" if graph.tensors[t].data is not None else "input"
            found.append((role, t, f"{role}{position}"))
    return found + [("output", t, f"output{position}") for position, t in enumerate(node.outputs)]
