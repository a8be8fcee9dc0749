"""ReLU6 times 1/6 is a hard sigmoid: one activation, which its filter fuses.

Source: docs/rules/gap9/operators.md#activations.
"""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import departing
from tflq.converters.gap9.passes.constants import real_constant
from tflq.converters.passes.rewrite import constant
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Attributes, Node
from tflq.graph.rewriting import Constant, Match, Value, find_matches, match, op

_TOLERANCE = 1 / 127
_LONE_RELU6 = op("relu6", Value("x"), name="relu6")
_PRODUCT = op("mul", _LONE_RELU6, Constant("factor"))
_SUM = op("add", Value("x"), Constant("three"))
_DEMANDING = {"quantize", "average_pool_2d"}
_ASKED = "NNTool fails on a hard sigmoid of three operators in a filter's fusion that is asked for another type (17.33)"
SHARED = "NNTool loses the scale of a constant that a hard sigmoid took before (17.10)"


def find_hard_sigmoids(editor: Gap9Editor) -> None:
    """Replace RELU6 and a product with one constant c, |c - 1/6| < 1/127, by HARD_SIGMOID.

    The product is the only reader of the ReLU6. Of several products with one constant the first is replaced, and NNTool
    loses the scale of the constant for all later ones: numerics=nntool multiplies by its quantized value. A further
    ReLU6 upstream, as the range of a filter implies it, is removed, too. An addition of one constant about 3 upstream
    belongs to it; most often TensorFlow's converter has folded that into the filter's bias, and the offset is 0.
    """
    used = set[int]()
    for place in find_matches(editor, _PRODUCT):
        product, factor = place.root, place.values["factor"]
        if not _is_about(editor, place, "factor", 1 / 6):
            continue
        if factor in used:
            if editor.is_vendor(product):
                _lose_scale(editor, product, factor)
            editor.change(product, departure=SHARED)
            continue
        used.add(factor)
        inner, source = list(place.inner), place.values["x"]
        name, offset = f"{product.name}_hsigmoid", 0.0
        while (writer := _only_read(editor, source)) is not None and writer.operator == "relu6":
            inner, source = [*inner, writer], writer.inputs[0]
        addition = None if writer is None else match(editor, writer, _SUM)
        if addition is not None and _is_about(editor, addition, "three", 3.0):
            inner, source = [*inner, addition.root], addition.values["x"]
            name, offset = f"{product.name}_fused_far_hsigmoid", 3.0
        attributes = Attributes({"layer": product.name, "offset": offset})
        editor.replace(product, Node("hard_sigmoid", (source,), product.outputs, attributes, name))
        editor.remove_unread(inner)


def refuse_asked_hard_sigmoids(editor: Gap9Editor) -> None:
    """Mark each hard sigmoid of three operators, in a filter's fusion, on which NNTool fails.

    It fails if the hard sigmoid writes uint8, or a Quantize node or an average pool reads it.

    Raises:
        UnsupportedError: with numerics=nntool.
    """
    for node in editor.nodes:
        if node.operator != "hard_sigmoid" or "fusion" not in node.attributes or node.attributes.real("offset") == 0:
            continue
        written = editor.tensors[node.outputs[0]].affine
        is_demanded = not _DEMANDING.isdisjoint(reader.operator for reader in editor.readers(node.outputs[0]))
        if not is_demanded and (written.signed or written.bits > 8):
            continue
        if editor.is_vendor(node):
            raise UnsupportedError(f"{editor.where(node)}: {_ASKED}; numerics=exact converts it")
        editor.replace(node, departing(node, _ASKED))


def _lose_scale(editor: Gap9Editor, product: Node, factor: int) -> None:
    """Replace the constant of a product by its quantized value with the scale 1."""
    stored = editor.tensors[factor]
    assert stored.data is not None
    bare = constant(f"{stored.name}_bare", stored.data, Affine.per_tensor(np.float64(1), 0))
    editor.set_input(product, product.inputs.index(factor), editor.add_tensor(bare))


def _only_read(editor: Gap9Editor, tensor: int) -> Node | None:
    """Return the writer of a tensor with a single reader; None without."""
    return editor.writer(tensor) if editor.only_reader(tensor) is not None else None


def _is_about(editor: Gap9Editor, place: Match, name: str, value: float) -> bool:
    stored = real_constant(editor.tensors[place.values[name]])
    return abs(float(stored.reshape(-1)[0]) - value) < _TOLERANCE
