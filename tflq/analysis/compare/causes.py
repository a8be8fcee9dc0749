"""From figures to words: why a layer differs, and what to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.analysis.compare.segments import Segment
from tflq.analysis.compare.tally import TensorFigures

MOST_OF_THE_NOISE = 0.5
OWN_SHARE = 0.1
"""A layer that alone makes less than this share of the noise of its result passes on what it got."""
RANGE_KINDS = ("saturation", "range", "input")
"""Causes that lie in the encoding of a tensor: its readers suffer from them too, whatever they are fed with."""
NEAR_DB = 3.0
"""A source of noise within this distance of all the noise makes at least half of it."""
CANCELLING_DB = 12.0
"""Sums whose terms cancel have a worse ratio than their weights; where rounding is no explanation, this much counts."""
WIDE = 0.5
"""A range of which this share is not used wastes a bit."""
ROUNDING_RMS = 0.75
"""LSB: a rounding of the input and one of the output have 0.41, and some more where steps differ."""


@dataclass(frozen=True)
class Cause:
    """The likely cause.

    Attributes:
        kind: one of "integers", "layer", "saturation", "range", "multiplier", "weights", "rounding", "carried",
            "input", "given input", "computation".
        words: what was seen.
        advice: what to try.
    """

    kind: str
    words: str
    advice: str


def likely_cause(
    figures: TensorFigures, segment: Segment, inputs: Sequence[TensorFigures], own: TensorFigures | None
) -> Cause:
    """Name the likely cause of a difference.

    Args:
        figures: of the layer's output, as the run gave it.
        segment: what computes it.
        inputs: figures of the matched tensors that it reads.
        own: of the layer alone, fed with the reference's inputs; None where it cannot be run so.
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
        alone = "" if own is None else f"; alone it has {own.sqnr_db:.1f} dB"
        words = f"carried over from earlier layers: {figures.sqnr_db:.1f} dB{alone}"
        return Cause("carried", words, "fix the layers before it")
    return _own_cause(judged, segment)


def input_cause(node: str) -> Cause:
    """Return the cause of a layer whose input cannot hold the reference's values."""
    return Cause("input", f"its input, from {node}, cannot hold the reference's values", f"fix the range of {node}")


def given_input_cause(name: str) -> Cause:
    """Return the cause of an input that is not what the model was given."""
    return Cause(
        "given input",
        f"the input '{name}' itself differs",
        "compare how both sides make it: order, scale, sign, layout",
    )


def noise_ratio(figures: TensorFigures) -> float:
    """Return sum difference^2 / sum reference^2: 0 without a difference."""
    return float(10.0 ** (-min(max(figures.sqnr_db, -300.0), 300.0) / 10.0)) if figures.differing else 0.0


def _own_cause(figures: TensorFigures, segment: Segment) -> Cause:
    if figures.clipped_noise > MOST_OF_THE_NOISE:
        return Cause(
            "saturation",
            f"saturation: {figures.clipped:.2%} of the values are clipped and make {figures.clipped_noise:.0%} of the "
            f"squared error",
            "widen the range: calibrate with more or other samples, or a strategy nearer to the extremes",
        )
    sqnr = figures.sqnr_db
    reach = NEAR_DB if figures.lsb is not None and figures.rms_coarser <= ROUNDING_RMS else CANCELLING_DB
    if segment.weight_sqnr_db is not None and segment.weight_sqnr_db < sqnr + reach:
        return Cause(
            "weights",
            f"weight bits: the weights themselves have {segment.weight_sqnr_db:.1f} dB",
            "give this layer more weight bits, or scales per channel",
        )
    error = segment.multiplier_error
    if error and -20 * np.log10(error) < sqnr + NEAR_DB:
        return Cause(
            "multiplier",
            f"low multiplier precision: a multiplier is off by {error:.2%}",
            "choose ranges whose ratio of scales the multiplier can hold, or another kernel for this layer",
        )
    if figures.unused > WIDE:
        return Cause(
            "range",
            f"range too wide: {figures.unused:.0%} of the quantized values are never used",
            "narrow the range: calibrate with a strategy that cuts outliers",
        )
    if figures.lsb is not None and figures.rms_coarser <= ROUNDING_RMS:
        tail = (
            f"; {figures.clipped_noise:.0%} of the squared error is saturation" if figures.clipped_noise > 0.1 else ""
        )
        words = f"rounding to the coarser side's steps ({figures.rms_coarser:.2f} LSB rms){tail}"
        return Cause("rounding", words, "wider features, or nothing: 8 bits do not give more")
    return Cause("computation", f"the computation itself; {_channels(figures)}", "explain a differing element")


def _several(segment: Segment) -> str:
    layers = len(segment.nodes)
    return f"; {layers} operators lie between the tensors that could be compared" if layers > 2 else ""


def _channels(figures: TensorFigures) -> str:
    if not figures.channels:
        return "no element differs"
    channel, largest, count = figures.channels[0]
    unit = "" if figures.lsb is None else " LSB"
    count_words = "1 channel differs" if len(figures.channels) == 1 else f"{len(figures.channels)} channels differ"
    return f"{count_words}, channel {channel} most ({count} elements, up to {largest:.6g}{unit})"
