"""The registers of NE16's jobs: which follow from a filter and where it lies in memory.

Source: docs/rules/gap9/ne16.md#jobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tflq.converters.gap9.jobs.filters import LINEAR_GROUP, SIDE, Filter, ceil
from tflq.converters.gap9.packing import GROUP
from tflq.interpreter.operands.sliding_windows import Window

NAMES = (
    "WEIGHTS_PTR", "INFEAT_PTR", "OUTFEAT_PTR", "SCALE_PTR", "SCALE_SHIFT_PTR", "SCALE_BIAS_PTR",
    "INFEAT_D0_STRIDE", "INFEAT_D1_STRIDE", "INFEAT_D2_STRIDE",
    "OUTFEAT_D0_STRIDE", "OUTFEAT_D1_STRIDE", "OUTFEAT_D2_STRIDE",
    "WEIGHTS_D0_STRIDE", "WEIGHTS_D1_STRIDE", "WEIGHTS_D2_STRIDE",
    "SUBTILE_REM0", "SUBTILE_REM1", "SUBTILE_REM2", "SUBTILE_NB0", "SUBTILE_NB1",
    "PADDING", "WEIGHT_OFFSET", "FILTER_MASK", "CONFIG0",
)  # fmt: skip
"""The 24 registers in the order of their addresses, 0x20 + 4 n; the first six are pointers."""
POINTERS = 6
_EIGHT_WORDS = 32
_HALO = 2

Registers = Mapping[str, int]
"""Name -> uint32; what is omitted is 0."""


@dataclass(frozen=True)
class Addresses:
    """Where the parts of a filter begin; `features` is the first pixel that stands in memory."""

    features: int
    weights: int
    output: int
    multiplier: int
    shift: int
    bias: int


def jobs_of(layer: Filter, at: Addresses) -> Iterator[Registers]:
    """Yield the registers of a filter's jobs in order, one image after the other."""
    height, width, _ = layer.size_in
    rows, columns, _ = layer.size_out
    for image in range(layer.images):
        here = replace(
            at,
            features=at.features + image * height * width * layer.input_bytes,
            output=at.output + image * rows * columns * layer.output_bytes,
        )
        for job in _jobs(layer, here):
            yield {name: value & 0xFFFFFFFF for name, value in job.items()}


def _jobs(layer: Filter, at: Addresses) -> Iterator[dict[str, int]]:
    """Yield the jobs of one image."""
    if layer.is_strided:
        yield from _strided(layer, at)
    elif layer.mode == "taps":
        yield from _taps(layer, at)
    else:
        yield _whole(layer, at)


def config_word(
    *,
    bits: int,
    wide: bool,
    mode: str,
    strided: bool,
    out_bits: int,
    signed: bool,
    right_shift: int,
    normalize: bool = True,
    shifts: bool = True,
    biased: bool = True,
    stream_in: bool = False,
) -> int:
    """Return CONFIG0.

    QWM1 = weight bits - 1 (2:0), MODE16 (3), STREAMOUT = normalize (4), FILTER_MODE 3x3, depthwise, 1x1 (6:5), LINEAR
    (7), STRIDED_2X2 (8), NORM_BITS 8 (13:12), STREAMIN (14), weight offset of the layer (15), RIGHT_SHIFT (20:16),
    QUANT_BITS 8, 16, 32 (22:21), QUANT_RECT, here a signed output (23), shifts (24) and bias (25) loaded with the norm.
    """
    fields = (
        (bits - 1, 0),
        (wide, 3),
        (normalize, 4),
        ({"3x3": 0, "3x3dw": 1}.get(mode, 2), 5),
        (mode == "linear", 7),
        (strided, 8),
        (stream_in, 14),
        (1, 15),
        (right_shift, 16),
        ({8: 0, 16: 1, 32: 2}[out_bits], 21),
        (signed, 23),
        (shifts, 24),
        (biased, 25),
    )
    return sum(int(value) << bit for value, bit in fields)


def _config0(layer: Filter, *, stream_in: bool = False, normalize: bool = True, strided: bool = False) -> int:
    """Return CONFIG0 of one job; a job that only sums leaves its sums with their sign."""
    scaled = layer.normalize and normalize
    return config_word(
        bits=layer.bits,
        wide=layer.wide,
        mode=layer.mode,
        strided=strided,
        out_bits=layer.out_bits,
        signed=layer.signed or not scaled,
        right_shift=layer.right_shift if scaled else 0,
        normalize=scaled,
        shifts=layer.shifts and scaled,
        biased=layer.biased and scaled,
        stream_in=stream_in,
    )


