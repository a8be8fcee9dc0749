"""Result of a comparison: each tensor judged by its layer in the run and in isolation, and the layers ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.diagnosis.compare.causes import (
    CLIPPED_INPUT,
    OWN_SHARE,
    RANGE_KINDS,
    Cause,
    clipped_cause,
    given_input_cause,
    input_cause,
    is_rounded,
    likely_cause,
    noise_ratio,
)
from tflq.diagnosis.compare.dumps import Dump
from tflq.diagnosis.compare.matching import Match, Matching, Segment, segment
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.compare.tally import TensorFigures
from tflq.diagnosis.known_differences import Blame, KnownElements, summed
from tflq.graph import Array, Graph, Model
from tflq.parallel.executions import AS_IS
from tflq.units import short


@dataclass(frozen=True)
class ComparedTensor:
    """One tensor of both sides.

    Attributes:
        match: the two columns.
        figures: Figures of the difference.
        node: name of the first side's node with the weights; empty for inputs and dumps.
        operator: Operator of that node.
        channel: Channel to examine: with different integers, else with the largest difference; None without difference.
        cause: Likely cause; None if no element differs, or no side is a graph.
        group: Rank: 0 if an input or integers differ, 1 if equal inputs give other results, 2 else.
        added: noise-to-signal ratio of the layer in isolation; if it cannot run so, the excess over its inputs; 0 if
            the range of an input explains it.
        own: The same without the exception for input ranges.
        known: Numbers of differing elements that are known to differ from TFLite's, by reason.
        is_rounding: Whether the layer adds no more than rounding to the steps of the coarser side.
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
    is_rounding: bool = False

    @property
    def name(self) -> str:
        """Name of the tensor on the first side."""
        return self.match.first.name

    @property
    def place(self) -> str:
        """Place to examine: the node, or the input of the model."""
        return self.node or short(self.name)

    @property
    def is_explained(self) -> bool:
        """Whether each element that differs is known to."""
        return self.figures.differing <= sum(k.elements for k in self.known)


@dataclass(frozen=True)
class Comparison:
    """Result of comparing two sides.

    Attributes:
        first: name of the first side.
        second: name of the reference.
        samples: number of samples.
        isolated: whether each layer was fed with the reference's inputs.
        tolerance: differences up to it do not count, in LSB.
        tensors: Results in order of execution.
        matching: Matched and unmatched tensors.
        unseen: inputs of the model that the dump does not contain; they are not checked.
    """

    first: str
    second: str
    samples: int
    isolated: bool
    tolerance: float
    tensors: tuple[ComparedTensor, ...]
    matching: Matching
    unseen: tuple[str, ...] = ()

    @property
    def diverging(self) -> tuple[ComparedTensor, ...]:
        """Tensors that differ by more than the tolerance, in order of execution."""
        return tuple(t for t in self.tensors if t.figures.differing and t.figures.largest > self.tolerance)

    @property
    def is_equal(self) -> bool:
        """Whether no tensor differs by more than the tolerance."""
        return not self.diverging

    @property
    def is_rounding(self) -> bool:
        """Whether tensors differ, and each layer that differs adds only rounding: no fix is needed."""
        return bool(self.ranking) and all(t.is_rounding for t in self.ranking)

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
        """Layers with different results or integers, the first to examine first.

        Layers at fault on equal inputs are in order of execution, the remaining ones by the noise that they add.
        """
        exact = [t for t in self.tensors if t.cause is not None and t.group < 2 and self._counts(t)]
        noisy = [t for t in self.tensors if t.cause is not None and t.group == 2 and self._counts(t)]
        return (*sorted(exact, key=lambda t: t.group), *sorted(noisy, key=lambda t: -t.added))

    def _counts(self, t: ComparedTensor) -> bool:
        """Whether a tensor differs by more than the tolerance; integers that differ always count."""
        return t.group == 0 or t.figures.largest > self.tolerance


def blame_of(model: Running | None, dump: Dump | None) -> Blame | None:
    """Return the record of known differences for an unconverted model and a dump; None for any other pair."""
    if model is not None and model.execution.name == AS_IS and dump is not None:
        return Blame(Model([model.execution.graph]))
    return None


