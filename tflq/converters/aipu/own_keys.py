"""What a node is told beside the keys of its layer: widths of tables and multipliers, early shifts."""

from __future__ import annotations

from tflq.converters.aipu.layers import RULES
from tflq.converters.aipu.options import LayerOptions
from tflq.graph import Node
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.filter import REMAIN_SHIFT
from tflq.interpreter.kernels.aipu.softmax_fast import ADJUST, METHOD
from tflq.interpreter.kernels.aipu.stated import MULTIPLIER_BITS

TABLE_BITS = "lut_items_in_bits"
OWN_KEYS = (TABLE_BITS, REMAIN_SHIFT, MULTIPLIER_BITS, METHOD, ADJUST)
"""Keys that no file has in the place of attributes."""

_WITH_WIDTH = ("eltwise", "add", "sub", "mul", "mat_mul", "concat")


def own_keys(node: Node, asked: LayerOptions) -> dict[str, Attribute]:
    """Return the keys that a layer gets by what was asked of it.

    The multipliers of Concat are as wide as asked of its activations, though its codes are as wide as its branches.
    """
    keys: dict[str, Attribute] = {TABLE_BITS: asked.table_bits}
    is_linear = RULES[node.operator].is_linear
    if is_linear and asked.remain_shift is not None:
        keys[REMAIN_SHIFT] = asked.remain_shift
    width = asked.multiplier_bits or (asked.activation_bits if node.operator == "concat" else 0)
    is_leaky = node.attributes.get("method") == "LEAKYRELU"
    if width and (is_linear or is_leaky or node.operator in _WITH_WIDTH):
        keys[MULTIPLIER_BITS] = width
    return keys
