"""Each hypothesis by itself names the fault that is planted for it; a new one needs its row."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from tests.faults.score import SAMPLES, archive, execution, plant, samples
from tflq.diagnosis.compare import Running, dump_of
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis
from tflq.diagnosis.hypotheses.table import HYPOTHESES

RANDOM, GAP9 = ("random0", "tflite"), ("random0", "gap9-ne16")
SHEETS = ("sheets", "tflite")
PLANTED = {
    "last places": ("digits", "openvino", "another library", "by at most 1 ULP"),
    "other tensor": (*RANDOM, "another layer", "dump contains the values of 'conv_2d_1'"),
    "other sample": (*RANDOM, "sample before", "dump contains the sample before"),
    "sample order": (*RANDOM, "samples exchanged", "samples 0 and 1 are exchanged in this tensor"),
    "shifted image": (*RANDOM, "crop off", "results are moved by 1 row down and 1 column to the right"),
    "axes": (*RANDOM, "CHW", "axes are stored as CHW, read as HWC"),
    "sign bit": (*RANDOM, "128 off", "values are 128 off"),
    "byte order": (*RANDOM, "16-bit words", "16-bit words have the other byte order"),
    "halves": (*RANDOM, "halves", "two halves of the channels are exchanged"),
    "constant": (*RANDOM, "never written", "result is 0 everywhere"),
    "limits": (*SHEETS, "clamped early", "result is clamped to its type before the zero point"),
    "address": (*RANDOM, "address", "values are 5 elements after their places"),
    "cut short": (*RANDOM, "cut short", "result stops at element 218 of 432: all later elements are 0"),
    "blocks": (*RANDOM, "NC4HW4", r"channels are stored in blocks of 4: \[C/4, H, W, 4\]"),
    "pitch": (*RANDOM, "row pitch", "rows are written 5 elements longer than they are read"),
    "bits": (*RANDOM, "lowest bit", "values have lost their lowest bit"),
    "given input": (*RANDOM, "input BGR", r"input has its channels reversed \(RGB as BGR\)"),
    "rounding": (*RANDOM, "no rounding", "rounding is another one: .*(floor|no rounding)"),
    "shift": (*GAP9, "shift", r"results are multiplied by 2\^1: the shift is off by 1"),
    "clamp": (*GAP9, "clamp added", "ReLU is applied instead of the model's clamp"),
    "output zero point": (*RANDOM, "output zero point", "output's zero point is left out"),
    "wraps": (*RANDOM, "result wraps", "result wraps above, and is clamped below"),
    "multiplier": (*GAP9, "scale of the neighbor", "multiplier and shift belong to the channel before"),
    "padding": (*RANDOM, "padding 0", "image is padded with 0 instead of the zero point 10"),
    "input zero point": (*RANDOM, "input zero point", "input's zero point is left out"),
    "bias": (*RANDOM, "bias twice", "bias counts twice"),
    "bias elsewhere": (*RANDOM, "bias not shifted", "bias is shifted to the right by 4"),
    "scales": (*GAP9, "scale of the neighbor", "weights' scales are from the channel before"),
    "scales of the borders": ("random0", "tpu-mlir", "input 1 not rescaled", "input's scale is the output's"),
    "weights": (*RANDOM, "kernel turned", "weights are turned by 180 degrees"),
    "weights elsewhere": (*RANDOM, "weights a word off", "weights are read 4 elements before their place"),
    "side of the padding": (
        *SHEETS,
        "padding on the other side",
        "padding of the rows and columns is on the other",
    ),
    "activation": (*GAP9, "nothing done", "add does nothing: its input is stored"),
    "taps": (*RANDOM, "column of the kernel lost", "last column of the kernel does not count"),
    "windows": (*RANDOM, "window a row off", "windows are one row too low"),
    "table": ("random1", "gap9-ne16", "128 off", "table of relu6 is read with the other sign of its index"),
    "function": (*SHEETS, "another curve", "function computed is hard swish, not relu6"),
    "sampling": (*SHEETS, "resize by corners", "resize takes pixels at their upper left corners"),
    "filling": (*SHEETS, "filled with 0", "filling is 0"),
    "pool": (*RANDOM, "pool's count", "pool divides by the whole window at the border, padded with 0"),
    "softmax": (*RANDOM, "softmax scale", r"softmax' scale is off by 2\^1"),
    "base of the softmax": (*RANDOM, "softmax of base 2", "softmax uses powers of 2, not of e"),
    "saturation": (*SHEETS, "sum wraps", "result wraps instead of saturating"),
    "encodings": (*RANDOM, "input 1 not rescaled", "input 1 is not rescaled: it is read as the output's"),
    "joined operands": (*SHEETS, "operands in a row", "operands are copied one after another in memory"),
    "operands": (*RANDOM, "sample before", "input is that of the sample before"),
    "accumulator": (*GAP9, "accumulator wraps", r"accumulator has 17 bits \(.*\) and wraps"),
    "parts": (*RANDOM, "rows of the sample before", r"rows 0\.\.1 are from the sample before"),
    "copied rows": ("random1", "tflite", "tile not renewed", r"rows 4\.\.7 contain the results of 4 rows before"),
    "overwritten memory": (*RANDOM, "buffers overlap", "the buffers overlap"),
    "stale rows": (*RANDOM, "line not renewed", r"input's row \d+ reads as row \d+: a line buffer was not advanced"),
    "tile border": (*RANDOM, "halo lost", r"row \d+ reads the zero point for input rows"),
    "permuted channels": (
        *RANDOM,
        "channels reversed",
        "channels are permuted: 0 contains 11, 1 contains 10, .* and 6 more",
    ),
    "dead channels": (*RANDOM, "dead", "channel 6 is constant 7"),
    "erased memory": (*RANDOM, "weights zero", r"weights' bytes 0\.\.323 \(0.3164 KiB\) are zero"),
    "single change": (*RANDOM, "one bias, output alone", r"bias of channel \d+ is 0"),
    "offset of channels": (*RANDOM, "too low", "channel 6 is 15 too low"),
    "one weight": (*RANDOM, "one weight's bit", r"weight \[1, 0, 2\] of channel 10 is 18, not 50: bit 5 is flipped"),
    "bias of channels": (*RANDOM, "bias twice", r"bias of all channels is off by -3156 to \+22271"),
    "factor of channels": (*GAP9, "weights zero", "all channels have separate factors, -0.0148 to 0.00266"),
}
"""Hypothesis -> network, target, fault (tests/faults), and what must be said of it."""


@cache
def side_of(network: str, target: str) -> Running:
    """Return a network under a target, on samples that repeat."""
    run = execution(network, target, 41)
    assert run is not None
    return Running(run, samples(run, 41), network)


def test_every_hypothesis_has_a_planted_fault() -> None:
    assert list(PLANTED) == [hypothesis.name for hypothesis in HYPOTHESES]


def test_each_hypothesis_names_its_fault() -> None:
    wrong = {h.name: said for h in HYPOTHESES if not re.search(PLANTED[h.name][3], said := sentences(h))}
    assert wrong == {}


def sentences(hypothesis: Hypothesis) -> str:
    """Return the exact causes that a hypothesis alone names for the fault planted for it, a line each."""
    network, target, fault, _ = PLANTED[hypothesis.name]
    side = side_of(network, target)
    planted = plant(side, fault, np.random.default_rng(1))
    if planted is None:
        return f"the fault '{fault}' does not show"
    diagnosis = diagnose(side, dump_of(archive(side, planted.dump), side), SAMPLES, table=[hypothesis])
    if diagnosis is None or diagnosis.number != planted.tensor:
        return "another layer is named"
    return "\n".join(text for finding in diagnosis.exact for text in (finding.words, *finding.alike))
