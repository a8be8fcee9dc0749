"""uint8 tensors as int8 tensors: floating-point values stay, quantized values and zero points are 128 less.

TensorFlow Lite Micro has no uint8 kernels except QUANTIZE and DEQUANTIZE. The inputs and outputs of the graph stay
uint8, with a QUANTIZE that subtracts or adds 128.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tflite_quantizer.rules import version_of
from tflq.graph import ABSENT, Affine, DType, Node, Tensor
from tflq.graph.operators import CONVERSIONS
from tflq.graph.rewriting import GraphEditor

SIGN = np.uint8(0x80)


def as_int8(tensor: Tensor) -> Tensor:
    """Return a uint8 tensor with affine quantization as int8; any other one unchanged."""
    if tensor.dtype is not DType.UINT8 or not isinstance(tensor.quantization, Affine):
        return tensor
    affine = tensor.quantization
    quantization = replace(affine, zero_point=affine.zero_point - 128, signed=True)
    if tensor.data is not None:
        data = (tensor.data ^ SIGN).view(np.int8)
        return replace(constant(tensor.name, data, quantization), shape=tensor.shape)
    return replace(tensor, dtype=DType.INT8, quantization=quantization, extra=None)


def store_as_int8(editor: GraphEditor) -> None:
    """Store the uint8 tensors of all operators but QUANTIZE and DEQUANTIZE as int8."""
    used: set[int] = set()
    for node in editor.nodes:
        if node.operator not in CONVERSIONS:
            used.update(t for t in (*node.inputs, *node.outputs) if t != ABSENT and _is_unsigned(editor.tensors[t]))
    for t in sorted(used):
        tensor = editor.tensors[t]
        editor.tensors[t] = as_int8(tensor)
        if t in editor.inputs:
            _convert_input(editor, t, tensor)
        if editor.is_output(t):
            _convert_output(editor, t, tensor)
    for node in editor.nodes:
        if not used.isdisjoint(node.outputs):
            editor.replace(node, replace(node, version=max(node.version, version_of(node.operator, DType.INT8))))


def _is_unsigned(tensor: Tensor) -> bool:
    return as_int8(tensor) is not tensor


def _convert_input(editor: GraphEditor, t: int, stated: Tensor) -> None:
    source = editor.add_tensor(stated)
    editor.tensors[t] = replace(editor.tensors[t], name=f"{stated.name};int8")
    editor.inputs = tuple(source if i == t else i for i in editor.inputs)
    first = editor.nodes[0] if editor.nodes else None
    editor.add(Node("quantize", (source,), (t,), name=f"QUANTIZE_{stated.name}"), before=first)


def _convert_output(editor: GraphEditor, t: int, stated: Tensor) -> None:
    result = editor.add_tensor(stated)
    editor.tensors[t] = replace(editor.tensors[t], name=f"{stated.name};int8")
    editor.set_outputs(result if i == t else i for i in editor.outputs)
    editor.add(Node("quantize", (t,), (result,), name=f"QUANTIZE_{stated.name}"))
