"""TFLite_Detection_PostProcess of 8 bits as the float32 kernel on dequantized operands: its first step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.graph import ABSENT, Affine, DType, Node
from tflq.graph.float_view import dequantize
from tflq.graph.rewriting import GraphEditor

CODE = "TFLite_Detection_PostProcess"


def dequantize_detections(editor: GraphEditor) -> None:
    """Let the operator read float32."""
    for node in [node for node in editor.nodes if node.custom_code == CODE]:
        for position, t in enumerate(node.inputs):
            tensor = editor.tensors[t]
            if not isinstance(tensor.quantization, Affine) or tensor.dtype.is_floating:
                continue
            name = f"{tensor.name};float32"
            if tensor.data is not None:
                data = np.asarray(dequantize(tensor.data, tensor.quantization), np.float32)
                editor.set_input(node, position, editor.add_tensor(constant(name, data)))
                continue
            real = replace(tensor, name=name, dtype=DType.FLOAT32, quantization=None, extra=None)
            editor.insert_before(
                node, position, Node("dequantize", (ABSENT,), (), name=f"{node.name}_{position}"), real
            )
