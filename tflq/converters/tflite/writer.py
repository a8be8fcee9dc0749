"""Writes a model of neutral graphs as .tflite bytes."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import ModelExtra, NodeExtra, TensorExtra, is_still_sparse
from tflq.converters.tflite.options import options_of, tensor_type
from tflq.converters.tflite.tensors import encode_constant, write_quantization
from tflq.errors import GraphError
from tflq.files import write_bytes
from tflq.graph import Graph, Model, Node, Tensor
from tflq.schemas import tflite as schema


def write_model(model: Model | Graph, path: str | os.PathLike[str]) -> None:
    """Write a model, or a single graph, as a .tflite file; the file is whole or it is not there.

    Raises:
        GraphError: something in the graph has no form in TFLite.
        OutputError: the file cannot be written.
    """
    write_bytes(path, model_to_bytes(model))


def model_to_bytes(model: Model | Graph, external_buffers_above: int | None = None) -> bytes:
    """Return a model, or a single graph, as the bytes of a .tflite file.

    Args:
        model: what to write.
        external_buffers_above: constants of more bytes than this stand behind the flatbuffer (for files over 2 GB);
            None keeps all of them inside.

    Raises:
        GraphError: something in the graph has no form in TFLite.
    """
    return schema.encode_model(to_tables(Model([model]) if isinstance(model, Graph) else model), external_buffers_above)


def to_tables(model: Model) -> schema.Model:
    """Return a model as the tables of the file. Raises as `model_to_bytes`."""
    writer = _Writer()
    table = schema.Model(version=model.version)
    table.subgraphs = [writer.graph(graph) for graph in model.graphs]
    if model.description is not None:
        table.description = model.description
    if model.signatures:
        table.signature_defs = [
            schema.SignatureDef(
                signature_key=s.key, subgraph_index=s.graph, inputs=_maps(s.inputs), outputs=_maps(s.outputs)
            )
            for s in model.signatures
        ]
    shadowed = model.extra.shadowed_metadata if isinstance(model.extra, ModelExtra) else ()
    if model.metadata:
        entries = (*shadowed, *model.metadata.items())
        table.metadata = [schema.Metadata(name=name, buffer=writer.add_bytes(data)) for name, data in entries]
    if isinstance(model.extra, ModelExtra):
        if model.extra.metadata_buffer:
            table.metadata_buffer = np.array([writer.add_bytes(d) for d in model.extra.metadata_buffer], np.int32)
        table.external_buffer_groups = model.extra.external_buffer_groups
        table.external_buffers = model.extra.external_buffers
        if model.extra.trailing_bytes is not None:
            table.trailing_bytes = np.frombuffer(model.extra.trailing_bytes, np.uint8)
    table.operator_codes = writer.codes
    table.buffers = writer.buffers
    return table


def _maps(names: dict[str, int]) -> list[schema.TensorMap]:
    return [schema.TensorMap(name=name, tensor_index=index) for name, index in names.items()]


class _Writer:
    """Collects operator codes and buffers while the graphs are written; equal ones are shared."""

    def __init__(self) -> None:
        self.codes: list[schema.OperatorCode] = []
        self.buffers = [schema.Buffer()]
        self._code_numbers: dict[tuple[str, str | None, int], int] = {}
        self._buffer_numbers: dict[tuple[object, ...], int] = {}
        self._alive: list[object] = []

    def add_bytes(self, data: bytes) -> int:
        self.buffers.append(schema.Buffer(data=np.frombuffer(data, np.uint8)))
        return len(self.buffers) - 1

    def _add_once(self, owner: object, key: tuple[object, ...], encode: Callable[[], NDArray[np.uint8]]) -> int:
        """Return the buffer of this key; `owner` stays alive, so that no other object gets its address."""
        if key not in self._buffer_numbers:
            self._alive.append(owner)
            self.buffers.append(schema.Buffer(data=encode()))
            self._buffer_numbers[key] = len(self.buffers) - 1
        return self._buffer_numbers[key]

    def graph(self, graph: Graph) -> schema.SubGraph:
        table = schema.SubGraph(
            tensors=[self._tensor(t) for t in graph.tensors],
            inputs=np.array(graph.inputs, np.int32),
            outputs=np.array(graph.outputs, np.int32),
            operators=[self._operator(node) for node in graph.nodes],
            name=graph.name,
        )
        if isinstance(graph.extra, int):
            table.debug_metadata_index = graph.extra
        return table

    def _tensor(self, tensor: Tensor) -> schema.Tensor:
        sparse = is_still_sparse(tensor)
        table = schema.Tensor(
            shape=np.array(tensor.shape, np.int32), type=tensor_type(tensor.dtype), buffer=self._buffer(tensor, sparse)
        )
        table.name = tensor.name
        table.quantization = write_quantization(tensor)
        if tensor.is_variable:
            table.is_variable = True
        if tensor.has_rank:
            table.has_rank = True
        if tensor.shape_signature is not None:
            table.shape_signature = np.array(tensor.shape_signature, np.int32)
        if isinstance(tensor.extra, TensorExtra):
            table.variant_tensors = tensor.extra.variant_tensors
            if sparse or tensor.data is None:
                table.sparsity = tensor.extra.sparsity
            if tensor.extra.external_buffer:
                table.external_buffer = tensor.extra.external_buffer
        return table

    def _buffer(self, tensor: Tensor, sparse: bool) -> int:
        """Return the number of the buffer that holds a constant; one array in several tensors is written once."""
        data, extra = tensor.data, tensor.extra if isinstance(tensor.extra, TensorExtra) else TensorExtra()
        if data is None or data.size == 0:
            return 0
        values, dtype = extra.sparse_values, tensor.dtype
        if values is not None and sparse:
            return self._add_once(values, ("sparse", id(values)), lambda: np.frombuffer(values, np.uint8))
        packed = dtype.value if dtype.bits < 8 else ""
        key = (data.__array_interface__["data"][0], data.nbytes, packed, extra.surplus)
        return self._add_once(data, key, lambda: _with_surplus(encode_constant(data, dtype), extra.surplus))

    def _operator(self, node: Node) -> schema.Operator:
        extra = node.extra if isinstance(node.extra, NodeExtra) else None
        table = schema.Operator(
            opcode_index=self._code(node),
            inputs=np.array(node.inputs, np.int32),
            outputs=np.array(node.outputs, np.int32),
        )
        options = options_of(node, None if extra is None else extra.options)
        if isinstance(options, schema.BuiltinOptions2):
            table.builtin_options_2 = options
        elif isinstance(options, schema.BuiltinOptions):
            table.builtin_options = options
        if extra is not None and extra.second_options is not None:
            table.builtin_options_2 = extra.second_options
        if node.custom_options is not None:
            table.custom_options = np.frombuffer(node.custom_options, np.uint8)
        if node.intermediates is not None:
            table.intermediates = np.array(node.intermediates, np.int32)
        if extra is not None:
            _write_extra(table, extra)
        return table

    def _code(self, node: Node) -> int:
        key = (node.operator, node.custom_code, node.version)
        if key not in self._code_numbers:
            name = node.operator.upper()
            if name not in schema.BuiltinOperator.__members__:
                raise GraphError(f"node '{node.name}': operator {node.operator} does not exist in TFLite")
            code = schema.OperatorCode(version=node.version)
            schema.set_builtin_code(code, schema.BuiltinOperator[name])
            code.custom_code = node.custom_code
            self.codes.append(code)
            self._code_numbers[key] = len(self.codes) - 1
        return self._code_numbers[key]


def _with_surplus(value: NDArray[np.uint8], surplus: bytes) -> NDArray[np.uint8]:
    return np.concatenate([value, np.frombuffer(surplus, np.uint8)]) if surplus else value


def _write_extra(table: schema.Operator, extra: NodeExtra) -> None:
    if extra.mutating_variable_inputs is not None:
        table.mutating_variable_inputs = np.array(extra.mutating_variable_inputs, np.bool_)
    if extra.debug_metadata_index != -1:
        table.debug_metadata_index = extra.debug_metadata_index
