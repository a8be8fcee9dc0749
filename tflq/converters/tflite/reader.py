"""Reads .tflite bytes into a model of neutral graphs."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import ModelExtra, NodeExtra
from tflq.converters.tflite.options import attributes_of
from tflq.converters.tflite.tensors import TensorReader
from tflq.errors import FormatError
from tflq.files import read_bytes
from tflq.graph import ABSENT, Graph, Model, Node, Signature, validate
from tflq.schemas import tflite as schema


def read_model(path: str | os.PathLike[str]) -> Model:
    """Read a .tflite file.

    Args:
        path: the file.

    Returns:
        The model; `source` is the path.

    Raises:
        InputError: the file is missing, empty or cannot be read.
        FormatError: it is no .tflite file, or a damaged one.
        GraphError: its operators contradict each other.
    """
    return model_from_bytes(read_bytes(path), os.fspath(path))


def model_from_bytes(data: bytes | memoryview, where: str = "model") -> Model:
    """Read a .tflite file from memory; `where` names it in messages. Raises as `read_model`."""
    table = schema.decode_model(data, where)
    buffers = table.buffers or []
    tensors = TensorReader(buffers)
    graphs = [_graph(table, i, tensors, where) for i in range(len(table.subgraphs or []))]
    if not graphs:
        raise FormatError(f"{where}: the file has no subgraph, a model has at least one")
    return Model(
        graphs=graphs,
        signatures=[_signature(s, graphs, where) for s in table.signature_defs or []],
        metadata={
            m.name or "": _content(buffers, m.buffer, f"{where}: metadata '{m.name}'") for m in table.metadata or []
        },
        description=table.description,
        version=table.version,
        source=where,
        extra=_model_extra(table, buffers, where),
    )


def _content(buffers: list[schema.Buffer], index: int, where: str) -> bytes:
    if not 0 <= index < len(buffers):
        raise FormatError(f"{where}: buffer {index} is out of range, buffers are 0..{len(buffers) - 1}")
    data = buffers[index].data
    return b"" if data is None else data.tobytes()


def _model_extra(table: schema.Model, buffers: list[schema.Buffer], where: str) -> ModelExtra | None:
    indices = [] if table.metadata_buffer is None else table.metadata_buffer.tolist()
    old = tuple(_content(buffers, i, f"{where}: metadata buffer {i}") for i in indices)
    files = table.associated_files
    extra = ModelExtra(
        old, table.external_buffer_groups, table.external_buffers, None if files is None else files.tobytes()
    )
    return None if extra == ModelExtra() else extra


def _signature(table: schema.SignatureDef, graphs: list[Graph], where: str) -> Signature:
    place = f"{where}: signature '{table.signature_key}'"
    if not 0 <= table.subgraph_index < len(graphs):
        raise FormatError(f"{place} names subgraph {table.subgraph_index}, subgraphs are 0..{len(graphs) - 1}")
    count = len(graphs[table.subgraph_index].tensors)
    maps = []
    for entries in (table.inputs, table.outputs):
        for entry in entries or []:
            if not 0 <= entry.tensor_index < count:
                raise FormatError(f"{place} names tensor {entry.tensor_index}, tensors are 0..{count - 1}")
        maps.append({entry.name or "": entry.tensor_index for entry in entries or []})
    return Signature(table.signature_key or "", table.subgraph_index, maps[0], maps[1])


def _graph(model: schema.Model, number: int, tensors: TensorReader, where: str) -> Graph:
    table = (model.subgraphs or [])[number]
    place = f"{where}: subgraph {number}"
    graph = Graph(
        tensors=[tensors.read(t, f"{place}: tensor {i} '{t.name}'") for i, t in enumerate(table.tensors or [])],
        nodes=[_node(model, operator, number, i, place) for i, operator in enumerate(table.operators or [])],
        inputs=_indices(table.inputs),
        outputs=_indices(table.outputs),
        name=table.name or "",
        extra=None if table.debug_metadata_index == -1 else table.debug_metadata_index,
    )
    _give_empty_constants(graph)
    validate(graph, place)
    return graph


def _give_empty_constants(graph: Graph) -> None:
    """Make tensors without elements that nobody writes constant: an empty value needs no buffer."""
    written = {t for node in graph.nodes for t in node.outputs} | set(graph.inputs)
    for i, tensor in enumerate(graph.tensors):
        if tensor.size == 0 and tensor.data is None and i not in written and not tensor.is_variable:
            graph.tensors[i] = replace(tensor, data=np.zeros(tensor.shape, tensor.dtype.storage))


def _node(model: schema.Model, operator: schema.Operator, graph: int, number: int, where: str) -> Node:
    codes = model.operator_codes or []
    if not 0 <= operator.opcode_index < len(codes):
        raise FormatError(
            f"{where}: operator {number} has opcode index {operator.opcode_index}, opcodes are 0..{len(codes) - 1}"
        )
    code = codes[operator.opcode_index]
    builtin = schema.builtin_code(code)
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    custom = operator.custom_options
    return Node(
        operator=builtin.name.lower(),
        inputs=_indices(operator.inputs),
        outputs=_indices(operator.outputs),
        attributes=attributes_of(options),
        name=f"{builtin.name}_{graph}_{number}",
        version=code.version,
        custom_code=code.custom_code,
        custom_options=None if custom is None else custom.tobytes(),
        extra=_node_extra(operator, options),
    )


def _node_extra(operator: schema.Operator, options: schema.Table | None) -> NodeExtra:
    mutating, intermediates = operator.mutating_variable_inputs, operator.intermediates
    return NodeExtra(
        options=type(options).__name__ if options is not None else "",
        mutating_variable_inputs=None if mutating is None else tuple(mutating.tolist()),
        intermediates=None if intermediates is None else tuple(intermediates.tolist()),
        debug_metadata_index=operator.debug_metadata_index,
    )


def _indices(vector: NDArray[np.int32] | None) -> tuple[int, ...]:
    return () if vector is None else tuple(ABSENT if i < 0 else i for i in vector.tolist())
