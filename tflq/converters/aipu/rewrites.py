"""What the Optimizer changes in the float graph before it quantizes (docs/rules/aipu/compass_ir.md).

Mul by one constant number becomes BatchNorm; Pow with one constant exponent becomes a function of its base; a MatMul
takes the number that it is multiplied by.

Source: Compass Optimizer, passes/merge_matmul_mul_s1.py and shrink_pow_exponent_s1.py.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.graph import Array, Attributes, DType, Graph, Node, Tensor
from tflq.graph.rewriting import GraphEditor, Pass, rewrite_graph
from tflq.interpreter.kernels.aipu.norms import WITHIN
from tflq.interpreter.kernels.aipu.pairs_by_table import EXPONENT
from tflq.interpreter.kernels.aipu.unweighted import FUSED_MULTIPLIER

CUT = "is_cut"
"""Own key of a Crop that was a product with a number: the Optimizer writes no is_perf_mode of it."""

MERGED = "is_merged"
"""Own key of a BatchNorm that was a Mul: it keeps the ordinary weight width."""


def rewrite(graph: Graph) -> Graph:
    """Return the graph with Mul and Pow by constants rewritten; constants that only they read are removed."""
    read = {t for node in graph.nodes for t in node.inputs}

    def remove_constants(editor: GraphEditor) -> None:
        editor.remove_unread(node for node in editor.nodes_of("constant") if node.outputs[0] in read)

    passes = (*_PASSES, Pass("remove_constants", remove_constants, "no layer reads them now", _SOURCE))
    return rewrite_graph(graph, passes, owner="aipu-optimizer")


def merge_factors(editor: GraphEditor) -> None:
    """Replace Mul by a number that is not an integer by BatchNorm of the last axis with a bias of 0."""
    for node in editor.nodes_of("mul"):
        position = next((i for i, t in enumerate(node.inputs) if editor.writer_of(t, "constant")), None)
        if position is None:
            continue
        place, x = node.inputs[position], editor.tensors[node.inputs[1 - position]]
        value = np.asarray(_constant(editor, place), np.float32)
        if editor.uses(place) != 1 or value.size != 1 or value == np.rint(value) or not x.shape:
            continue
        weights = np.full(x.shape[-1], value.item(), np.float32)
        constants = {"weights": weights, "biases": np.zeros_like(weights)}
        added = tuple(editor.add_tensor(_tensor(f"{node.name}/{key}", data)) for key, data in constants.items())
        inputs = (node.inputs[1 - position], *added)
        attributes = node.attributes.updated(axis=len(x.shape) - 1, epsilon=0, **{MERGED: True})
        editor.replace(node, replace(node, operator="batch_norm", inputs=inputs, attributes=attributes))


def state_exponents(editor: GraphEditor) -> None:
    """Give Pow the key exponent if all exponents are one constant number; its table is all that it needs."""
    for node in editor.nodes_of("pow"):
        value = _constant(editor, node.inputs[1])
        if value is not None and np.unique(value).size == 1:
            exponent = float(np.asarray(value, np.float32).reshape(-1)[0])
            changed = replace(node, attributes=node.attributes.updated(**{EXPONENT: exponent}), intermediates=None)
            editor.replace(node, changed)


def drop_intermediates(editor: GraphEditor) -> None:
    """Remove the internal tensors of LRN within a channel, which has none."""
    for node in editor.nodes_of("lrn"):
        if node.attributes.text("method") == WITHIN:
            editor.replace(node, replace(node, intermediates=None))


def merge_multipliers(editor: GraphEditor) -> None:
    """Let each MatMul multiply by the positive factor of its single reader, or else by the factors of its operands.

    The layer of the factor becomes a Crop of the whole tensor. Tensors between a MatMul and that layer are scaled then,
    so they have the range of the scaled product.
    """
    for product in editor.nodes_of("mat_mul"):
        if not _multiply_result(editor, product):
            _multiply_operands(editor, product)


def _multiply_result(editor: GraphEditor, product: Node) -> bool:
    """Move the factor after a MatMul into it; return True if the result has several readers or a number."""
    reader = _find_single_reader(editor, product.outputs[0])
    passed = [product.outputs[0]]
    while reader is not None and reader.operator in ("reshape", "transpose"):
        passed.append(reader.outputs[0])
        reader = _find_single_reader(editor, reader.outputs[0])
    if reader is None:
        return len(editor.readers(product.outputs[0])) != 1
    number = _positive_number(editor, reader, passed[-1])
    if number is None:
        return False
    _cut(editor, reader, passed[-1])
    for t in passed:
        editor.tensors[t] = replace(editor.tensors[t], range=editor.tensors[reader.outputs[0]].range)
    _multiply(editor, product, number)
    return True


def _multiply_operands(editor: GraphEditor, product: Node) -> None:
    """Move the numbers of both operands of a MatMul into it."""
    waiting, scaled = [t for t in product.inputs if editor.writer(t)], list[tuple[Node, float]]()
    while waiting:
        t = waiting.pop(0)
        before = editor.writer(t)
        if before is None or len(editor.readers(t)) != 1:
            continue
        if before.operator in ("reshape", "transpose"):
            waiting += [i for i in before.inputs[:1] if editor.writer(i)]
            continue
        is_norm = editor.writer_of(t, "batch_norm") is not None
        number = _positive_number(editor, before, before.inputs[0]) if is_norm else None
        if number is None:
            break
        scaled.append((before, number))
    for before, _ in scaled:
        _cut(editor, before, before.inputs[0])
    if scaled:
        number = float(np.prod([np.float32(m) for _, m in scaled], dtype=np.float32))
        _multiply(editor, product, number)


def _find_single_reader(editor: GraphEditor, t: int) -> Node | None:
    """Return the node that alone reads a tensor, whether it is an output or not."""
    readers = editor.readers(t)
    return readers[0] if len(readers) == 1 else None


def _positive_number(editor: GraphEditor, node: Node, x: int) -> float | None:
    """Return the one positive number by which a layer multiplies `x` and does nothing else; None for other layers.

    A Constant that other layers read too stays, and with it the Mul.
    """
    values: Array | None = None
    if node.operator == "batch_norm":
        weights, biases = (editor.tensors[t].data for t in node.inputs[1:3])
        if biases is not None and not np.any(biases):
            values = weights
    elif _is_product(node):
        other = next((t for t in node.inputs if t != x), x)
        values = _constant(editor, other)
        if len(editor.readers(other)) > 1 or editor.shape(node.outputs[0]) != editor.shape(x):
            return None
    if values is None or np.unique(values).size != 1:
        return None
    number = float(np.float32(np.asarray(values).reshape(-1)[0]))
    return number if number > 0 and node.attributes.get("with_activation", "NONE") == "NONE" else None


def _is_product(node: Node) -> bool:
    return node.operator == "mul" or (node.operator == "eltwise" and node.attributes.get("method") == "MUL")


def _cut(editor: GraphEditor, node: Node, x: int) -> None:
    crops = np.array([(0, n) for n in editor.shape(node.outputs[0])], np.int64)
    attributes = Attributes({"crops": crops, CUT: True})
    editor.replace(node, replace(node, operator="crop", inputs=(x,), attributes=attributes))


def _multiply(editor: GraphEditor, product: Node, number: float) -> None:
    editor.replace(product, replace(product, attributes=product.attributes.updated(**{FUSED_MULTIPLIER: number})))


def _constant(editor: GraphEditor, t: int) -> Array | None:
    """Return the value of a tensor that a Constant layer writes."""
    writer = editor.writer_of(t, "constant")
    return None if writer is None else editor.tensors[writer.inputs[0]].data


def _tensor(name: str, data: Array) -> Tensor:
    data.setflags(write=False)
    return Tensor(name, data.shape, DType.FLOAT32, data=data)


_SOURCE = "docs/rules/aipu/compass_ir.md"
_PASSES = (
    Pass("merge_factors", merge_factors, "a product with a number is BatchNorm", _SOURCE),
    Pass("state_exponents", state_exponents, "one exponent has a table", _SOURCE),
    Pass("drop_intermediates", drop_intermediates, "LRN within a channel has no internal tensors", _SOURCE),
    Pass("merge_multipliers", merge_multipliers, "the requantization of MatMul multiplies by a number", _SOURCE),
)
"""Rewrites of the Compass Optimizer before it quantizes."""
