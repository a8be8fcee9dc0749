"""Compares two sides tensor by tensor, and ranks the layers by what they themselves add to the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.analysis.compare.causes import OWN_SHARE, RANGE_KINDS, Cause, input_cause, likely_cause, noise_ratio
from tflq.analysis.compare.explained import blame_of, explain
from tflq.analysis.compare.isolated import Isolated
from tflq.analysis.compare.matching import Match, Matching, match
from tflq.analysis.compare.segments import Segment, segment
from tflq.analysis.compare.sides import Running, Side
from tflq.analysis.compare.tally import Tally, TensorFigures
from tflq.analysis.known_differences import KnownElements, summed
from tflq.errors import InputError, OptionError, UnsupportedError
from tflq.graph import Array, Graph

CHUNK_BYTES = 32 << 20
"""Bytes of tensors that both sides hold at a time."""


@dataclass(frozen=True)
class ComparedTensor:
    """One tensor of both sides.

    Attributes:
        match: the two columns.
        figures: how they differ.
        node: name of the first side's node with the weights; empty for inputs and dumps.
        operator: of that node.
        channel: the one to look at: where integers differ, else where the result differs most; None if nothing does.
        cause: None where nothing differs, or the first side is no graph.
        group: 0 where integers differ, 1 where equal inputs give other results, 2 else.
        added: noise-to-signal ratio of the layer alone; where that cannot be run, what it has above its inputs; 0 where
            the range of an input explains it.
        own: the same, whatever explains it.
        known: how many of the differing elements are known to differ from TFLite's, by reason.
    """

    match: Match
    figures: TensorFigures
    node: str = ""
    operator: str = ""
    channel: int | None = None
    cause: Cause | None = None
    group: int = 2
    added: float = 0.0
    own: float = 0.0
    known: tuple[KnownElements, ...] = ()

    @property
    def name(self) -> str:
        """Name of the tensor on the first side."""
        return self.match.first.name

    @property
    def is_explained(self) -> bool:
        """Whether each element that differs is known to."""
        return self.figures.differing <= sum(k.elements for k in self.known)


@dataclass(frozen=True)
class Comparison:
    """What came out.

    Attributes:
        first: name of the first side.
        second: name of the reference.
        samples: number of samples.
        isolated: whether each layer was fed with the reference's inputs.
        tolerance: differences up to it do not count, in LSB.
        tensors: in order of execution.
        matching: what could be compared, and what could not.
    """

    first: str
    second: str
    samples: int
    isolated: bool
    tolerance: float
    tensors: tuple[ComparedTensor, ...]
    matching: Matching

    @property
    def diverging(self) -> tuple[ComparedTensor, ...]:
        """Tensors that differ by more than the tolerance, in order of execution."""
        return tuple(t for t in self.tensors if t.figures.differing and t.figures.largest > self.tolerance)

    @property
    def is_equal(self) -> bool:
        """Whether no tensor differs by more than the tolerance."""
        return not self.diverging

    @property
    def known(self) -> tuple[KnownElements, ...]:
        """The reasons of all tensors, each with the elements that it explains."""
        return summed(k for t in self.tensors for k in t.known)

    @property
    def is_explained(self) -> bool:
        """Whether every difference beyond the tolerance is one that tflq is known to have from TFLite."""
        return all(t.is_explained for t in self.diverging)

    @property
    def ranking(self) -> tuple[ComparedTensor, ...]:
        """Layers that differ or whose integers do, the one to look at first in front."""
        found = [t for t in self.tensors if t.cause is not None]
        return tuple(sorted(found, key=lambda t: (t.group, -t.added)))


def compare_sides(
    first: Side,
    second: Side,
    samples: int,
    *,
    isolated: bool = False,
    tolerance: float = 0.0,
    only: Sequence[str] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> Comparison:
    """Compare, chunk by chunk: memory does not grow with the number of samples.

    Args:
        first: in question.
        second: the reference.
        samples: how many to compare.
        isolated: feed each layer of the first side with the reference's inputs.
        tolerance: in LSB.
        only: names of tensors of the first side; all that match where none is given.
        progress: called with the number of samples just finished.

    Raises:
        InputError: no tensor has a counterpart, or a dump has too few samples.
        OptionError: isolated, and the first side is a dump.
        UnsupportedError: isolated, and a layer depends on values of the run.
    """
    matching = match(first.columns, second.columns)
    matches = [m for m in matching.matches if not only or m.first.name in only]
    if not matches:
        raise InputError(f"{first.name} and {second.name} have no tensor in common that could be compared")
    for side in (first, second):
        if side.count is not None and side.count < samples:
            raise InputError(f"{side.name} has {side.count} samples, {samples} are to be compared")
    every = list(matching.matches)
    runner, blame = _runner(first, every, isolated), None if isolated else blame_of(first, second)
    wanted = every if runner or blame else matches
    alone, together = _tallies(matches), _tallies(matches)
    step = _chunk(every)
    for start in range(0, samples, step):
        stop = min(start + step, samples)
        theirs = second.take(start, stop, [m.second for m in wanted])
        if not isolated:
            mine = first.take(start, stop, [m.first for m in (every if blame else matches)])
            _add(together, matches, mine, theirs, start)
            if blame is not None and isinstance(first, Running):
                explain(blame, every, first.inputs(start, stop), mine, theirs)
        if runner is not None and isinstance(first, Running):
            results = runner.run(first.inputs(start, stop), theirs)
            ours = {m.first.name: results[m.first.index] for m in matches if m.first.index in results}
            _add(alone, matches, ours, theirs, start)
        progress(stop - start)
    own = {name: tally.figures() for name, tally in alone.items()} if runner is not None else {}
    figures = own if isolated else {name: tally.figures() for name, tally in together.items()}
    tensors = _judged(first, second, matches, every, figures, own)
    if blame is not None:
        tensors = tuple(replace(t, known=blame.known(t.match.first.index)) for t in tensors)
    return Comparison(first.name, second.name, samples, isolated, tolerance, tensors, matching)


def _runner(first: Side, matches: Sequence[Match], demanded: bool) -> Isolated | None:
    """Return what runs layers one by one: it ranks them in both modes; None where it is impossible and not demanded."""
    if not isinstance(first, Running):
        if demanded:
            raise OptionError(
                f"{first.name} is a dump, whose layers cannot be run; isolated needs a model as the first"
            )
        return None
    try:
        return Isolated(first, {m.first.index: m for m in matches})
    except UnsupportedError:
        if demanded:
            raise
        return None


def _tallies(matches: Sequence[Match]) -> dict[str, Tally]:
    return {m.first.name: Tally(m.first.tensor, m.second.tensor) for m in matches}


def _add(
    tallies: Mapping[str, Tally],
    matches: Sequence[Match],
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
    start: int,
) -> None:
    for m in matches:
        if m.first.name in ours:
            tallies[m.first.name].add(ours[m.first.name], theirs[m.second.name], start)


def _chunk(matches: Sequence[Match]) -> int:
    columns = [c for m in matches for c in (m.first, m.second)]
    size = sum(c.tensor.size * 8 for c in columns if c.tensor is not None)
    return max(1, CHUNK_BYTES // max(size, 1))


def _judged(
    first: Side,
    second: Side,
    matches: Sequence[Match],
    every: Sequence[Match],
    figures: Mapping[str, TensorFigures],
    own: Mapping[str, TensorFigures],
) -> tuple[ComparedTensor, ...]:
    if not isinstance(first, Running):
        return tuple(ComparedTensor(m, figures[m.first.name], channel=_worst(figures[m.first.name])) for m in matches)
    graph = first.execution.graph
    other: Graph | None = second.execution.graph if isinstance(second, Running) else None
    there = {m.first.index: m.second.index for m in every}
    back = {m.second.index: m.first.index for m in every}
    names = {m.first.index: m.first.name for m in matches}
    writers = graph.producers()
    result: list[ComparedTensor] = []
    for m in matches:
        found = figures[m.first.name]
        if not found.elements:  # inputs are what isolated layers are fed with
            continue
        if m.first.index not in writers:
            result.append(ComparedTensor(m, found, channel=_worst(found)))
            continue
        part = segment(graph, m.first.index, there, other, back)
        read = [figures[names[t]] for t in part.inputs if t in names]
        judged = _layer(m, found, part, read, own.get(m.first.name))
        before = [t for t in result if t.match.first.index in part.inputs]
        result.append(_after_its_inputs(judged, before))
    return tuple(result)


def _after_its_inputs(layer: ComparedTensor, inputs: Sequence[ComparedTensor]) -> ComparedTensor:
    """Put a layer behind the one whose range spoils its input, wherever it was fed from."""
    for t in inputs:
        spoiled = t.cause is not None and t.cause.kind in RANGE_KINDS and t.own >= OWN_SHARE * layer.own
        if spoiled and layer.group == 2 and layer.cause is not None:
            return replace(layer, cause=input_cause(t.node), added=0.0)
    return layer


def _layer(
    found: Match,
    figures: TensorFigures,
    part: Segment,
    inputs: Sequence[TensorFigures],
    own: TensorFigures | None,
) -> ComparedTensor:
    """Judge a layer by what it does alone, where that is known."""
    node, operator = part.main.name, part.main.operator
    if not figures.differing and not part.differences:
        return ComparedTensor(found, figures, node, operator)
    cause = likely_cause(figures, part, inputs, own)
    channels = [d.channel for d in part.differences if d.channel is not None]
    channel = channels[0] if channels else _worst(own if own is not None and own.differing else figures)
    group = {"integers": 0, "layer": 1}.get(cause.kind, 2)
    if own is not None:
        added = noise_ratio(own)
    else:
        added = noise_ratio(figures) - max((noise_ratio(f) for f in inputs), default=0.0)
    return ComparedTensor(found, figures, node, operator, channel, cause, group, added, added)


def _worst(figures: TensorFigures) -> int | None:
    return figures.channels[0][0] if figures.channels else None
