"""Functions of 8 bits as tables of 256 quantized values.

    y = T[x + 128]: CAST x to int32, ADD 128, GATHER from T

A function becomes a table if the runtime has no kernel for it, or if its kernel returns other integers for some x than
TFLite's. Both are run on all 256 values. A uint8 function is one of int8 between two QUANTIZE.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.passes.rewrite import constant
from tflq.converters.tflite_quantizer.rules import version_of
from tflq.converters.tflm.kernels import has_kernel
from tflq.converters.tflm.passes.signed import SIGN, as_int8
from tflq.errors import TflqError
from tflq.graph import Affine, Array, Attributes, DType, Graph, Node, Tensor
from tflq.graph.operators import CONVERSIONS, Trait, has_trait
from tflq.graph.rewriting import GraphEditor
from tflq.interpreter.execution.engine import Engine

_TYPES = (DType.INT8, DType.UINT8)


def tabulate_functions(editor: GraphEditor) -> None:
    """Replace functions of 8 bits without an equal kernel by tables."""
    for node in editor.nodes:
        if not has_trait(node, Trait.UNARY) or node.operator in CONVERSIONS:
            continue
        x, y = editor.tensors[node.inputs[0]], editor.tensors[node.outputs[0]]
        if x.dtype not in _TYPES or x.dtype is not y.dtype or not _are_affine(x, y):
            continue
        table = run_on_all_values(node, x, y, "tflite")
        signed = as_int8(x), as_int8(y)
        own = run_on_all_values(node, *signed, "tflm") if has_kernel(node.operator, DType.INT8) else None
        if table is not None and (own is None or not np.array_equal(_flip(table), _flip(own))):
            _replace_by_table(editor, node, _flip(table))


def run_on_all_values(node: Node, x: Tensor, y: Tensor, arithmetic: str) -> Array | None:
    """Return the quantized values of a function for all x, ascending; None if the arithmetic refuses it."""
    values = np.arange(x.dtype.minimum, x.dtype.maximum + 1).astype(x.dtype.storage)
    ends = [replace(t, shape=(values.size,), data=None, shape_signature=None) for t in (x, y)]
    graph = Graph(ends, [replace(node, inputs=(0,), outputs=(1,))], (0,), (1,))
    try:
        result = Engine(graph, arithmetic).run([values[None]])[1]
    except TflqError:
        return None
    return np.asarray(result[0])


def _are_affine(*tensors: Tensor) -> bool:
    return all(isinstance(t.quantization, Affine) and t.quantization.axis is None for t in tensors)


def _flip(values: Array) -> Array:
    """Return uint8 as int8, 128 less; int8 unchanged."""
    return values if values.dtype == np.int8 else (values ^ SIGN).view(np.int8)


def _replace_by_table(editor: GraphEditor, node: Node, table: Array) -> None:
    y = editor.tensors[node.outputs[0]]
    if y.dtype is DType.INT8:
        values, places = _add_places(editor, node, node.inputs[0], y, table)
        editor.replace(node, _gather(values, places, node.outputs[0], node.name))
        return
    inner = add_table(editor, node, node.inputs[0], y, table)
    editor.replace(node, Node("quantize", (inner,), node.outputs, name=node.name))


def add_table(editor: GraphEditor, before: Node, source: int, result: Tensor, table: Array) -> int:
    """Add T[x + 128] before a node and return its result, int8.

    Args:
        editor: Graph to change.
        before: Node that follows the table.
        source: Tensor x of int8 or uint8.
        result: Name, shape and quantization of the result.
        table: int8[256].
    """
    values, places = _add_places(editor, before, source, result, table)
    inner = editor.add_tensor(replace(as_int8(result), name=f"{result.name};int8;{places}"))
    editor.add(_gather(values, places, inner, f"{before.name}_table"), before=before)
    return inner


def _add_places(editor: GraphEditor, before: Node, source: int, result: Tensor, table: Array) -> tuple[int, int]:
    """Return the table and the places x + 128 as tensors."""
    source = _convert(editor, before, source)
    name = f"{result.name};{len(editor.tensors)}"
    codes = editor.add_tensor(Tensor(f"{name};codes", result.shape, DType.INT32))
    places = editor.add_tensor(Tensor(f"{name};places", result.shape, DType.INT32))
    offset = editor.add_tensor(constant(f"{name};128", np.array([128], np.int32)))
    types = Attributes({"in_data_type": "int8", "out_data_type": "int32"})
    editor.add(Node("cast", (source,), (codes,), types, f"{before.name}_codes"), before=before)
    plain = Attributes({"fused_activation_function": "none", "pot_scale_int16": True})
    editor.add(Node("add", (codes, offset), (places,), plain, f"{before.name}_places"), before=before)
    values = editor.add_tensor(constant(f"{name};table", table, as_int8(result).quantization))
    return values, places


def _gather(values: int, places: int, result: int, name: str) -> Node:
    attributes = Attributes({"axis": 0, "batch_dims": 0})
    return Node("gather", (values, places), (result,), attributes, name, version_of("gather", DType.INT8))


def _convert(editor: GraphEditor, before: Node, t: int) -> int:
    """Return a tensor of int8, by a QUANTIZE if `t` is uint8."""
    tensor = editor.tensors[t]
    signed = as_int8(tensor)
    if signed is tensor:
        return t
    result = editor.add_tensor(replace(signed, name=f"{tensor.name};int8;{len(editor.tensors)}"))
    editor.add(Node("quantize", (t,), (result,), name=f"{before.name}_signed"), before=before)
    return result


def rescale_operands(editor: GraphEditor) -> None:
    """Rescale the operands of uint8 concatenations, by QUANTIZE if it is equal, else by a table."""
    for node in editor.nodes_of("concatenation"):
        y = editor.tensors[node.outputs[0]]
        for position, t in enumerate(node.inputs):
            x = editor.tensors[t]
            if x.dtype is not DType.UINT8 or not _are_affine(x, y) or x.quantization == y.quantization:
                continue
            single = replace(node, attributes=node.attributes.updated(axis=0))
            table = run_on_all_values(single, x, y, "tflite")
            if table is not None:
                editor.set_input(node, position, _rescale(editor, node, t, replace(y, shape=x.shape), table))


def _rescale(editor: GraphEditor, before: Node, t: int, result: Tensor, table: Array) -> int:
    result = replace(result, name=f"{editor.tensors[t].name};rescaled{len(editor.tensors)}", data=None)
    node = Node("quantize", (t,), (), name=f"{before.name}_rescaled")
    own = run_on_all_values(node, as_int8(editor.tensors[t]), as_int8(result), "tflm")
    rescaled = editor.add_tensor(result)
    if own is None or not np.array_equal(own, _flip(table)):
        inner = add_table(editor, before, t, result, _flip(table))
        node = replace(node, inputs=(inner,))
    editor.add(replace(node, outputs=(rescaled,)), before=before)
    return rescaled
