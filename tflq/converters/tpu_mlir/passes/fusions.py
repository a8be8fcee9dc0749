"""What TPU-MLIR makes of several nodes before it reads the calibration table.

Source: docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.converters.passes.rewrite import constant
from tflq.converters.tpu_mlir.passes.forms import (
    Form,
    constant_of,
    form_of,
    is_channels_last,
    is_constant_first,
)
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Node
from tflq.graph.operators import CONVOLUTIONS, Trait
from tflq.graph.rewriting import (
    ANY,
    Constant,
    GraphEditor,
    Match,
    Value,
    find_matches,
    fused_activation,
    op,
    replace_root,
    rewrite,
)
from tflq.interpreter.operands.sliding_windows import window_of
from tflq.interpreter.operands.windows import window_of_node

Factors = NDArray[np.float32] | NDArray[np.float64]
MOST_GROWTH = 20
_WIDE = ("fully_connected", "batch_matmul", "layer_normalization")


_X = Value("x")
_PAIR = op("conv_2d", op("conv_2d", _X, name="first"), activation=ANY)
_CROPPED = op(Trait.CROP, op(CONVOLUTIONS, _X, name="host", activation=ANY))


def fuse_silu(editor: GraphEditor) -> None:
    """Replace x * logistic(x) by one operator `silu`, if the gate has no other reader."""
    pattern = op("mul", _X, op("logistic", _X, activation=ANY))
    rewrite(editor, pattern, lambda _, match: replace_root(match, "silu", "x"))


def fuse_softsign(editor: GraphEditor) -> None:
    """Replace x / (1 + |x|) by one operator `softsign`, if the inner tensors have no other reader."""
    rewrite(editor, op("div", _X, op("add", op("abs", _X), Constant("one", single=False))), _softsign)


def _softsign(_: GraphEditor, match: Match) -> Node | None:
    is_one = match.constants["one"].size and np.all(match.constants["one"] == 1)
    return replace_root(match, "softsign", "x") if is_one else None


def fold_constants(editor: GraphEditor) -> None:
    """Fold products and sums of one constant for each channel of an image into convolutions.

    Behind a convolution without activation, which nothing else reads, they go into its weights and bias, in float32,
    and so does a product with one number; elsewhere they are a 1x1 depthwise convolution, into which the next ones go.
    """
    for node in editor.nodes:
        factors = _scale_and_offset(editor, node)
        host = None if factors is None else _host(editor, node, is_rectified=False)
        if factors is None:
            continue
        if host is not None:
            _fold(editor, host, node, *factors, fused_activation(node))
        elif node.operator != "neg" and form_of(editor, node) is Form.CHANNEL:
            editor.replace(node, _depthwise(editor, node, *factors))


def merge_pointwise(editor: GraphEditor) -> None:
    """Merge a convolution of 1x1 into the next one, w = w2 w1 and b = b2 + w2 b1, in float32.

    Neither is padded or grouped, no activation between, and nothing else reads what is between; where the merged
    weights are more than 20 times the two, both stay.

    Source: docs/rules/tpu_mlir.md#convolutions-and-fully-connected-layers

    Raises:
        UnsupportedError: a stride of the first, which TPU-MLIR loses; a window of the second that is not square.
    """
    rewrite(editor, _PAIR, _merge)


def _merge(editor: GraphEditor, match: Match) -> Node | None:
    node, host = match.root, match.nodes["first"]
    if not _is_plain(editor, node) or not _is_plain(editor, host):
        return None
    (w1, b1), (w2, b2) = (filter_parameters(editor, n) for n in (host, node))
    outputs, inputs, window = len(w2), w1.shape[3], w2.shape[1:3]
    if w1.shape[1:3] != (1, 1) or outputs * inputs * prod(window) > MOST_GROWTH * (w2.size + w1.size):
        return None
    sides = (editor.shape(t)[1:3] for t in (host.inputs[0], node.inputs[0]))
    if len(set(sides)) > 1 or window[0] != window[1]:
        raise UnsupportedError(
            f"target tpu-mlir: {node.operator} {node.name}: the convolution of one pixel in front has a stride, or "
            f"its own window is not square; TPU-MLIR merges the two wrongly: put an activation between them"
        )
    weights = _in_order(w2.reshape(-1, w2.shape[3]), w1.reshape(len(w1), -1))
    terms = w2.transpose(0, 3, 1, 2).reshape(outputs, -1)  # input channels first, then rows and columns
    first = None if b1 is None else _in_order(terms, np.repeat(b1, prod(window))[:, None])[:, 0]
    bias = b2 if first is None else first if b2 is None else first + b2
    name = editor.tensors[node.inputs[1]].name
    given = (
        host.inputs[0],
        editor.add_tensor(constant(name, weights.reshape(outputs, *window, inputs))),
        ABSENT if bias is None else editor.add_tensor(constant(f"{name}_bias", bias.astype(np.float32))),
    )
    return replace(node, inputs=given)


def _in_order(rows: Singles, columns: Singles) -> Singles:
    """Return the product of two matrices, each sum in order and in float32."""
    total = np.zeros((rows.shape[0], columns.shape[1]), np.float32)
    for k in range(rows.shape[1]):
        total += rows[:, k, None] * columns[None, k]
    return total


def _is_plain(editor: GraphEditor, node: Node) -> bool:
    """Whether it is a convolution without groups and padding."""
    if node.operator != "conv_2d":
        return False
    x, weights = (editor.tensors[t].shape for t in node.inputs[:2])
    return weights[3] == x[3] and not any(window_of_node(node, x, weights).padding)


def filter_parameters(editor: GraphEditor, node: Node) -> tuple[Singles, Singles | None]:
    """Return weights and bias of a filter, which are constants; None where it has no bias."""
    found = []
    for t in (*node.inputs[1:], ABSENT)[:2]:
        data = None if t == ABSENT else editor.tensors[t].data
        found.append(None if data is None else data.astype(np.float32))
    assert found[0] is not None
    return found[0], found[1]


def fold_factors(editor: GraphEditor) -> None:
    """Fold products with one positive number into their producer, a convolution with a rectifier."""
    for node in editor.nodes:
        factors = _scale_and_offset(editor, node)
        if factors is None or node.operator == "neg" or form_of(editor, node) is not Form.SCALAR:
            continue
        host = _host(editor, node, is_rectified=True)
        if host is not None and fused_activation(node) == "none" and float(factors[0][0]) > 0:
            _fold(editor, host, node, *factors, fused_activation(host))


def _scale_and_offset(editor: GraphEditor, node: Node) -> tuple[Factors, Singles | None] | None:
    """Return c, d of a node x * c + d, one float32 for each channel, or one in all for a product without d.

    A quotient with one number is a product with its inverse in float64.
    """
    if node.operator == "neg":
        return np.array([-1], np.float32), None
    if node.operator not in ("add", "mul", "div") or form_of(editor, node) not in (Form.CHANNEL, Form.SCALAR):
        return None
    operand = constant_of(editor, node)
    assert operand is not None
    value = operand[0].reshape(-1)
    if node.operator == "add":
        return (np.ones_like(value), value) if form_of(editor, node) is Form.CHANNEL else None
    if node.operator == "div":
        if is_constant_first(editor, node) or not np.all(value):
            return None
        return (np.float32(1) / value if value.size > 1 else 1 / value.astype(np.float64)), None
    return value, None


def _host(editor: GraphEditor, node: Node, *, is_rectified: bool) -> Node | None:
    """Return the filter that writes a node's operand and takes its constant; None if it has another reader."""
    host = editor.writer(node.inputs[0])
    if host is None or editor.only_reader(node.inputs[0]) is None:
        return None
    is_number = node.operator == "neg" or form_of(editor, node) is Form.SCALAR
    if host.operator not in (*CONVOLUTIONS, *(("fully_connected",) if is_number else ())):
        return None
    return host if (fused_activation(host) != "none") == is_rectified else None


