"""The tensors of a delegate: a delegate returns outputs only, so every written tensor becomes an output of the file."""

from __future__ import annotations

import numpy as np

from tflq.schemas import tflite as schema


def with_written_tensors_as_outputs(content: bytes) -> bytes:
    """Return a .tflite file with all tensors that operators of its main graph write as outputs, without signatures.

    The outputs of the file stay first. Resources and variants are not listed.

    Raises:
        FormatError: damaged content.
    """
    model = schema.decode_model(content, "the model")
    graph = (model.subgraphs or [schema.SubGraph()])[0]
    tensors, hidden = graph.tensors or [], (schema.TensorType.RESOURCE, schema.TensorType.VARIANT)
    ends = [np.asarray(() if graph.outputs is None else graph.outputs)]
    ends += [np.asarray(operator.outputs) for operator in graph.operators or [] if operator.outputs is not None]
    listed = dict.fromkeys(int(t) for t in np.concatenate(ends) if t >= 0 and tensors[t].type not in hidden)
    graph.outputs = np.array(list(listed), np.int32)
    model.signature_defs = None
    return schema.encode_model(model)