def _common(layer: Filter, at: Addresses, config0: int) -> dict[str, int]:
    """Return what channels, weights and addresses decide."""
    outputs, plane = layer.size_out[2], layer.bits * layer.plane_bytes
    groups = layer.groups
    inputs, unit = layer.input_bytes, GROUP
    strides = {
        "3x3": (9 * layer.plane_bytes, 9 * plane * groups, 0),
        "3x3dw": (9 * layer.plane_bytes, 0, 0),
        "1x1": (plane, plane * groups, 0),
        "linear": (inputs // 8, layer.bits * inputs // 8, _EIGHT_WORDS * layer.bits * inputs // 8),
    }[layer.mode]
    if layer.mode == "linear":
        inputs, unit = groups, LINEAR_GROUP // GROUP
    return {
        "WEIGHTS_PTR": at.weights,
        "SCALE_PTR": at.multiplier,
        "SCALE_SHIFT_PTR": at.shift,
        "SCALE_BIAS_PTR": at.bias,
        "OUTFEAT_D0_STRIDE": _EIGHT_WORDS,
        "WEIGHTS_D0_STRIDE": strides[0],
        "WEIGHTS_D1_STRIDE": strides[1],
        "WEIGHTS_D2_STRIDE": strides[2],
        "SUBTILE_REM0": _halves(outputs % layer.block or layer.block, inputs % unit or unit),
        "SUBTILE_NB0": _halves(ceil(outputs, layer.block), ceil(inputs, unit)),
        "WEIGHT_OFFSET": -layer.weight_zero_point,
        "CONFIG0": config0,
    }


def _whole(layer: Filter, at: Addresses, *, stream_in: bool = False, normalize: bool = True) -> dict[str, int]:
    """One job over the whole map: 3x3 and depthwise of stride 1, 1x1 of any stride, linear."""
    common = _common(layer, at, _config0(layer, stream_in=stream_in, normalize=normalize))
    if layer.mode == "linear":
        pointers = {"INFEAT_PTR": at.features, "OUTFEAT_PTR": at.output}
        return {**common, **pointers, "INFEAT_D0_STRIDE": GROUP, "SUBTILE_NB1": _halves(1, 1)}
    width, pixel = layer.size_in[1], layer.input_bytes
    rows, columns, _ = layer.size_out
    window = layer.window
    vertical, horizontal = window.stride
    halo = 0 if layer.mode == "1x1" else _HALO
    sides = (window.top, _from_the_end(columns, window.right), _from_the_end(rows, window.bottom), window.left)
    return {
        **common,
        "INFEAT_PTR": at.features - (window.top * width + window.left) * pixel,
        "OUTFEAT_PTR": at.output,
        "INFEAT_D0_STRIDE": pixel * horizontal,
        "INFEAT_D1_STRIDE": pixel * width * vertical,
        "OUTFEAT_D1_STRIDE": layer.output_bytes,
        "OUTFEAT_D2_STRIDE": layer.output_bytes * columns,
        "SUBTILE_REM1": _halves(rows % SIDE, columns % SIDE),
        "SUBTILE_REM2": _halves(_last_inputs(rows, halo), _last_inputs(columns, halo)),
        "SUBTILE_NB1": _halves(ceil(rows, SIDE), ceil(columns, SIDE)),
        "PADDING": _padding(*sides, layer.padding_value),
    }


def _last_inputs(outputs: int, halo: int) -> int:
    """Return the inputs that the last subtile reads, padded ones too; 0 where it is a whole one."""
    rest = outputs % SIDE
    return rest + halo if rest else 0


def _from_the_end(outputs: int, padded: int) -> int:
    """Return the padding of the right or bottom, counted from the fifth input of the last subtile backwards."""
    rest = outputs % SIDE
    return padded + (SIDE - rest if rest else 0) if padded else 0


def _strided(layer: Filter, at: Addresses) -> Iterator[dict[str, int]]:
    """Yield a job for every 2x2 outputs of a 3x3 layer of stride 2: of the 3x3 from 5x5 inputs the corners are kept."""
    height, width, _ = layer.size_in
    rows, columns, _ = layer.size_out
    pixel, common = layer.output_bytes, _common(layer, at, _config0(layer, strided=True))
    for row in range(0, rows, layer.step):
        for column in range(0, columns, layer.step):
            down, across = min(layer.step, rows - row), min(layer.step, columns - column)
            first_row, first_column = 2 * row - layer.window.top, 2 * column - layer.window.left
            sides = (
                max(0, -first_row),
                _unread(first_column, across, width),
                _unread(first_row, down, height),
                max(0, -first_column),
            )
            yield {
                **common,
                "INFEAT_PTR": at.features + (first_row * width + first_column) * layer.input_bytes,
                "OUTFEAT_PTR": at.output + (row * columns + column) * pixel,
                "INFEAT_D0_STRIDE": layer.input_bytes,
                "INFEAT_D1_STRIDE": layer.input_bytes * width,
                "OUTFEAT_D1_STRIDE": pixel // 2,
                "OUTFEAT_D2_STRIDE": pixel * columns // 2,
                "SUBTILE_REM1": _halves(int(down == 1), int(across == 1)),
                "SUBTILE_REM2": _halves(SIDE if down == 1 else 0, SIDE if across == 1 else 0),
                "SUBTILE_NB1": _halves(1, 1),
                "PADDING": _padding(*sides, layer.padding_value),
            }


def _unread(first: int, outputs: int, size: int) -> int:
    """Return how many of five inputs from `first` on, counted backwards, are not read or lie behind the map."""
    needed = 2 * outputs + 1
    return 5 - needed + max(0, first + needed - size)


def _taps(layer: Filter, at: Addresses) -> Iterator[dict[str, int]]:
    """Yield a 1x1 job for each tap: sums of 32 bits in memory, normalized by the last."""
    width, window = layer.size_in[1], layer.window
    single = replace(layer, mode="1x1", window=Window((1, 1), window.stride))
    last = window.taps - 1
    for tap in range(window.taps):
        y, x = divmod(tap, window.kernel[1])
        offset = (y * window.dilation[0] * width + x * window.dilation[1]) * layer.input_bytes
        here = replace(at, features=at.features + offset, weights=at.weights + tap * layer.tap_bytes)
        yield _whole(single, here, stream_in=tap > 0, normalize=tap == last)


def _padding(top: int, right: int, bottom: int, left: int, value: int) -> int:
    return top << 28 | right << 24 | bottom << 20 | left << 16 | value & 0xFFFF


def _halves(high: int, low: int) -> int:
    return (high & 0xFFFF) << 16 | low & 0xFFFF
