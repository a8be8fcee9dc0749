"""A unit, one operator or a fusion, decides what it takes and writes (docs/rules/gap9/types.md#types)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Reals
from tflq.converters.gap9.editor import Gap9Editor
from tflq.converters.gap9.operators import FILTERS, MOVES, POOLS
from tflq.converters.gap9.passes.constants import quantize_layer
from tflq.converters.gap9.passes.hard_sigmoid import SHARED
from tflq.converters.gap9.types.forms import decide, own_range
from tflq.converters.gap9.types.records import INT8, INT16, UINT16, Choice, Decision, Operator
from tflq.converters.gap9.units import Unit
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Graph, Node, Range
from tflq.graph.rewriting import GraphEditor

_ACCUMULATOR_BITS = 31
Types = Sequence[Choice]
Demands = Sequence[Choice | None]


@dataclass(frozen=True)
class Resolved:
    """What a unit decided.

    Attributes:
        members: what each member decided, in order.
    """

    members: tuple[Decision, ...]

    @property
    def inputs(self) -> tuple[Choice, ...]:
        """What the first member takes."""
        return self.members[0].inputs

    @property
    def outputs(self) -> tuple[Choice, ...]:
        """What the last member writes."""
        return self.members[-1].outputs


@dataclass(frozen=True)
class Resolver:
    """Resolves one unit.

    Attributes:
        where: Returns the unit in words, for errors.
        operators: its members.
        is_filter: whether it begins with a filter.
        on_bytes: what NNTool makes of a pool and the ReLU behind it where 16 bits arrive (17.9); None for all others.
        is_last: whether it shares its constant with a hard sigmoid (17.10), which NNTool comes to behind all filters'.
    """

    where: Callable[[], str]
    operators: tuple[Operator, ...]
    is_filter: bool
    on_bytes: Resolved | None
    is_last: bool

    @property
    def is_fusion(self) -> bool:
        """Whether there are several members."""
        return len(self.operators) > 1

    def forward(self, arrived: Types, demands: Demands) -> Resolved | None:
        """Resolve the members in a line; where one wants another type, those before it are resolved again.

        Returns:
            None where one of them cannot write what the next takes.
        """
        if self.on_bytes is not None and arrived[0].codes in (INT16, UINT16):
            return self.on_bytes
        nobody = (None,) * len(self.operators[0].out_ranges)
        members = [self._one(0, arrived, demands if not self.is_fusion else nobody)]
        for k in range(1, len(self.operators)):
            members.append(self._one(k, members[-1].outputs, demands if k == len(self.operators) - 1 else nobody))
            if not self._push_back(members, k, members[0].inputs):
                return None
        return Resolved(tuple(members))

    def backward(self, before: Resolved, arrived: Types, demand: Choice) -> Resolved | None:
        """Resolve the members of a fusion from the last to the first for a demand; None where one cannot comply."""
        if before is self.on_bytes:
            return None
        members = list(before.members)
        last = len(members) - 1
        members[last] = self._one(last, members[last].inputs, (demand,))
        return Resolved(tuple(members)) if self._complies(members, last, arrived, demand) else None

    def keeps(self, before: Resolved, written: Types) -> bool:
        """Whether the first member still writes what the next takes where these types come; one on NE16 not of int8."""
        taken = before.members[0].outputs[0]
        return self._one(0, written, (taken,)).outputs[0].agrees(taken)

    def inside(self, before: Resolved, arrived: Types) -> Resolved | None:
        """Let the filter of a fusion alone follow a changed input, while the fusion keeps its types.

        NNTool's fault: its M and N then fit another input than the actual one (docs/differences/gap9.md). A filter
        follows only if it writes the same type alone and in the fusion: with a ReLU or pool, not with a ReLU6 or curve
        (None). A filter that cannot read the input does not follow: one on NE16 with an input of int8.
        """
        nobody = (None,) * len(before.members[0].outputs)
        found = self._one(0, arrived, nobody)
        takes = found.inputs[0].agrees(arrived[0])
        if not takes or not found.outputs[0].agrees(before.members[0].outputs[0]):
            return None
        return Resolved((Decision(found.inputs, before.members[0].outputs), *before.members[1:]))

    def _complies(self, members: list[Decision], last: int, arrived: Types, demand: Choice) -> bool:
        return members[last].outputs[0].agrees(demand) and self._push_back(members, last, arrived)

    def _push_back(self, members: list[Decision], k: int, arrived: Types) -> bool:
        """Let the members before k write what their readers want; False where one cannot."""
        for j in range(k - 1, -1, -1):
            wanted = members[j + 1].inputs[0]
            if members[j].outputs[0].agrees(wanted):
                return True
            members[j] = self._one(j, arrived if j == 0 else members[j].inputs, (wanted,))
            if not members[j].outputs[0].agrees(wanted):
                return False
        return True

    def _one(self, k: int, arrived: Types, demands: Demands) -> Decision:
        found = decide(self.operators[k], arrived, demands)
        if found is None:
            raise UnsupportedError(f"{self.where()}: no type of GAP9 fits what meets here")
        return found


def resolver_of(editor: Gap9Editor, unit: Unit) -> Resolver:
    """Return the resolver of a unit of a graph with ranges, fusions and engines.

    A filter has the types of its engine; all other operators may have unsigned types if use_ne16 allows it, on every
    engine.
    """
    operators, options = [], editor.option(unit.first)
    for place, node in enumerate(unit.nodes):
        sources = [t for _, t in unit.inputs] if place == 0 else node.inputs[:1]
        is_filter = node.operator in FILTERS
        operators.append(
            Operator(
                node.operator,
                tuple(range_of(editor, t) for t in sources),
                tuple(range_of(editor, t) for t in node.outputs),
                unit.on_ne16 if is_filter else options.use_ne16,
                options.feature_bits,
                unit.pads[place],
                place > 0,
                options.softmax_out_8bits,
                options.numerics == "nntool",
                partial(lost_bits, editor, node) if is_filter else _none,
                place > 0 and unit.is_filter,
                node.operator == "softmax" and _is_joined(editor, sources[0]),
            )
        )
    on_bytes = _pool_on_bytes(operators) if options.feature_bits == 16 and options.numerics == "nntool" else None
    is_last = SHARED in unit.first.attributes.text("departure", "")
    return Resolver(partial(editor.where, unit.first), tuple(operators), unit.is_filter, on_bytes, is_last)


def _is_joined(editor: GraphEditor, tensor: int) -> bool:
    while (node := editor.writer(tensor)) is not None and node.operator != "concatenation":
        if node.operator not in (*MOVES, "max_pool_2d"):
            return False
        tensor = next(t for t in node.inputs if not editor.tensors[t].is_constant)
    return node is not None


def _pool_on_bytes(operators: Sequence[Operator]) -> Resolved | None:
    """NNTool's pool and ReLU among 16-bit features: they take int8, whose integers they compute with as int16."""
    if operators[0].name not in POOLS or len(operators) == 1:
        return None
    range_ = own_range(operators[-1])
    narrow, wide = (Choice.made(range_, codes, True) for codes in (INT8, INT16))
    return Resolved((Decision((narrow,), (wide,)), Decision((wide,), (wide,))))


def _none(_scale: Reals) -> int:
    return 0


def lost_bits(editor: Gap9Editor, node: Node, scale: Reals) -> int:
    """Return how many bits a 16-bit input gives up, because a filter's accumulator could overflow.

    Source: docs/rules/gap9/operators.md#16-bit-features.

    bits = ceil(log2(max|output range| / min_c(S_x * S_w[c]))) + 1; the excess over 31, at most max_precision_limit.

    Args:
        editor: Graph with ranges.
        node: Filter.
        scale: S_x.
    """
    made = quantize_layer(editor, node, scale).bias_scale
    stated = range_of(editor, node.outputs[0])
    largest = max(abs(float(stated.minimum[0])), abs(float(stated.maximum[0])))
    bits = int(np.ceil(np.log2(largest / float(made.min())))) + 1
    return min(max(bits - _ACCUMULATOR_BITS, 0), editor.option(node).max_precision_limit)


def range_of(editor: Graph | GraphEditor, tensor: int) -> Range:
    """Return the range stated for a tensor.

    Raises:
        GraphError: it has none.
    """
    stated = editor.tensors[tensor].range
    if stated is None:
        raise GraphError(f"tensor '{editor.tensors[tensor].name}' has no range")
    return stated
