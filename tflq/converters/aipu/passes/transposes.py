"""Transpose: how they meet and vanish, and what takes them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from tflq.converters.aipu.passes.layers import Layers
from tflq.graph import Node


def perm_of(node: Node) -> tuple[int, ...]:
    """Return the order of the axes of a Transpose."""
    return tuple(int(v) for v in np.asarray(node.attributes["perm"]).reshape(-1))


def merge_transposes(layers: Layers) -> None:
    """Transpose of Transpose is one."""
    changed = True
    while changed:
        changed = False
        for node in layers.nodes_of("transpose"):
            before = layers.writer_of(node.inputs[0], "transpose")
            if before is not None:
                perm = tuple(perm_of(before)[a] for a in perm_of(node))
                layers.become(node, "transpose", before.inputs, {"perm": perm})
                changed = True
        layers.remove_dead()


def drop_transposes(layers: Layers) -> None:
    """A Transpose that only moves axes of size 1, in front of a Reshape that alone reads it, goes."""
    for node in layers.nodes_of("reshape"):
        before = layers.writer_of(node.inputs[0], "transpose")
        if before is None or layers.uses(before.outputs[0]) != 1:
            continue
        if _moves_ones(layers.shape(before.inputs[0]), perm_of(before)):
            layers.remove(before)
            layers.change(node, inputs=before.inputs)
    layers.remove_dead()


def _moves_ones(shape: Sequence[int], perm: Sequence[int]) -> bool:
    """Whether the axes of more than one element keep their order."""
    return all(a < b for a, b in pairwise(axis for axis in perm if shape[axis] != 1))


def convert_transposes(layers: Layers) -> None:
    """A Transpose that only moves axes of size 1 is a Reshape."""
    for node in layers.nodes_of("transpose"):
        if 1 in layers.shape(node.inputs[0]):
            shape = layers.shape(node.inputs[0])
            if _moves_ones(shape, perm_of(node)):
                layers.become(node, "reshape", node.inputs, {"shape": layers.shape(node.outputs[0])})


_LAYOUTS = ((0, 2, 3, 1), (0, 3, 1, 2))
"""Order of the axes from channels first to channels last, and back."""


def convert_abnormal_reshapes(layers: Layers) -> None:
    """Let a Reshape of an image to the shape of the other layout be a Transpose, if no element moves.

    The Parser does so with any elements: [1,4,4,16] to [1,16,4,4] gets perm [0,3,1,2]. Other elements then follow each
    other; tflq keeps the Reshape and names it, unless the Parser's faults are requested.

    Source: Compass Parser, middle_passes.py, convert_abnormal_reshape.
    """
    for node in layers.nodes_of("reshape"):
        old, new = layers.shape(node.inputs[0]), layers.shape(node.outputs[0])
        if len(old) != 4 or old == new or 1 not in old:
            continue
        perm = next((p for p in _LAYOUTS if tuple(old[a] for a in p) == new), None)
        if perm is None:
            continue
        if layers.faults or _moves_ones(old, perm):
            layers.become(node, "transpose", node.inputs, {"perm": perm})
        else:
            layers.departures[node.name] = (
                f"stays a Reshape; the Parser takes {list(old)} to {list(new)} for a change of layout and writes a "
                f"Transpose, which exchanges elements: parser_faults=true gives its files"
            )


def narrow_transposes(layers: Layers) -> None:
    """Let a Transpose of six axes that keeps a batch of 1 move the other five, between two Reshapes.

    Source: Compass Parser, middle_passes.py, convert_special_6d_transpose.
    """
    for node in layers.nodes_of("transpose"):
        perm, shape = perm_of(node), layers.shape(node.inputs[0])
        if len(perm) != 6 or perm[0] != 0 or shape[0] != 1:
            continue
        whole = layers.shape(node.outputs[0])
        node = layers.insert_layer_before(node, 0, "reshape", "_post_reshape", shape[1:], shape=shape[1:])
        node = layers.insert_layer_after(node, "reshape", "_post_reshape", whole[1:], shape=whole)
        layers.change(node, perm=tuple(axis - 1 for axis in perm[1:]))


def convert_reshapes(layers: Layers) -> None:
    """A Reshape beside a Transpose that exchanges an axis with one of size 1 is a Transpose."""
    for node in layers.nodes_of("reshape"):
        reader, before = layers.only_reader(node.outputs[0]), layers.writer(node.inputs[0])
        if reader is None or before is None or "transpose" not in (reader.operator, before.operator):
            continue
        if node.name in layers.shapeless:
            continue
        old, new = layers.shape(node.inputs[0]), layers.shape(node.outputs[0])
        if len(old) != len(new):
            continue
        changed = [a for a in range(len(old)) if old[a] != new[a]]
        large = [[a for a in changed if shape[a] != 1] for shape in (old, new)]
        if len(changed) != 2 or len(large[0]) != 1 or len(large[1]) != 1:
            continue
        if all(old[a] == 1 for a in range(changed[0] + 1, changed[1])):
            perm = list(range(len(old)))
            perm[large[1][0]], perm[large[0][0]] = large[0][0], large[1][0]
            layers.become(node, "transpose", node.inputs, {"perm": tuple(perm)})


def sink_transposes(layers: Layers) -> None:
    """A Transpose in front of a Reshape that only splits or joins axes that lay side by side goes behind it."""
    for node in layers.nodes_of("reshape"):
        before = layers.writer_of(node.inputs[0], "transpose")
        if before is None or layers.uses(node.outputs[0]) != 1:
            continue
        if layers.uses(before.outputs[0]) == 1 and layers.is_output(node.outputs[0]):
            continue
        found = _sunk(layers.shape(before.inputs[0]), perm_of(before), layers.shape(node.outputs[0]))
        if found is None:
            continue
        shape, perm = found
        top = layers.reshaped(before.inputs[0], shape)
        old = node.outputs[0]
        layers.become(node, "reshape", before.inputs, {"shape": shape}, outputs=(top,))
        layers.add_layer(node, f"{node.name}_post_trans", "transpose", (top,), old, perm=perm)
    layers.remove_dead()


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return which axes become which, where they change: the smallest groups of one product, from the front."""
    found, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        ours, theirs = [i], [j]
        a, b = old[i], new[j]
        while a != b:
            if a < b:
                i += 1
                ours.append(i)
                a *= old[i]
            else:
                j += 1
                theirs.append(j)
                b *= new[j]
        if len(ours) > 1 or len(theirs) > 1:
            found.append((tuple(ours), tuple(theirs)))
        i, j = i + 1, j + 1
    if i < len(old):
        found.append((tuple(range(i - 1, len(old))), (len(new) - 1,)))
    if j < len(new):
        found.append(((len(old) - 1,), tuple(range(j - 1, len(new)))))
    return found


