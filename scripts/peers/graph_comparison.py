"""Comparison of two graphs of one network: a tool's file and tflq's."""

from __future__ import annotations

import numpy as np

from tflq.graph import ABSENT, Affine, Blockwise, Graph


class Comparison:
    """Two graphs from their outputs up: operators, attributes, types, quantizations and constants.

    Args:
        ours: One graph.
        theirs: Other graph.

    Attributes:
        checks: Number of tensors and nodes compared.
        words: First difference; empty if the graphs are equal.
    """

    def __init__(self, ours: Graph, theirs: Graph) -> None:
        self._sides = (ours, theirs)
        self._made = tuple({t: node for node in graph.nodes for t in node.outputs} for graph in self._sides)
        self._seen: set[tuple[int, int]] = set()
        self.checks, self.words = 0, ""
        if len(ours.outputs) != len(theirs.outputs):
            self.words = "another number of outputs"
        for pair in zip(ours.outputs, theirs.outputs, strict=False):
            self._tensors(*pair)

    def _tensors(self, first: int, second: int) -> None:
        waiting = [(first, second)]
        while waiting and not self.words:
            a, b = waiting.pop()
            if (a, b) in self._seen:
                continue
            self._seen.add((a, b))
            self.checks += 1
            self.words = self._differ(a, b)
            nodes = [made.get(t) for made, t in zip(self._made, (a, b), strict=True)]
            if self.words or nodes[0] is None or nodes[1] is None:
                continue
            one, two = nodes[0], nodes[1]
            missing = max(len(one.inputs), len(two.inputs))
            pairs = zip(*(((*n.inputs, *[ABSENT] * missing)[:missing]) for n in (one, two)), strict=True)
            for x, y in pairs:
                if (x == ABSENT) != (y == ABSENT):
                    self.words = f"{one.name}: an input is there on one side only"
                elif x != ABSENT:
                    waiting.append((x, y))

    def _differ(self, a: int, b: int) -> str:
        x, y = (graph.tensors[t] for graph, t in zip(self._sides, (a, b), strict=True))
        here = f"'{x.name}'"
        if x.dtype is not y.dtype:
            return f"{here}: {x.dtype.value}, there {y.dtype.value}"
        words = self._quantizations(a, b)
        if words:
            return f"{here}: {words}"
        if (x.data is None) != (y.data is None):
            return f"{here}: constant on one side only"
        if x.data is not None and y.data is not None:
            same = x.data.shape == y.data.shape and x.data.tobytes() == y.data.tobytes()
            return "" if same else f"{here}: {np.count_nonzero(x.data != y.data)} of {x.data.size} values differ"
        one, two = (made.get(t) for made, t in zip(self._made, (a, b), strict=True))
        if one is None or two is None:
            return "" if one is two else f"{here}: an input of the graph on one side only"
        if one.operator != two.operator:
            return f"{here}: {one.operator}, there {two.operator}"
        mine = {k: v for k, v in one.attributes.items() if k not in ("engine", "engine_reason")}
        return "" if mine == dict(two.attributes.items()) else f"{here}: {mine}, there {dict(two.attributes.items())}"

    def _quantizations(self, a: int, b: int) -> str:
        x, y = (graph.tensors[t].quantization for graph, t in zip(self._sides, (a, b), strict=True))
        if isinstance(x, Affine) and isinstance(y, Affine):
            for what, p, q in (("scale", x.scale, y.scale), ("zero point", x.zero_point, y.zero_point)):
                if not np.array_equal(p, q):
                    return f"{what} {p.ravel()[:2]}, there {q.ravel()[:2]} ({p.size}, {q.size})"
            return "" if x.axis == y.axis or x.scale.size == 1 else f"axis {x.axis}, there {y.axis}"
        if isinstance(x, Blockwise) and isinstance(y, Blockwise):
            if x.block_size != y.block_size:
                return f"blocks of {x.block_size}, there {y.block_size}"
            held = (self._sides[0].tensors[x.scales].data, self._sides[1].tensors[y.scales].data)
            return "" if np.array_equal(np.asarray(held[0]), np.asarray(held[1])) else "scales of blocks differ"
        return "" if x is None and y is None else f"{type(x).__name__}, there {type(y).__name__}"
