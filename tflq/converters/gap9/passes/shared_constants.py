"""Constants with several readers: NNTool loses the scale for every reader but the first (17.34)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import FILTERS, departing
from tflq.converters.gap9.passes.constants import real_constant
from tflq.graph import Affine, Node, Range

_TOLERANCE = 1 / 127
SHARED = (
    "NNTool loses the scale of the constant that it shares with '{}', so the chip computes wrong results; write a copy "
    "of the constant for each reader (17.34)"
)


def copy_shared_constants(editor: Gap9Editor) -> None:
    """Give each later reader of shared weights or of a shared factor what NNTool gives it: the codes as real numbers.

    With numerics=exact the scale stays and the difference is noted. Probed on the live tool: 40 filters in 26 answers,
    3 products; this pass on zoo/mini/shared_weights and the feature pyramids of zoo/measured.
    """
    first: dict[int, Node] = {}
    for node in editor.nodes:
        for position, t in enumerate(node.inputs):
            if not _can_lose_scale(editor, node, position, t):
                continue
            owner = first.setdefault(t, node)
            if owner.name == node.name:
                continue
            current = editor.replace(
                editor.node(node.name), departing(editor.node(node.name), SHARED.format(owner.name))
            )
            if editor.is_vendor(node):
                editor.set_input(current, position, _add_bare_copy(editor, t))


def _can_lose_scale(editor: Gap9Editor, node: Node, position: int, t: int) -> bool:
    """Whether an operand is the constant weights of a filter, or the constant factor of a product.

    A factor about 1/6 belongs to a hard sigmoid, which has its own rule (17.10).
    """
    if t < 0 or not editor.tensors[t].is_constant or not isinstance(editor.tensors[t].quantization, Affine):
        return False
    if node.operator in FILTERS:
        return position == 1
    return node.operator == "mul" and abs(float(real_constant(editor.tensors[t]).flat[0]) - 1 / 6) > _TOLERANCE


def _add_bare_copy(editor: Gap9Editor, t: int) -> int:
    """Add a constant with the same codes, the scale 1 and the range of the codes."""
    stated = editor.tensors[t]
    assert stated.data is not None
    low, high = (np.array([end], np.float64) for end in (stated.data.min(), stated.data.max()))
    one = Affine.per_tensor(np.float64(1), 0, stated.affine.bits)
    return editor.add_tensor(replace(stated, name=f"{stated.name}_bare", quantization=one, range=Range(low, high)))
