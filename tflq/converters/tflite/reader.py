"""Reads .tflite bytes into a model of neutral graphs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.converters.tflite.extras import ModelExtra, NodeExtra, TensorExtra
from tflq.converters.tflite.operand_counts import check_counts
from tflq.converters.tflite.options import attributes_of
from tflq.converters.tflite.tensors import TensorReader, count_of
from tflq.errors import FormatError, UnsupportedError
from tflq.files import Source, content_of, name_of_source, recognize_content
from tflq.graph import ABSENT, Graph, Model, Node, Signature, validate
from tflq.limits import Limits, Tally, apply_limits, current
from tflq.schemas import tflite as schema


def read_model(path: Source, limits: Limits | None = None) -> Model:
    """Read a .tflite file.

    Args:
        path: of the file; or its content, or the file opened for reading bytes.
        limits: on counts, nesting and memory; None for those in force (tflq/limits.py).

    Returns:
        The model; `source` is the path, or "model" where none is known.

    Raises:
        InputError: the file is missing, empty or cannot be read.
        FormatError: it is no .tflite file, or a damaged one.
        GraphError: its operators contradict each other.
        UnsupportedError: it is beyond a limit, or needs another file.
    """
    return model_from_bytes(content_of(path), name_of_source(path), limits)


def model_from_bytes(data: bytes | memoryview, where: str = "model", limits: Limits | None = None) -> Model:
    """Read a .tflite file from memory; `where` names it in messages. Raises as `read_model`."""
    with apply_limits(limits):
        _require_tflite(data, where)
        table = schema.decode_model(data, where)
        _require_counts(table, where)
        return _model(table, where)


def _require_tflite(data: bytes | memoryview, where: str) -> None:
    """Raise FormatError where the content is known to be another file's, and say which; damage is told later."""
    found = "" if bytes(data[4:8]) == b"TFL3" else recognize_content(data)
    if found:
        known = "tflq reads .tflite, OpenVINO's .xml with its .bin, and Compass' .txt with its .bin"
        raise FormatError(f"{where}: is {found}; {_CONVERT.get(found, known)}")


_KERAS = "tf.lite.TFLiteConverter.from_keras_model(keras.models.load_model(PATH)).convert() returns its content"
_CONVERT = {
    "an HDF5 file, as Keras writes .h5": _KERAS,
    "a .keras file": _KERAS,
    "an ONNX model": "`onnx2tf -i FILE.onnx` writes a .tflite",
    "a PyTorch file": "ai_edge_torch.convert(MODEL, SAMPLES).export(PATH) writes a .tflite",
}
"""Content of a file -> the way to a .tflite."""


def _require_counts(table: schema.Model, where: str) -> None:
    """Raise UnsupportedError where the file holds more of something than the limits allow."""
    allowed, subgraphs = current(), table.subgraphs or []
    allowed.require("max_subgraphs", len(subgraphs), f"{where}: subgraphs")
    allowed.require("max_tensors", sum(len(g.tensors or []) for g in subgraphs), f"{where}: tensors of all subgraphs")
    operators = sum(len(g.operators or []) for g in subgraphs)
    allowed.require("max_operators", operators, f"{where}: operators of all subgraphs")


def _model(table: schema.Model, where: str) -> Model:
    buffers = table.buffers or []
    tally = Tally()
    tensors = TensorReader(buffers, tally)
    metadata = [
        (m.name or "", _content(buffers, m.buffer, tally, f"{where}: metadata '{m.name}'"))
        for m in table.metadata or []
    ]
    shadowed = [i for i, (name, _) in enumerate(metadata) if name in (later for later, _ in metadata[i + 1 :])]
    graphs = [_graph(table, i, tensors, where) for i in range(len(table.subgraphs or []))]
    if not graphs:
        raise FormatError(f"{where}: the file has no subgraph; a model has at least one")
    return Model(
        graphs=graphs,
        signatures=_signatures(table, graphs, where),
        metadata=dict(entry for i, entry in enumerate(metadata) if i not in shadowed),
        description=table.description,
        version=table.version,
        source=where,
        extra=_model_extra(table, buffers, tally, tuple(metadata[i] for i in shadowed), where),
    )


def _content(buffers: list[schema.Buffer], index: int, tally: Tally, where: str) -> bytes:
    if not 0 <= index < len(buffers):
        raise FormatError(f"{where}: found buffer {index}; {count_of('buffers', len(buffers))}")
    data = buffers[index].data
    if data is None:
        return b""
    tally.add(data.size, where)
    return data.tobytes()


def _model_extra(
    table: schema.Model,
    buffers: list[schema.Buffer],
    tally: Tally,
    shadowed: tuple[tuple[str, bytes], ...],
    where: str,
) -> ModelExtra | None:
    indices = [] if table.metadata_buffer is None else table.metadata_buffer.tolist()
    files = table.trailing_bytes
    extra = ModelExtra(
        shadowed_metadata=shadowed,
        metadata_buffer=tuple(_content(buffers, i, tally, f"{where}: metadata buffer {i}") for i in indices),
        external_buffer_groups=table.external_buffer_groups,
        external_buffers=table.external_buffers,
        trailing_bytes=None if files is None else files.tobytes(),
    )
    return None if extra == ModelExtra() else extra


