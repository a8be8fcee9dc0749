"""The neutral graph: tensors, nodes, quantisation. Imports no other package of tflq."""

from __future__ import annotations

from tflq.arrays import Array
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.builder import GraphBuilder
from tflq.graph.cut import cut, find_tensor, pruned
from tflq.graph.dtypes import DType
from tflq.graph.float_view import dequantise, float_view
from tflq.graph.graph import ABSENT, Graph, Node, Operands, Tensor, validate
from tflq.graph.model import Model, Signature, with_graphs
from tflq.graph.quantisation import Affine, Blockwise, FakeQuantize, Logarithmic, Quantisation, Range

__all__ = [
    "ABSENT",
    "Affine",
    "Array",
    "Attribute",
    "Attributes",
    "Blockwise",
    "DType",
    "FakeQuantize",
    "Graph",
    "GraphBuilder",
    "Logarithmic",
    "Model",
    "Node",
    "Operands",
    "Quantisation",
    "Range",
    "Signature",
    "Tensor",
    "cut",
    "dequantise",
    "find_tensor",
    "float_view",
    "pruned",
    "validate",
    "with_graphs",
]
