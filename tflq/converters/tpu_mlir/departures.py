"""Where TPU-MLIR's result, which the chip computes, is not the right one: the faults of the tool that a network meets.

Source: docs/differences/tpu_mlir.md#faults-of-the-tool; the numbers are those of its list.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.converters.tpu_mlir.passes.constants import is_nearly_zero
from tflq.graph import Affine, DType, Graph, Node
from tflq.graph.operators import Trait, with_traits
from tflq.graph.rewriting import GraphEditor, fused_activation
from tflq.interpreter.kernels.tpu_mlir.scalars import ScalarParams
from tflq.interpreter.numerics.fixed_point import INT32_MIN


def departures_of(graph: Graph) -> dict[str, str]:
    """Return name of a node -> the fault of the tool that changes its result.

    Args:
        graph: Lowered graph.
    """
    editor = GraphEditor(graph)
    reasons = dict[str, str]()
    for node in graph.nodes:
        rules = (*_RULES.get(node.operator, ()), *_ALL)
        texts = [text for rule in rules if (text := rule(editor, node))]
        if texts:
            reasons[node.name] = "; ".join(texts)
    return reasons


def _zero_point(editor: GraphEditor, t: int) -> int:
    affine = editor.tensors[t].quantization
    return int(affine.zero_point[0]) if isinstance(affine, Affine) and affine.zero_point.size == 1 else 0


def _activations(editor: GraphEditor, node: Node) -> list[int]:
    return [t for t in node.inputs if t >= 0 and not editor.tensors[t].is_constant]


def _extreme(editor: GraphEditor, node: Node) -> str:
    operands = _activations(editor, node)
    number = node.params.number if isinstance(node.params, ScalarParams) else None
    if number == INT32_MIN and node.operator == "minimum":
        return "TPU-MLIR's number overflows to -2^31, so all results are 0: remove the MINIMUM (3)"
    if number is not None and node.attributes.boolean("asymmetric", False) and _zero_point(editor, operands[0]):
        return "TPU-MLIR does not add the zero point, so results are shifted: use mode=F16 (1)"
    types = {editor.tensors[t].quantization for t in (*operands, node.outputs[0])}
    is_integer = all(editor.tensors[t].dtype.is_integer for t in operands)
    if len(operands) == 2 and is_integer and len(types) > 1:
        return "TPU-MLIR compares quantized values of different scales, since an operand has another reader (2)"
    return ""


def _absolute(editor: GraphEditor, node: Node) -> str:
    shifted = _zero_point(editor, node.inputs[0])
    return f"TPU-MLIR ignores the zero point {shifted}: use mode=F16 (4)" if shifted else ""


def _quotient(editor: GraphEditor, node: Node) -> str:  # noqa: ARG001
    is_inverse = isinstance(node.params, ScalarParams) and node.params.position == 1
    return "TPU-MLIR's c / 0 is 0, not the largest value (5)" if is_inverse else ""


def _rectified_pool(editor: GraphEditor, node: Node) -> str:
    is_shifted = fused_activation(node) != "none" and _zero_point(editor, node.outputs[0]) != 0
    return "TPU-MLIR's fused rectifier compares with 0, not with the zero point (6)" if is_shifted else ""


def _padded_pool(editor: GraphEditor, node: Node) -> str:
    is_signed = any(node.attributes.integers("explicit_padding", ())) and _is_signed(editor, node.inputs[0])
    return "TPU-MLIR takes the zeros before it as padding, which never is the maximum (7)" if is_signed else ""


def _is_signed(editor: GraphEditor, t: int) -> bool:
    return editor.tensors[t].dtype is DType.INT8


def _padded_average(editor: GraphEditor, node: Node) -> str:
    is_padded = node.attributes.text("padding", "valid") == "same" and editor.tensors[node.inputs[0]].dtype.is_integer
    is_shifted = is_padded and _zero_point(editor, node.inputs[0]) != 0
    return "if a window leaves the image, TPU-MLIR averages padding, too (8)" if is_shifted else ""


def _convolution(editor: GraphEditor, node: Node) -> str:
    affine = editor.tensors[node.inputs[2 if node.operator == "transpose_conv" else 0]].quantization
    if not isinstance(affine, Affine) or not is_nearly_zero(affine):
        return ""
    return "the input is nearly 0: TPU-MLIR replaces its scale, and its products count too much; remove the layer (9)"


def _lost_rectifier(editor: GraphEditor, node: Node) -> str:  # noqa: ARG001
    is_lost = isinstance(node.params, ScalarParams) and fused_activation(node) != "none" and node.operator != "add"
    is_factor = is_lost and node.operator in ("mul", "div", "neg")
    return (
        "TPU-MLIR loses the rectifier after a product with one number, unless a type saturates it (10)"
        if is_factor
        else ""
    )


def _resize(editor: GraphEditor, node: Node) -> str:  # noqa: ARG001
    is_plain = not any(node.attributes.boolean(key, False) for key in ("half_pixel_centers", "align_corners"))
    return "TPU-MLIR resizes with half-pixel centers, which the model has not (11)" if is_plain else ""


def _clamp(editor: GraphEditor, node: Node) -> str:
    """A RELU6 whose table line exceeds 6 is not clamped at 6."""
    y = editor.tensors[node.outputs[0]]
    if (fused_activation(node) != "relu6" and node.operator != "relu6") or not isinstance(y.quantization, Affine):
        return ""
    largest = float(y.quantization.scale[0]) * (y.dtype.maximum - int(y.quantization.zero_point[0]))
    is_open = y.dtype.is_integer and largest > float(np.nextafter(np.float32(6), np.float32(9)))
    return f"TPU-MLIR does not store the limit 6: results reach {largest:.6g} (12)" if is_open else ""


_Rule = Callable[[GraphEditor, Node], str]
_ALL: tuple[_Rule, ...] = (_clamp,)
_RULES: dict[str, tuple[_Rule, ...]] = {
    **dict.fromkeys(("maximum", "minimum"), (_extreme,)),
    **dict.fromkeys(("mul", "neg"), (_lost_rectifier,)),
    "div": (_quotient, _lost_rectifier),
    "abs": (_absolute,),
    "max_pool_2d": (_rectified_pool, _padded_pool),
    "average_pool_2d": (_padded_average,),
    "resize_bilinear": (_resize,),
    **dict.fromkeys(with_traits(Trait.WEIGHTS) - {"fully_connected"}, (_convolution,)),
}
