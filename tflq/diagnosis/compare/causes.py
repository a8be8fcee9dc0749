"""Likely causes of a layer's difference, derived from its figures, and advice for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.diagnosis.compare.matching import Segment
from tflq.diagnosis.compare.params import WeightFigures
from tflq.diagnosis.compare.tally import TensorFigures
from tflq.graph.operators import Trait, with_traits
from tflq.units import range_list

MOST_OF_THE_NOISE = 0.5
OWN_SHARE = 0.1
"""A layer that adds less than this share of its output's noise in isolation only passes on its input's noise."""
RANGE_KINDS = ("saturation", "range", "input")
"""Causes in the encoding of a tensor: they affect its readers too, independent of the readers' other inputs."""
CLIPPED_INPUT = 0.001
"""Share of a model's input that its range may cut off without being a cause."""
NEAR_DB = 3.0
"""A source of noise within this distance of all the noise makes at least half of it."""
CANCELLING_DB = 12.0
"""Minimum distance for sums with terms that cancel: their ratio is worse than that of their weights."""
WIDE = 0.5
"""A range of which this share is not used wastes a bit."""
_SUMS = ("add", "add_n", "sub", "eltwise", "sum")
_FIXED = with_traits(Trait.FIXED_SCALE)
"""Operators that fix the range of their output: no advice may be to change it."""
_PASSING = with_traits(Trait.KEEPS_SCALE) - with_traits(Trait.JOIN | Trait.PAD) | {"pooling", "flatten"}
"""Operators that keep the range of their input."""
_SAME = 1e-2
"""Factors that differ by less than this share are one."""
ROUNDING_RMS = 0.75
"""LSB: rounding both the input and the output gives 0.41; different steps add to it."""


@dataclass(frozen=True)
class Cause:
    """The likely cause.

    Attributes:
        kind: one of "integers", "layer", "saturation", "range", "multiplier", "factors", "weights", "rounding",
            "carried", "input", "given input", "computation".
        words: Observation.
        advice: Recommended next step.
        effect: Effect on the readers of the tensor, for causes in RANGE_KINDS; else empty.
    """

    kind: str
    words: str
    advice: str
    effect: str = ""


_CLIPS, _COARSE = "cannot hold the reference's values", "has steps that are too large"


def likely_cause(
    figures: TensorFigures, segment: Segment, inputs: Sequence[TensorFigures], own: TensorFigures | None
) -> Cause:
    """Name the likely cause of a difference.

    Args:
        figures: Figures of the layer's output in the run.
        segment: Nodes that compute the output.
        inputs: figures of the matched tensors that it reads.
        own: Figures of the layer in isolation, on the reference's inputs; None if it cannot run in isolation.
    """
    if segment.differences:
        words = "; ".join(d.words for d in segment.differences[:3])
        return Cause("integers", words, "fix these numbers: the file, the header or the export differs there")
    complete = len(inputs) == len(segment.inputs) and all(f.same_encoding for f in inputs)
    judged = figures if own is None else own
    fed_equal = complete and (own is not None or not any(f.differing for f in inputs))
    if figures.lsb is not None and figures.same_encoding and fed_equal and judged.differing:
        words = f"its inputs are equal, its result is not: {_channels(judged)}{_several(segment)}"
        return Cause("layer", words, "explain a differing element and compare it with the device's")
    before = max((noise_ratio(f) for f in inputs), default=0.0) if own is None else 0.0
    total = noise_ratio(figures)
    if before > MOST_OF_THE_NOISE * total or (own is not None and noise_ratio(own) < OWN_SHARE * total):
        alone = "" if own is None else f"; in isolation it has {own.sqnr_db:.1f} dB"
        words = f"carried over from earlier layers: {figures.sqnr_db:.1f} dB{alone}"
        return Cause("carried", words, "fix the layers before it")
    is_sum = segment.main.operator in _SUMS and not any(f.clipped for f in inputs)
    return _own_cause(judged, segment, is_sum)


def input_cause(maker: str, spoiled: Cause) -> Cause:
    """Return the cause of a layer with an input, made by a node or given, that the range of a tensor spoils."""
    effect = spoiled.effect or _CLIPS
    return Cause("input", f"its input, from {maker}, {effect}", f"fix the range of {maker}", effect)


def clipped_cause(figures: TensorFigures, is_sum: bool = False) -> Cause:
    """Return the cause of values outside the range of a tensor."""
    where = f"the samples reach {figures.reach[0]:.4g}..{figures.reach[1]:.4g}"
    if figures.limits is not None:
        where = f"the range {figures.limits[0]:.4g}..{figures.limits[1]:.4g}, {where}"
    words = (
        f"{'a sum that saturates' if is_sum else 'saturation'}: {where}: {figures.clipped:.2%} of the values are "
        f"clipped and make {figures.clipped_noise:.0%} of the squared error"
    )
    more = "its inputs fit, their sum does not: " if is_sum else ""
    return Cause(
        "saturation",
        words,
        f"{more}widen the range: calibrate with more or other samples, or a strategy nearer to the extremes",
        _CLIPS,
    )


