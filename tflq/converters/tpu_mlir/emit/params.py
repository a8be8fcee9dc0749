"""The integers that lowering decided, as JSON: type of each tensor, multiplier and shift of each layer."""

from __future__ import annotations

import json

from tflq.graph import Affine, Graph, Node, Tensor
from tflq.interpreter.kernels.tpu_mlir.leaky_relu import LeakyReluParams
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams
from tflq.interpreter.kernels.tpu_mlir.mul import MulParams
from tflq.interpreter.kernels.tpu_mlir.multiplier import Multiplier
from tflq.interpreter.kernels.tpu_mlir.pooling import AverageParams
from tflq.interpreter.kernels.tpu_mlir.prelu import PReluParams
from tflq.interpreter.kernels.tpu_mlir.quantize import QuantizeParams
from tflq.interpreter.kernels.tpu_mlir.sums import SumParams
from tflq.interpreter.layers.linear import ConvolutionLayer, ProductLayer
from tflq.interpreter.layers.pooling import AveragePool, Mean
from tflq.schemas.tpu_mlir import Json


def integers_of(node: Node) -> dict[str, Json]:
    """Return a lowered node's multiplier and rshift; pool_scale and pool_offset of an average in float32."""
    found = node.params
    if isinstance(found, (ConvolutionLayer, ProductLayer)) and isinstance(found.filter, FilterParams):
        return _rescale(found.filter.rescale)
    if isinstance(found, (AveragePool, Mean)) and isinstance(found.average, AverageParams):
        return _average(found.average)
    if isinstance(found, PReluParams):
        return {"rshift": found.shift} if found.slope.dtype.kind == "i" else {}
    if isinstance(found, (LeakyReluParams, MulParams, QuantizeParams, SumParams)) and found.rescale is not None:
        return _rescale(found.rescale)
    return {}


def integers_json(graph: Graph) -> bytes:
    """Return the file: for each tensor that a lowered graph computes its type, and the integers of its layer."""
    tensors = {
        graph.tensors[t].name: {**_type(graph.tensors[t]), **integers_of(node)}
        for node in graph.nodes
        for t in node.outputs
    }
    return (json.dumps({"tensors": tensors}, indent=1) + "\n").encode()


def _rescale(found: Multiplier) -> dict[str, Json]:
    if found.multiplier.size == 1:
        return {"multiplier": int(found.multiplier[0]), "rshift": int(found.shift[0])}
    return {"multiplier": [int(m) for m in found.multiplier], "rshift": [int(s) for s in found.shift]}


def _average(found: AverageParams) -> dict[str, Json]:
    if found.rescale is not None:
        return _rescale(found.rescale)
    return {"pool_scale": float(found.scale), "pool_offset": float(found.offset)}


def _type(tensor: Tensor) -> dict[str, Json]:
    affine = tensor.quantisation
    if not isinstance(affine, Affine):
        return {"type": tensor.dtype.value}
    return {"type": tensor.dtype.value, "scale": float(affine.scale[0]), "zero_point": int(affine.zero_point[0])}
