"""An ONNX graph as plain data, what its values are called, and its protobuf through the package onnx."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tflq.errors import MissingExtraError
from tflq.graph import Array, Graph
from tflq.quoting import Names

OnnxAttribute = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]

IR_VERSIONS = {13: 8, 14: 8, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
"""Opset -> the version of the file format that came with it, 8 at least."""
_REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd")


@dataclass(frozen=True)
class OnnxNode:
    """One node.

    Attributes:
        op_type: ONNX's name of the operator.
        inputs: names of values; empty for an optional one that is not given.
        outputs: names of values.
        attributes: name -> value.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, OnnxAttribute] = field(default_factory=dict)


@dataclass(frozen=True)
class OnnxValue:
    """A graph input or output.

    Attributes:
        name: of the value.
        shape: in ONNX's layout; an axis that is open has a name.
        dtype: numpy's name of the element type.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Nodes in order of execution, constants, inputs and outputs.

    Attributes:
        name: of the graph.
        nodes: in order of execution.
        constants: name -> value.
        inputs: in the model's order.
        outputs: in the model's order.
        values: tensor of the model -> name of the value that holds it.
        opset: version of the operators.
        first: tensors of the model that are computed with channels first, whatever layout outputs have.
        types: constant -> int4 or uint4, where it is stored so; the others have their array's type.
    """

    name: str
    nodes: tuple[OnnxNode, ...]
    constants: Mapping[str, Array]
    inputs: tuple[OnnxValue, ...]
    outputs: tuple[OnnxValue, ...]
    values: Mapping[int, str]
    opset: int = 13
    first: frozenset[int] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)

    @property
    def producers(self) -> dict[str, OnnxNode]:
        """Map each value to the node that writes it."""
        return {value: node for node in self.nodes for value in node.outputs}


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_]+")


def plain_name(name: str, index: int) -> str:
    """Return a tensor's name with letters, digits and underscores only.

    Of the names that TFLite's converter joins by semicolons the first one stays; an output number (":0") goes. So
    "model/activation/Relu;model/conv2d/BiasAdd" becomes model_activation_Relu.
    """
    first = re.sub(r":\d+$", "", name.split(";")[0])
    plain = _NOT_PLAIN.sub("_", first).strip("_")
    if not plain:
        return f"tensor_{index}"
    return plain if not plain[0].isdigit() else f"t_{plain}"


def tensor_names(graph: Graph, names: Names) -> dict[int, str]:
    """Return a name for each tensor: inputs and outputs first, then what is computed, constants last."""
    computed = [t for node in graph.nodes for t in node.outputs]
    order = dict.fromkeys([*graph.inputs, *graph.outputs, *computed, *range(len(graph.tensors))])
    return {t: names.fresh(plain_name(graph.tensors[t].name, t)) for t in order}


def model_bytes(graph: OnnxGraph) -> bytes:
    """Return the file of a graph, with the shapes of its values (value_info).

    Raises:
        MissingExtraError: the package `onnx` is not installed.
    """
    try:
        from onnx import TensorProto, helper, numpy_helper, shape_inference
    except ImportError:
        raise MissingExtraError(
            "writing ONNX needs the package onnx, which is not installed: pip install 'tflq[onnx]'"
        ) from None
    nodes, written = [], tuple(_of_opset(graph))
    for node in written:
        made = helper.make_node(node.op_type, node.inputs, node.outputs, name=node.outputs[0])
        for key, value in sorted(node.attributes.items()):
            number = helper.np_dtype_to_tensor_dtype(np.dtype(str(value))) if key == "to" else value
            made.attribute.append(helper.make_attribute(key, number))
        nodes.append(made)
    inputs, outputs = (
        [helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(np.dtype(v.dtype)), v.shape) for v in vs]
        for vs in (graph.inputs, graph.outputs)
    )
    read = {name for node in written for name in node.inputs}
    narrow = {"int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
    constants = [
        helper.make_tensor(name, narrow[graph.types[name]], value.shape, value.reshape(-1))
        if name in graph.types
        else numpy_helper.from_array(value, name)
        for name, value in graph.constants.items()
        if name in read
    ]
    whole = helper.make_graph(nodes, graph.name, inputs, outputs, constants)
    opset = helper.make_opsetid("", graph.opset)
    model = helper.make_model(whole, producer_name="tflq", opset_imports=[opset], ir_version=IR_VERSIONS[graph.opset])
    content: bytes = shape_inference.infer_shapes(model).SerializeToString(deterministic=True)
    return content


def _of_opset(graph: OnnxGraph) -> Iterator[OnnxNode]:
    """Yield the nodes as the opset has them: below 18 the axes of most reductions are attributes."""
    for node in graph.nodes:
        if node.op_type in _REDUCTIONS and graph.opset < 18:
            axes = tuple(int(a) for a in graph.constants[node.inputs[1]])
            yield replace(node, inputs=node.inputs[:1], attributes={**node.attributes, "axes": axes})
        elif node.op_type == "ScatterND" and graph.opset < 16:
            yield replace(node, attributes={})
        else:
            yield node