def given_input_cause(name: str) -> Cause:
    """Return the cause of an input that differs from the model's input."""
    return Cause(
        "given input",
        f"the input '{name}' itself differs",
        "compare how both sides make it: order, scale, sign, layout",
    )


def is_rounded(figures: TensorFigures) -> bool:
    """Return whether a difference is no larger than one rounding on each side."""
    return figures.lsb is not None and figures.rms_coarser <= ROUNDING_RMS


def noise_ratio(figures: TensorFigures) -> float:
    """Return sum difference^2 / sum reference^2: 0 without a difference."""
    return float(10.0 ** (-min(max(figures.sqnr_db, -300.0), 300.0) / 10.0)) if figures.differing else 0.0


def _own_cause(figures: TensorFigures, segment: Segment, is_sum: bool) -> Cause:
    is_rounding = is_rounded(figures)
    is_fixed = segment.main.operator in _FIXED
    if figures.clipped_noise > MOST_OF_THE_NOISE and not (is_fixed and is_rounding):
        if is_fixed:
            words = f"saturation: {figures.clipped:.2%} of the values are clipped"
            return Cause("computation", words, f"{segment.main.operator} fixes its own range: look at its input")
        return clipped_cause(figures, is_sum)
    weights = segment.weights
    if weights is not None and weights.factors:
        return _factors_cause(weights)
    sqnr = figures.sqnr_db
    reach = NEAR_DB if is_rounding else CANCELLING_DB
    if weights is not None and weights.sqnr_db < sqnr + reach:
        if weights.narrow:
            one = len(weights.narrow) == 1
            words = f"channel{'s' * (not one)} {range_list(list(weights.narrow))} {'uses' if one else 'use'}"
            return Cause(
                "weights",
                f"weight bits: the weights themselves have {weights.sqnr_db:.1f} dB; they have one scale, and {words} "
                f"less than 1/16 of its steps",
                "scales per channel, or equalize the channels",
            )
        return Cause(
            "weights",
            f"weight bits: the weights themselves have {weights.sqnr_db:.1f} dB",
            "give this layer more weight bits, or scales per channel",
        )
    error = segment.multiplier_error
    if error and -20 * np.log10(error) < sqnr + NEAR_DB:
        return Cause(
            "multiplier",
            f"low multiplier precision: a multiplier is off by {error:.2%}",
            "choose ranges with a ratio of scales that the multiplier can represent, or another kernel for this layer",
        )
    if figures.unused > WIDE and not figures.clipped and segment.main.operator not in (*_FIXED, *_PASSING):
        return Cause(
            "range",
            f"range too wide: {figures.unused:.0%} of the quantized values are never used",
            "narrow the range: calibrate with a strategy that cuts outliers",
            _COARSE,
        )
    if is_rounding:
        tail = (
            f"; {figures.clipped_noise:.0%} of the squared error is saturation" if figures.clipped_noise > 0.1 else ""
        )
        words = f"rounding to the coarser side's steps ({figures.rms_coarser:.2f} LSB rms){tail}"
        return Cause("rounding", words, "wider features; with 8 bits no better result is possible")
    return Cause("computation", f"the computation itself; {_channels(figures)}", "explain a differing element")


def _factors_cause(weights: WeightFigures) -> Cause:
    channels, numbers = [c for c, _ in weights.factors], [r for _, r in weights.factors]
    same = max(numbers) - min(numbers) < _SAME * max(numbers)
    times = f"{numbers[0]:.3g}" if same else f"{min(numbers):.3g} to {max(numbers):.3g}"
    name = f"channel{'s' * (len(channels) > 1)} {range_list(channels)}"
    return Cause(
        "factors",
        f"the weights of {name} are {times} times the reference's; they are otherwise equal",
        "more bits cannot help: a batch normalization folded twice or not at all, or scales of another layer",
    )


def _several(segment: Segment) -> str:
    layers = len(segment.nodes)
    return f"; {layers} operators are between the compared tensors" if layers > 2 else ""


def _channels(figures: TensorFigures) -> str:
    if not figures.channels:
        return "no element differs"
    channel, largest, count = figures.channels[0]
    unit = "" if figures.lsb is None else " LSB"
    count_words = "1 channel differs" if len(figures.channels) == 1 else f"{len(figures.channels)} channels differ"
    return f"{count_words}, channel {channel} most ({count} elements, up to {largest:.6g}{unit})"
