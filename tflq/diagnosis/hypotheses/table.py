"""The table of hypotheses, cheap and specific ones first: adding one is one row and one function."""

from __future__ import annotations

from tflq.diagnosis.hypotheses import (
    arithmetic,
    constants,
    elsewhere,
    fitted,
    functions,
    given_input,
    memory,
    moved,
    operators,
    single,
    tiles,
    whole_tensor,
)
from tflq.diagnosis.hypotheses.hypothesis import Hypothesis
from tflq.errors import TflqError
from tflq.plugins import find_entry_points

_READ = "compare how the dump is written and read: address, order of axes, type, which sample"
_FEED = "feed the board with the same input: order of channels, scale, zero point, layout"
_LOWER = "compare the layer's numbers in the device's code with the output of `tflq explain`"
_FILE = "compare the constants on the device with the file: export, order of bytes, alignment, flash"
_LIBRARY = "no fault of the layer: compare the integers before and after it"
_BUFFERS = "check sizes, borders and renewal of the tiles and buffers of this layer"
_DUMP, _INPUT, _ARITHMETIC, _LAYER, _SETS = "the-dump", "the-input", "the-arithmetic", "the-layer", "sets-of-elements"

HYPOTHESES = (
    Hypothesis("last places", whole_tensor.last_places, _LIBRARY, _DUMP),
    Hypothesis("other tensor", whole_tensor.other_tensor, _READ, _DUMP),
    Hypothesis("other sample", whole_tensor.other_sample, _READ, _DUMP),
    Hypothesis("sample order", moved.sample_order, _READ, _DUMP),
    Hypothesis("shifted image", moved.shifted, _READ, _DUMP),
    Hypothesis("axes", memory.axes, _READ, _DUMP),
    Hypothesis("sign bit", memory.sign_bit, _READ, _DUMP),
    Hypothesis("byte order", memory.words, _READ, _DUMP),
    Hypothesis("halves", memory.halves, _READ, _DUMP),
    Hypothesis("constant", whole_tensor.constant, _READ, _DUMP),
    Hypothesis("limits", whole_tensor.limits, _LOWER, _DUMP),
    Hypothesis("address", memory.address, _READ, _DUMP),
    Hypothesis("cut short", whole_tensor.cut_short, _READ, _DUMP),
    Hypothesis("blocks", memory.blocks, _READ, _DUMP),
    Hypothesis("pitch", memory.pitch, _READ, _DUMP),
    Hypothesis("bits", memory.bits, _READ, _DUMP),
    Hypothesis("given input", given_input.given, _FEED, _INPUT),
    Hypothesis("rounding", arithmetic.rounding, _LOWER, _ARITHMETIC),
    Hypothesis("shift", arithmetic.shift, _LOWER, _ARITHMETIC),
    Hypothesis("clamp", arithmetic.clamp, _LOWER, _ARITHMETIC),
    Hypothesis("output zero point", arithmetic.output_zero_point, _LOWER, _ARITHMETIC),
    Hypothesis("wraps", arithmetic.wraps, _LOWER, _ARITHMETIC),
    Hypothesis("multiplier", arithmetic.multiplier, _LOWER, _ARITHMETIC),
    Hypothesis("padding", arithmetic.padding, _LOWER, _LAYER),
    Hypothesis("input zero point", arithmetic.input_zero_point, _LOWER, _LAYER),
    Hypothesis("bias", constants.bias, _FILE, _LAYER),
    Hypothesis("bias elsewhere", elsewhere.bias_moved, _FILE, _LAYER),
    Hypothesis("scales", constants.scales, _FILE, _LAYER),
    Hypothesis("scales of the borders", constants.borders, _LOWER, _LAYER),
    Hypothesis("weights", constants.weights, _FILE, _LAYER),
    Hypothesis("weights elsewhere", elsewhere.weights_moved, _FILE, _LAYER),
    Hypothesis("side of the padding", constants.window_side, _LOWER, _LAYER),
    Hypothesis("activation", operators.activation, _LOWER, _LAYER),
    Hypothesis("taps", constants.taps, _LOWER, _LAYER),
    Hypothesis("windows", operators.window, _LOWER, _LAYER),
    Hypothesis("table", operators.table, _LOWER, _LAYER),
    Hypothesis("function", functions.function, _LOWER, _LAYER),
    Hypothesis("sampling", operators.sampling, _LOWER, _LAYER),
    Hypothesis("filling", operators.filling, _LOWER, _LAYER),
    Hypothesis("pool", operators.pools, _LOWER, _LAYER),
    Hypothesis("softmax", operators.softmax, _LOWER, _LAYER),
    Hypothesis("base of the softmax", functions.softmax_base, _LOWER, _LAYER),
    Hypothesis("saturation", operators.saturation, _LOWER, _LAYER),
    Hypothesis("encodings", operators.encodings, _LOWER, _LAYER),
    Hypothesis("joined operands", operators.joined, _LOWER, _LAYER),
    Hypothesis("operands", operators.operands, _LOWER, _LAYER),
    Hypothesis("accumulator", arithmetic.accumulator, _LOWER, _ARITHMETIC),
    Hypothesis("parts", whole_tensor.parts, _READ, _SETS, 2),
    Hypothesis("copied rows", moved.copied, _BUFFERS, _SETS, 2),
    Hypothesis("overwritten memory", moved.overwritten, _BUFFERS, _SETS, 2),
    Hypothesis("stale rows", tiles.stale_rows, _BUFFERS, _SETS, 2),
    Hypothesis("tile border", tiles.halo, _BUFFERS, _SETS, 2),
    Hypothesis("permuted channels", whole_tensor.permuted, _FILE, _SETS, 2),
    Hypothesis("dead channels", whole_tensor.dead, _FILE, _SETS, 2),
    Hypothesis("erased memory", constants.erased, _FILE, _SETS, 2),
    Hypothesis("single change", single.single_changes, _FILE, _SETS, 3),
    Hypothesis("offset of channels", whole_tensor.offset, _LOWER, _SETS, 3),
    Hypothesis("one weight", fitted.one_weight, _FILE, _SETS, 3),
    Hypothesis("bias of channels", fitted.bias_off, _FILE, _SETS, 3),
    Hypothesis("factor of channels", fitted.factor, _FILE, _SETS, 3),
)
"""Every hypothesis, in the order in which it is tried and named."""


GROUP = "tflq.hypotheses"
"""Entry points of hypotheses of other packages (docs/internals/extending.md)."""


def read_table() -> tuple[Hypothesis, ...]:
    """Return every hypothesis; other packages' hypotheses are last."""
    extra = [entry.load() for entry in find_entry_points(GROUP)]
    wrong = [x for x in extra if not isinstance(x, Hypothesis)]
    if wrong:
        raise TflqError(
            f"entry points of {GROUP}: found {type(wrong[0]).__name__}, allowed is a Hypothesis "
            "(docs/internals/extending.md)"
        )
    return (*HYPOTHESES, *extra)
