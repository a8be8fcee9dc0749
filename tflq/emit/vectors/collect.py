"""Runs samples and keeps what each layer reads and writes.

What `lower` decided for a node, as named arrays and numbers.

NE16's jobs as test vectors: registers, and memory before the first job and after the last
(docs/rules/gap9/ne16.md#jobs).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

import numpy as np

from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory, outputs_after_jobs
from tflq.converters.gap9.jobs.registers import NAMES
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Graph, Node
from tflq.graph.layer_names import matches_layer
from tflq.interpreter.execution.values import concatenate
from tflq.parallel.executions import Execution
from tflq.quoting import c_identifiers
from tflq.sampling import Samples
from tflq.schemas import Json

REGISTERS, BEFORE, OUTPUTS, AFTER = "ne16_registers", "ne16_before", "ne16_outputs", "ne16_after"


def job_vectors(graph: Graph, index: int, features: Array, output: Array) -> dict[str, Array]:
    """Return the arrays of a filter on NE16 by name.

    ne16_registers: uint32[jobs, 24]; ne16_before, ne16_after: uint8[S, size], memory from address 0 to the end of the
    output, before the first job and after the last. ne16_outputs, of layers with several jobs: uint8[S, jobs, bytes],
    memory from the output's address on after each job; nothing else changes. What is not written is 0. Outputs of 32
    bits are what the cluster clips: output0 is what the clip leaves.

    Args:
        graph: lowered.
        index: of the filter.
        features: uint8[S, ...], its input.
        output: [S, ...], its output.

    Raises:
        UnsupportedError: no job computes it.
    """
    memory = layer_memory(graph, index)
    registers = np.array([[job.get(name, 0) for name in NAMES] for job in memory.jobs], np.uint32)
    before = np.stack([_image(memory, sample) for sample in features])
    pairs = zip(features, output, strict=True)
    outputs = np.stack([np.stack(list(outputs_after_jobs(memory, x, y))) for x, y in pairs])
    after = before.copy()
    after[:, memory.at.output :] = outputs[:, -1]
    found = {REGISTERS: registers, BEFORE: before, AFTER: after}
    return found if len(registers) == 1 else {**found, OUTPUTS: outputs}


def _image(memory: LayerMemory, sample: Array) -> Array:
    image = np.zeros(memory.at.output + memory.output_bytes, np.uint8)
    image[: len(memory.constants)] = np.frombuffer(memory.constants, np.uint8)
    features = memory.features(sample).reshape(-1)
    image[memory.at.features : memory.at.features + features.size] = features
    return image


_OUR_OWN = ("tflq.interpreter.accumulate.", "tflq.interpreter.numerics.requantize")
"""Modules whose data only make tflq fast: prepared weights, proven float maps."""


@dataclass
class Integers:
    """A node's integers by dotted name.

    Attributes:
        arrays: multipliers, shifts, biases, tables; int64 as int32 where all values fit.
        numbers: zero points, bounds, strides, words.
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    numbers: dict[str, Json] = field(default_factory=dict)


def integers_of(value: object) -> Integers:
    """Return the fields of a node's dataclass; what stands in several places is named where it comes first.

    A node that is lowered at run time has its reason only.
    """
    found = Integers()
    seen: dict[int, object] = {}  # keeps the objects alive, so that no address is used twice
    for name, item in _walk("", value):
        if isinstance(item, np.ndarray):
            if item.dtype != object and id(item) not in seen:
                seen[id(item)] = item
                found.arrays[name] = _shrink_type(item)
        else:
            found.numbers[name] = _to_json(item)
    return found


def _walk(prefix: str, value: object, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, object]]:
    known = set(seen)
    for name, item in _parts(value):
        path = f"{prefix}.{name}" if prefix else name
        if _is_record(item) or _is_list_of_records(item):
            if id(item) not in known and not _is_our_own(item):
                known.add(id(item))
                yield from _walk(path, item, frozenset(known))
        elif item is not None:
            yield path, item


def _parts(value: object) -> list[tuple[str, object]]:
    """Return the fields of a dataclass, or the items of a tuple by their number."""
    if isinstance(value, tuple):
        return [(str(i), item) for i, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return []


def _is_record(item: object) -> bool:
    return is_dataclass(item) and not isinstance(item, type)


def _is_list_of_records(item: object) -> bool:
    return isinstance(item, tuple) and any(_is_record(i) or isinstance(i, (np.ndarray, tuple)) for i in item)


def _is_our_own(item: object) -> bool:
    return type(item).__module__.startswith(_OUR_OWN)


def _shrink_type(array: Array) -> Array:
    if array.dtype != np.int64 or (array.size and (array.min() < -(1 << 31) or array.max() >= 1 << 31)):
        return array
    return np.asarray(array.astype(np.int32))


def _to_json(value: object) -> Json:
    if isinstance(value, Enum):
        return str(value.value) if isinstance(value.value, str) else value.name.lower()
    if isinstance(value, np.generic):
        return _to_json(value.item())
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    return str(value)


@dataclass(frozen=True, eq=False)
class Vector:
    """One array of a layer.

    Attributes:
        role: "input", "constant", "integers", "output" or, of an accelerator's jobs, "memory".
        name: "input0", "constant1", "output0"; for integers the dotted name of the field.
        values: [S, *shape] of what is computed, [*shape] of what is fixed.
        tensor: name of the tensor; empty for integers.
        quantization: of the tensor, if it is affine.
    """

    role: str
    name: str
    values: Array
    tensor: str = ""
    quantization: Affine | None = None

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
        found = [i for i, node in enumerate(graph.nodes) if matches_layer(pattern, i, node.name, node.operator)]
        if not found:
            names = ", ".join(node.name for node in graph.nodes[:3])
            raise OptionError(
                f"layer pattern '{pattern}' matches no operator; give an index 0..{len(graph.nodes) - 1}, a name such "
                f"as {names}, a glob of names, or an operator"
            )
        chosen.update(found)
    return sorted(chosen) if patterns else list(range(len(graph.nodes)))


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
        affine = tensor.quantization if isinstance(tensor.quantization, Affine) else None
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