def explain(
    blame: Blame,
    matches: Sequence[Match],
    inputs: list[Array],
    ours: Mapping[str, Array],
    theirs: Mapping[str, Array],
) -> None:
    """Add a chunk.

    Args:
        blame: Result of `blame_of`.
        matches: every tensor that both sides have whole, the model's column first.
        inputs: Inputs of the model.
        ours: the model's values by column name.
        theirs: the dump's.
    """
    mine = {m.first.index: ours[m.first.name] for m in matches}
    blame.add(inputs, mine, {m.first.index: theirs[m.second.name].reshape(mine[m.first.index].shape) for m in matches})


def judged(
    graph: Graph | None,
    other: Graph | None,
    matches: Sequence[Match],
    every: Sequence[Match],
    figures: Mapping[str, TensorFigures],
    own: Mapping[str, TensorFigures],
) -> tuple[ComparedTensor, ...]:
    """Judge every tensor.

    Args:
        graph: Graph that ran: of the first side, or of the second if the first is a dump; None if neither ran.
        other: Graph of the reference if both ran.
        matches: Compared tensors.
        every: all that both sides have.
        figures: Figures of each tensor, by its name on the first side.
        own: Figures of each layer in isolation on the inputs of the reference or dump.
    """
    if graph is None:
        return tuple(ComparedTensor(m, figures[m.first.name], channel=_worst(figures[m.first.name])) for m in matches)
    there = {m.first.index: m.second.index for m in every}
    back = {m.second.index: m.first.index for m in every}
    names = {m.first.index: m.first.name for m in matches}
    writers = graph.producers()
    result: list[ComparedTensor] = []
    for m in matches:
        difference = figures[m.first.name]
        if not difference.elements:  # isolated layers get these as inputs
            continue
        if m.first.index not in writers:
            result.append(_given(m, difference, other is None))
            continue
        part = segment(graph, m.first.index, there, other, back)
        read = [figures[names[t]] for t in part.inputs if t in names]
        layer = _layer(m, difference, part, read, own.get(m.first.name))
        before = [t for t in result if t.match.first.index in part.inputs]
        result.append(_after_its_inputs(layer, before))
    return tuple(result)


def _given(match: Match, figures: TensorFigures, is_dump: bool) -> ComparedTensor:
    """Judge an input of the model: a dump's that differs is the first suspect, a range too small for it a layer's."""
    if is_dump and figures.differing:
        cause = given_input_cause(match.first.name)
        return ComparedTensor(match, figures, "", "input", _worst(figures), cause, 0)
    if not is_dump and figures.clipped > CLIPPED_INPUT:
        added = noise_ratio(figures)
        return ComparedTensor(match, figures, "", "input", _worst(figures), clipped_cause(figures), 2, added, added)
    return ComparedTensor(match, figures, "", "", _worst(figures))


def _after_its_inputs(layer: ComparedTensor, inputs: Sequence[ComparedTensor]) -> ComparedTensor:
    """Rank a layer after the producer of an input with an unsuitable range, even if the layer ran in isolation."""
    for t in inputs:
        if t.cause is None or t.cause.kind not in RANGE_KINDS or t.own < OWN_SHARE * layer.own:
            continue
        if layer.group == 2 and layer.cause is not None:
            cause = input_cause(t.node or f"'{short(t.name)}'", t.cause)
            return replace(layer, cause=cause, added=0.0, is_rounding=False)
    return layer


def _layer(
    found: Match,
    figures: TensorFigures,
    part: Segment,
    inputs: Sequence[TensorFigures],
    own: TensorFigures | None,
) -> ComparedTensor:
    """Judge a layer by its figures in isolation if available."""
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
    rounds = cause.kind == "carried" or (cause.kind in ("rounding", "weights") and is_rounded(own or figures))
    return ComparedTensor(
        found, figures, node, operator, channel, cause, group, added, added, is_rounding=rounds and not part.differences
    )


def _worst(figures: TensorFigures) -> int | None:
    return figures.channels[0][0] if figures.channels else None
