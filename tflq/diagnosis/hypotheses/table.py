"""The table of hypotheses, cheap and specific ones first: adding one is one row and one function."""

from __future__ import annotations

from tflq.diagnosis.hypotheses import (
    arithmetic,
    constants,
    fitted,
    given_input,
    memory,
    operators,
    whole_tensor,
)
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis

_READ = "compare how the dump is written and read: address, order of axes, type, which sample"
_FEED = "feed the board with the same input: order of channels, scale, zero point, layout"
_LOWER = "compare the layer's numbers in the device's code with those of `tflq explain`"
_FILE = "compare the constants on the device with the file: export, order of bytes, alignment, flash"
_LIBRARY = "no fault of the layer: compare the integers in front of it and behind it"
_DUMP, _INPUT, _ARITHMETIC, _LAYER, _SETS = "the-dump", "the-input", "the-arithmetic", "the-layer", "sets-of-elements"

HYPOTHESES = (
    Hypothesis("last places", "the layer is sound", whole_tensor.last_places, _LIBRARY, _DUMP),
    Hypothesis("other tensor", "the layer is sound", whole_tensor.other_tensor, _READ, _DUMP),
    Hypothesis("other sample", "the layer is sound", whole_tensor.other_sample, _READ, _DUMP),
    Hypothesis("axes", "the layer is sound", memory.axes, _READ, _DUMP),
    Hypothesis("sign bit", "the layer is sound", memory.sign_bit, _READ, _DUMP),
    Hypothesis("byte order", "the layer is sound", memory.words, _READ, _DUMP),
    Hypothesis("halves", "the layer is sound", memory.halves, _READ, _DUMP),
    Hypothesis("constant", "nothing of the dump", whole_tensor.constant, _READ, _DUMP),
    Hypothesis("address", "the layer is sound", memory.address, _READ, _DUMP),
    Hypothesis("cut short", "the layer is sound", whole_tensor.cut_short, _READ, _DUMP),
    Hypothesis("blocks", "the layer is sound", memory.blocks, _READ, _DUMP),
    Hypothesis("pitch", "the layer is sound", memory.pitch, _READ, _DUMP),
    Hypothesis("bits", "the layer is sound", memory.bits, _READ, _DUMP),
    Hypothesis("given input", "layers are sound", given_input.given, _FEED, _INPUT),
    Hypothesis("rounding", "the sums are right", arithmetic.rounding, _LOWER, _ARITHMETIC),
    Hypothesis("shift", "the sums are right", arithmetic.shift, _LOWER, _ARITHMETIC),
    Hypothesis("clamp", "the sums are right", arithmetic.clamp, _LOWER, _ARITHMETIC),
    Hypothesis("output zero point", "the sums are right", arithmetic.output_zero_point, _LOWER, _ARITHMETIC),
    Hypothesis("wraps", "the sums are right", arithmetic.wraps, _LOWER, _ARITHMETIC),
    Hypothesis("multiplier", "the sums are right", arithmetic.multiplier, _LOWER, _ARITHMETIC),
    Hypothesis("padding", "the taps inside are right", arithmetic.padding, _LOWER, _LAYER),
    Hypothesis("input zero point", "the products are right", arithmetic.input_zero_point, _LOWER, _LAYER),
    Hypothesis("bias", "the products are right", constants.bias, _FILE, _LAYER),
    Hypothesis("scales", "the sums are right", constants.scales, _FILE, _LAYER),
    Hypothesis("scales of the borders", "the sums are right", constants.borders, _LOWER, _LAYER),
    Hypothesis("weights", "the rest is right", constants.weights, _FILE, _LAYER),
    Hypothesis("side of the padding", "the rest is right", constants.window_side, _LOWER, _LAYER),
    Hypothesis("activation", "the rest is right", operators.activation, _LOWER, _LAYER),
    Hypothesis("taps", "the rest is right", constants.taps, _LOWER, _LAYER),
    Hypothesis("windows", "the rest is right", operators.window, _LOWER, _LAYER),
    Hypothesis("table", "the rest is right", operators.table, _LOWER, _LAYER),
    Hypothesis("sampling", "the rest is right", operators.sampling, _LOWER, _LAYER),
    Hypothesis("filling", "the rest is right", operators.filling, _LOWER, _LAYER),
    Hypothesis("pool", "the rest is right", operators.pools, _LOWER, _LAYER),
    Hypothesis("softmax", "the rest is right", operators.softmax, _LOWER, _LAYER),
    Hypothesis("saturation", "the rest is right", operators.saturation, _LOWER, _LAYER),
    Hypothesis("encodings", "the rest is right", operators.encodings, _LOWER, _LAYER),
    Hypothesis("operands", "the rest is right", operators.operands, _LOWER, _LAYER),
    Hypothesis("accumulator", "the products are right", arithmetic.accumulator, _LOWER, _ARITHMETIC),
    Hypothesis("parts", "the rest is right", whole_tensor.parts, _READ, _SETS, 2),
    Hypothesis("permuted channels", "the rest is right", whole_tensor.permuted, _FILE, _SETS, 2),
    Hypothesis("dead channels", "the rest is right", whole_tensor.dead, _FILE, _SETS, 2),
    Hypothesis("erased memory", "the rest is right", constants.erased, _FILE, _SETS, 2),
    Hypothesis("offset of channels", "the rest is right", whole_tensor.offset, _LOWER, _SETS, 3),
    Hypothesis("one weight", "the rest is right", fitted.one_weight, _FILE, _SETS, 3),
    Hypothesis("bias of channels", "the products are right", fitted.bias_off, _FILE, _SETS, 3),
    Hypothesis("factor of channels", "the sums are right", fitted.factor, _FILE, _SETS, 3),
)
"""Every hypothesis, in the order in which it is tried and named."""