def _signatures(table: schema.Model, graphs: list[Graph], where: str) -> list[Signature]:
    signatures: dict[str, Signature] = {}
    for definition in table.signature_defs or []:
        signature = _signature(definition, graphs, f"{where}: signature '{definition.signature_key or ''}'")
        if signature.key in signatures:
            raise FormatError(f"{where}: two signatures have the key '{signature.key}'; keys must be unique")
        signatures[signature.key] = signature
    return list(signatures.values())


def _signature(table: schema.SignatureDef, graphs: list[Graph], where: str) -> Signature:
    if not 0 <= table.subgraph_index < len(graphs):
        raise FormatError(f"{where}: found subgraph {table.subgraph_index}; {count_of('subgraphs', len(graphs))}")
    if table.signature_key is None:
        raise FormatError(f"{where}: has no key; signatures need one")
    count = len(graphs[table.subgraph_index].tensors)
    inputs, outputs = (_names(entries or [], count, where) for entries in (table.inputs, table.outputs))
    return Signature(table.signature_key or "", table.subgraph_index, inputs, outputs)


def _names(entries: list[schema.TensorMap], count: int, where: str) -> dict[str, int]:
    names: dict[str, int] = {}
    for entry in entries:
        name = entry.name or ""
        if not 0 <= entry.tensor_index < count:
            raise FormatError(f"{where}: '{name}' is tensor {entry.tensor_index}; {count_of('tensors', count)}")
        if name in names:
            raise FormatError(f"{where}: two inputs or two outputs have the name '{name}'; names must be unique")
        names[name] = entry.tensor_index
    return names


def _graph(model: schema.Model, number: int, tensors: TensorReader, where: str) -> Graph:
    table = (model.subgraphs or [])[number]
    place = f"{where}: subgraph {number}"
    graph = Graph(
        tensors=[tensors.read(t, f"{place}: tensor {i} '{t.name or ''}'") for i, t in enumerate(table.tensors or [])],
        nodes=[_node(model, operator, number, i, place) for i, operator in enumerate(table.operators or [])],
        inputs=_indices(table.inputs, f"{place}: inputs"),
        outputs=_indices(table.outputs, f"{place}: outputs"),
        name=table.name or "",
        extra=None if table.debug_metadata_index == -1 else table.debug_metadata_index,
    )
    _give_empty_constants(graph)
    _refuse_other_files(graph, place)
    validate(graph, place)
    return graph


def _give_empty_constants(graph: Graph) -> None:
    """Make tensors without elements that nobody writes constant: an empty value needs no buffer."""
    written = {t for node in graph.nodes for t in node.outputs} | set(graph.inputs)
    for i, tensor in enumerate(graph.tensors):
        if tensor.size == 0 and tensor.data is None and i not in written and not tensor.is_variable:
            graph.tensors[i] = replace(tensor, data=np.zeros(tensor.shape, tensor.dtype.storage))


def _refuse_other_files(graph: Graph, where: str) -> None:
    for i, tensor in enumerate(graph.tensors):
        if tensor.data is None and isinstance(tensor.extra, TensorExtra) and tensor.extra.external_buffer:
            raise UnsupportedError(
                f"{where}: tensor {i} '{tensor.name}': its value is external buffer {tensor.extra.external_buffer}, in "
                f"another file; constants must stand in the .tflite file itself"
            )


def _node(model: schema.Model, operator: schema.Operator, graph: int, number: int, where: str) -> Node:
    codes = model.operator_codes or []
    place = f"{where}: operator {number}"
    if not 0 <= operator.opcode_index < len(codes):
        raise FormatError(
            f"{place}: found opcode index {operator.opcode_index}; {count_of('operator codes', len(codes))}"
        )
    code = codes[operator.opcode_index]
    builtin = schema.builtin_code(code)
    if builtin is schema.BuiltinOperator.CUSTOM and not code.custom_code:
        raise FormatError(f"{place}: is a custom operator without a name; operator codes of kind CUSTOM need one")
    options = operator.builtin_options if operator.builtin_options is not None else operator.builtin_options_2
    custom = operator.custom_options
    node = Node(
        operator=builtin.name.lower(),
        inputs=_indices(operator.inputs, f"{place} ({builtin.name}): inputs"),
        outputs=_indices(operator.outputs, f"{place} ({builtin.name}): outputs"),
        attributes=attributes_of(options, builtin.name.lower()),
        name=f"{builtin.name}_{graph}_{number}",
        version=code.version,
        custom_code=code.custom_code,
        custom_options=None if custom is None else custom.tobytes(),
        extra=_node_extra(operator, options),
        intermediates=None if operator.intermediates is None else tuple(operator.intermediates.tolist()),
    )
    check_counts(node, f"{place} ({builtin.name})")
    return node


def _node_extra(operator: schema.Operator, options: schema.Table | None) -> NodeExtra:
    mutating = operator.mutating_variable_inputs
    second = operator.builtin_options_2
    return NodeExtra(
        options=type(options).__name__ if options is not None else "",
        second_options=second if second is not options else None,
        mutating_variable_inputs=None if mutating is None else tuple(mutating.tolist()),
        debug_metadata_index=operator.debug_metadata_index,
    )


def _indices(vector: NDArray[np.int32] | None, where: str) -> tuple[int, ...]:
    indices = () if vector is None else tuple(vector.tolist())
    if min(indices, default=0) < ABSENT:
        raise FormatError(f"{where}: found tensor {min(indices)}; tensors count from 0, {ABSENT} means none")
    return indices
