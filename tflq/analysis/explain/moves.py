"""Operators that only move data: which element the result is a copy of."""

from __future__ import annotations

import numpy as np

from tflq.analysis.explain.steps import Computed, Element, Trace
from tflq.interpreter.registry import kernel, kernel_name

_FIRST = 1 << 40
"""Elements are numbered from here on, so that a filling (a pad's zero point) is no number of an element."""


def explain_move(element: Element) -> Computed:
    """Explain a move: the kernel itself runs on numbered elements; the number that arrives names the source."""
    trace, start = Trace(), _FIRST
    numbered: list[np.ndarray | None] = []
    moved = _moved_inputs(element)
    for position, x in enumerate(element.inputs):
        if x is None or position not in moved:
            numbered.append(None if x is None else x[None])
            continue
        numbered.append(np.arange(start, start + x.size, dtype=np.int64).reshape(1, *x.shape))
        start += x.size
    run = kernel(element.node.arithmetic or "", kernel_name(element.node)).run
    number = int(run(element.node.params, *numbered)[element.output][0][element.index])
    if number < _FIRST:
        trace.add("stored value", "filled in by the operator", number)
        return trace.done()
    offset = number - _FIRST
    for position in moved:
        x = element.input(position)
        if offset < x.size:
            place = tuple(int(i) for i in np.unravel_index(offset, x.shape))
            name = element.operands.input(position).name
            trace.add("stored value", f"copy of '{name}' {list(place)}", x[place].item())
            return trace.done((position, place))
        offset -= x.size
    raise AssertionError("a number that no element has")


def _moved_inputs(element: Element) -> list[int]:
    """Return the inputs whose elements move; others are shapes, axes and indices."""
    output = element.operands.output(element.output).dtype
    many = element.node.operator in ("concatenation", "pack")
    present = [p for p, x in enumerate(element.inputs) if x is not None]
    if many:
        return present
    return [p for p in present if element.operands.input(p).dtype is output][:1]