def _sunk(
    shape: tuple[int, ...], perm: tuple[int, ...], new: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the shape of the Reshape that stands in front, and the order of the axes behind it."""
    old = tuple(shape[a] for a in perm)
    groups = _groups(old, new)
    if old == new or not groups:
        return None
    starts: dict[int, tuple[int, ...]] = {}
    inside: set[int] = set()
    for ours, theirs in groups:
        axes = [perm[a] for a in ours]
        if any(b - a != 1 for a, b in pairwise(axes)):
            return None
        starts[axes[0]] = tuple(new[a] for a in theirs)
        inside.update(axes[1:])
    sizes, places = list[int](), dict[int, tuple[int, ...]]()
    for axis, size in enumerate(shape):
        if axis not in inside:
            parts = starts.get(axis, (size,))
            places[axis] = tuple(range(len(sizes), len(sizes) + len(parts)))
            sizes += parts
    order = tuple(p for axis in perm if axis not in inside for p in places[axis])
    return (tuple(sizes), order) if tuple(sizes[a] for a in order) == new else None


def fold_transposes(layers: Layers) -> None:
    """A Transpose of the last two axes in front of MatMul is its key trans_a or trans_b."""
    for node in layers.nodes_of("mat_mul"):
        for place, key in enumerate(("trans_a", "trans_b")):
            current = layers.node(node.name)
            before = layers.writer_of(current.inputs[place], "transpose")
            rank = len(layers.shape(current.inputs[place]))
            turned = (*range(rank - 2), rank - 1, rank - 2)
            if before is not None and perm_of(before) == turned:
                flipped = current.attributes.updated(**{key: not current.attributes.boolean(key)})
                layers.replace(current, replace(current, attributes=flipped))
                layers.set_input(current, place, before.inputs[0])
    layers.remove_dead()
