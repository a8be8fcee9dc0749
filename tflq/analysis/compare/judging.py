"""Judges each compared tensor: what computes it, what it does alone, and why it differs; known differences apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tflq.analysis.compare.causes import (
    CLIPPED_INPUT,
    OWN_SHARE,
    RANGE_KINDS,
    clipped_cause,
    given_input_cause,
    input_cause,
    likely_cause,
    noise_ratio,
)
from tflq.analysis.compare.dumps import Dump
from tflq.analysis.compare.matching import Match, Segment, segment
from tflq.analysis.compare.result import ComparedTensor
from tflq.analysis.compare.sides import Running
from tflq.analysis.compare.tally import TensorFigures
from tflq.analysis.executions import AS_IS
from tflq.analysis.known_differences import Blame
from tflq.graph import Array, Graph, Model
from tflq.units import short


def blame_of(model: Running | None, dump: Dump | None) -> Blame | None:
    """Return what explains differences of a model and a dump; None for others than a model as it is and a dump."""
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
        blame: as `blame_of` made it.
        matches: every tensor that both sides have whole, the model's column first.
        inputs: of the model.
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
        graph: that ran; of the first side, or of the second where the first is a dump. None where nothing ran.
        other: the reference's, where both ran.
        matches: what was compared.
        every: all that both sides have.
        figures: of each tensor, by its name on the first side.
        own: of each layer fed with the reference's, or the dump's, inputs.
    """
    if graph is None:
        return tuple(ComparedTensor(m, figures[m.first.name], channel=_worst(figures[m.first.name])) for m in matches)
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
            result.append(_given(m, found, other is None))
            continue
        part = segment(graph, m.first.index, there, other, back)
        read = [figures[names[t]] for t in part.inputs if t in names]
        layer = _layer(m, found, part, read, own.get(m.first.name))
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
    """Put a layer behind the one whose range spoils its input, wherever it was fed from."""
    for t in inputs:
        spoiled = t.cause is not None and t.cause.kind in RANGE_KINDS and t.own >= OWN_SHARE * layer.own
        if spoiled and layer.group == 2 and layer.cause is not None:
            return replace(layer, cause=input_cause(t.node or f"'{short(t.name)}'"), added=0.0)
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
