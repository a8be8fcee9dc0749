"""The tensors of a delegate: a delegate returns outputs only, so every written tensor becomes an output of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.schemas import tflite as schema

_HIDDEN = (schema.TensorType.RESOURCE, schema.TensorType.VARIANT)


def with_written_tensors_as_outputs(content: bytes) -> bytes:
    """Return a .tflite file with the tensors that operators of its main graph write as outputs, without signatures.

    The outputs of the file stay first. Not listed: resources, variants, and tensors that follow from constants only,
    which a delegate does not write.

    Raises:
        FormatError: damaged content.
    """
    model = schema.decode_model(content, "the model")
    graph = (model.subgraphs or [schema.SubGraph()])[0]
    tensors, known = graph.tensors or [], _constants(model, graph)
    listed = dict.fromkeys(_indices(graph.outputs))
    for operator in graph.operators or []:
        sources, results = _indices(operator.inputs), _indices(operator.outputs)
        if sources and known.issuperset(sources):
            known.update(results)
        listed.update(dict.fromkeys(t for t in results if t not in known and tensors[t].type not in _HIDDEN))
    graph.outputs = np.array(list(listed), np.int32)
    model.signature_defs = None
    return schema.encode_model(model)


def _constants(model: schema.Model, graph: schema.SubGraph) -> set[int]:
    buffers = model.buffers or []
    data = [buffers[tensor.buffer].data for tensor in graph.tensors or []]
    return {t for t, values in enumerate(data) if values is not None and len(values)}


def _indices(indices: Sequence[int] | np.ndarray | None) -> list[int]:
    return [] if indices is None else [int(t) for t in indices if t >= 0]