def _fold(editor: GraphEditor, host: Node, node: Node, scale: Factors, offset: Singles | None, activation: str) -> None:
    """Replace a node by its producer, a convolution, with weights w * c and bias b * c + d."""
    weights = editor.tensors[host.inputs[1]]
    assert weights.data is not None
    depthwise = host.operator == "depthwise_conv_2d"
    factor = scale if depthwise or scale.size == 1 else scale.reshape(-1, *(1,) * (weights.data.ndim - 1))
    channels = weights.shape[3 if depthwise else 0]
    old = filter_parameters(editor, host)[1]
    bias = np.zeros(channels, np.float32) if old is None else old
    total = (bias * scale + (np.float32(0) if offset is None else offset)).astype(np.float32)
    inputs = (
        host.inputs[0],
        editor.add_tensor(constant(weights.name, (weights.data.astype(np.float32) * factor).astype(np.float32))),
        ABSENT if old is None and offset is None else editor.add_tensor(constant(f"{weights.name}_bias", total)),
    )
    attributes = host.attributes.updated(fused_activation_function=activation)
    editor.replace(node, replace(node, operator=host.operator, inputs=inputs, attributes=attributes))
    editor.remove(host)


def _depthwise(editor: GraphEditor, node: Node, scale: Factors, offset: Singles | None) -> Node:
    if is_channels_last(node):
        raise UnsupportedError(
            f"target tpu-mlir: {node.operator} {node.name}: one number for each place along axis 1 of a tensor that is "
            f"no image in TPU-MLIR, which makes a convolution of it; write the constant in the tensor's full shape"
        )
    x, c = node.inputs
    name = editor.tensors[c].name
    inputs = (
        x,
        editor.add_tensor(constant(f"{name}_weights", scale.reshape(1, 1, 1, -1))),
        editor.add_tensor(constant(f"{name}_bias", np.zeros_like(scale) if offset is None else offset)),
    )
    attributes = node.attributes.updated(padding="valid", stride_h=1, stride_w=1, depth_multiplier=1)
    return replace(node, operator="depthwise_conv_2d", inputs=inputs, attributes=attributes)


