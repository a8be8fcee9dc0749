"""SELECT_V2 of int32 as arithmetic: c ? a : b = b + c * (a - b), which wraps as int32 does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Attributes, DType, Node, Tensor
from tflq.graph.rewriting import GraphEditor

_OPERATORS = ("select", "select_v2")


def replace_integer_choices(editor: GraphEditor) -> None:
    """Replace choices between int32 tensors by CAST, SUB, MUL and ADD."""
    for node in editor.nodes_of(*_OPERATORS):
        condition, first, second = node.inputs
        result = editor.tensors[node.outputs[0]]
        shapes = [editor.shape(t) for t in node.inputs]
        if result.dtype is not DType.INT32 or np.broadcast_shapes(*shapes) != result.shape:
            continue
        chosen = _add(editor, node, "cast", (condition,), shapes[0], in_data_type="bool", out_data_type="int32")
        distance = _add(editor, node, "sub", (first, second), np.broadcast_shapes(*shapes[1:]))
        moved = _add(editor, node, "mul", (chosen, distance), result.shape)
        editor.replace(node, _build("add", (moved, second), node.outputs[0], node.name))


def _add(
    editor: GraphEditor, before: Node, operator: str, inputs: tuple[int, ...], shape: tuple[int, ...], **types: str
) -> int:
    name = f"{before.name}_{operator}"
    result = editor.add_tensor(Tensor(f"{editor.tensors[before.outputs[0]].name};{operator}", shape, DType.INT32))
    node = _build(operator, inputs, result, name)
    editor.add(replace(node, attributes=Attributes(types)) if types else node, before=before)
    return result


def _build(operator: str, inputs: tuple[int, ...], result: int, name: str) -> Node:
    options: dict[str, str | bool] = {"fused_activation_function": "none"}
    if operator != "mul":
        options["pot_scale_int16"] = True
    return Node(operator, inputs, (result,), Attributes(options), name)
