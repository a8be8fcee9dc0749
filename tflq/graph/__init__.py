"""The neutral graph: tensors, nodes, quantization. Imports no other package of tflq."""

from __future__ import annotations

from tflq.arrays import Array
from tflq.graph.attributes import Attribute, Attributes
from tflq.graph.builder import GraphBuilder
from tflq.graph.cut import cut, find_tensor, pruned
from tflq.graph.dtypes import DType
from tflq.graph.float_view import dequantize, float_view
from tflq.graph.graph import ABSENT, Graph, Node, Operands, Tensor, validate
from tflq.graph.model import Model, Signature, with_graphs
from tflq.graph.quantization import Affine, Blockwise, FakeQuantize, Logarithmic, Quantization, Range

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
    "Quantization",
    "Range",
    "Signature",
    "Tensor",
    "cut",
    "dequantize",
    "find_tensor",
    "float_view",
    "pruned",
    "validate",
    "with_graphs",
]

_OLD_NAMES = {"Quantisation": Quantization, "dequantise": dequantize}
"""Old spellings, until release 0.3."""


def __getattr__(name: str) -> object:
    try:
        return _OLD_NAMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