def fold_crops(editor: GraphEditor) -> None:
    """Reduce the padding of convolutions of stride 1 if their only reader is a slice of their inside.

    No more may be cut off than the padding has rows and columns. A second slice after the first stays.
    """
    for match in list(find_matches(editor, _CROPPED)):
        host, cuts = match.nodes["host"], _cuts(editor, match.root)
        if cuts is None or [host.attributes.integer(f"stride_{side}", 1) for side in "hw"] != [1, 1]:
            continue
        _, height, width, _ = editor.shape(host.inputs[0])
        _, rows, columns, _ = editor.shape(host.inputs[1])
        padding = window_of(host.attributes, (height, width), (rows, columns)).padding
        left = tuple(p - c for p, c in zip(padding, cuts, strict=True))
        if min(left) >= 0:
            editor.remove(match.root)
            editor.change(host, outputs=match.root.outputs, explicit_padding=left)


def _cuts(editor: GraphEditor, node: Node) -> tuple[int, int, int, int] | None:
    """Return what a slice cuts off an image: top, bottom, left, right; None where it does something else."""
    old, new = (editor.tensors[t].shape for t in (node.inputs[0], node.outputs[0]))
    given = [editor.tensors[t].data for t in node.inputs[1:]]
    if len(new) != 4 or old[0] != new[0] or old[3] != new[3] or any(data is None for data in given):
        return None
    if node.operator == "strided_slice" and (given[2] != 1).any():  # type: ignore[union-attr]
        return None
    begin = np.asarray(given[0]).reshape(-1)
    if node.operator == "strided_slice":
        mask = node.attributes.integer("begin_mask", 0)
        begin = np.array([0 if mask >> axis & 1 else b % old[axis] for axis, b in enumerate(begin)])
    if len(begin) != 4:
        return None
    top, left = int(begin[1]), int(begin[2])
    return top, old[1] - new[1] - top, left, old[2] - new[2] - left


def fold_bias(editor: GraphEditor) -> None:
    """Replace x w, reshaped, + c, reshaped back, by x w + c, if each result has one reader and c is a constant.

    The sum's shape is that of the product behind a leading 1; or c has as many numbers as the sum, and a product or a
    normalization follows. In the first case TPU-MLIR calls the result as the sum, else as what shapes it back.
    """
    reshaped = op("reshape", op("fully_connected", _X, name="product"), name="between")
    biased = op("reshape", op("add", reshaped, Constant("c", single=False), name="sum", activation=ANY))
    for match in find_matches(editor, biased):
        total, host, data = match.nodes["sum"], match.nodes["product"], match.constants["c"]
        shape, old = (editor.shape(node.outputs[0]) for node in (total, match.root))
        wide = np.broadcast_to(data.astype(np.float32), shape).reshape(-1, old[-1])
        if filter_parameters(editor, host)[1] is not None or editor.shape(host.outputs[0]) != old:
            continue
        is_named_sum = shape == (1, *old)
        is_named_last = data.size == wide.size and any(
            n.operator in _WIDE for n in editor.readers(match.root.outputs[0])
        )
        if np.any(wide != wide[0]) or not (is_named_sum or is_named_last):
            continue
        c = editor.add_tensor(constant(editor.tensors[match.values["c"]].name, wide[0].copy()))
        attributes = host.attributes.updated(fused_activation_function=fused_activation(total))
        if is_named_sum:
            (t,) = outputs = total.outputs
            editor.tensors[t] = replace(editor.tensors[t], shape=old)
        else:
            outputs = match.root.outputs
            editor.remove(match.root)
        inputs = (*host.inputs[:2], c)
        editor.replace(
            total, replace(total, operator=host.operator, inputs=inputs, outputs=outputs, attributes=attributes)
        )
        editor.remove_unread([match.nodes["between"], host])
