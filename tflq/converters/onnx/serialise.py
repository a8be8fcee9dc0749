"""ONNX's protobuf, through the package `onnx`."""

from __future__ import annotations

import numpy as np

from tflq.converters.onnx.values import IR_VERSION, OPSET, OnnxGraph
from tflq.errors import MissingExtraError


def model_bytes(graph: OnnxGraph) -> bytes:
    """Return the file of a graph: opset 13, IR version 8.

    Raises:
        MissingExtraError: the package `onnx` is not installed.
    """
    try:
        from onnx import helper, numpy_helper
    except ImportError:
        raise MissingExtraError(
            "writing ONNX needs the package onnx, which is not installed: pip install 'tflq[onnx]'"
        ) from None
    nodes = []
    for node in graph.nodes:
        made = helper.make_node(node.op_type, node.inputs, node.outputs, name=node.outputs[0])
        made.attribute.extend(helper.make_attribute(key, value) for key, value in sorted(node.attributes.items()))
        nodes.append(made)
    inputs, outputs = (
        [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape) for v in vs]
        for vs in (graph.inputs, graph.outputs)
    )
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    whole = helper.make_graph(nodes, graph.name, inputs, outputs, constants)
    opset = helper.make_opsetid("", OPSET)
    model = helper.make_model(whole, producer_name="tflq", opset_imports=[opset], ir_version=IR_VERSION)
    content: bytes = model.SerializeToString(deterministic=True)
    return content
