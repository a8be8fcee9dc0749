"""Cycles of a filter on NE16 alone, equal to its open RTL, from trigger to end (docs/guides/estimate.md).

Memory never refuses. A subtile is 3x3 output pixels and a block of k <= 32 output channels (depthwise 16). With b
weight bits and G groups of 16 input bytes it takes

    3x3 G (45 + b k); 1x1 G (33 + k); linear ceil(U / 256) (36 + b k); depthwise 45 + k + b k

then 8 + ceil(k/4) to normalize, 8 more with a shift for each channel, 9 + ceil(k/8) more with a bias; 13 to write 8-bit
outputs, 4 + 9 ceil(k/8) for 32 bits; 12 + 9 ceil(k/8) + 5 (G - 1) where sums stream in.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

from tflq.converters.gap9.jobs.filters import LINEAR_GROUP, SIDE, Filter, ceil

_LOADS = {"linear": 22, "1x1": 19, "taps": 19}
_LOAD = 31
"""Cycles to load the inputs of a subtile, a group."""


@dataclass(frozen=True)
class Cycles:
    """What the cycles go to.

    Attributes:
        products: bit planes times features.
        features: inputs that are loaded.
        weights: the weight offset, and the index of the next weights.
        normalize: multipliers, shifts and biases, loaded and applied.
        sums: outputs that leave, and sums that stream in.
    """

    products: int
    features: int
    weights: int
    normalize: int
    sums: int

    @property
    def total(self) -> int:
        """All of them."""
        return sum(astuple(self))

    def times(self, count: int) -> Cycles:
        """Return the cycles of so many."""
        return Cycles(*(count * part for part in astuple(self)))

    def plus(self, other: Cycles) -> Cycles:
        """Return the sum."""
        return Cycles(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


NONE = Cycles(0, 0, 0, 0, 0)


def cycles_of(layer: Filter) -> Cycles:
    """Return the cycles of all jobs of a filter."""
    rows, columns, _ = layer.size_out
    subtiles = ceil(rows, SIDE) * ceil(columns, SIDE)
    if layer.is_strided:
        subtiles = ceil(rows, layer.step) * ceil(columns, layer.step)
    if layer.mode != "taps":
        return _job(layer, layer.normalize, False).times(layer.images * subtiles)
    taps, found = layer.window.taps, NONE
    for tap in range(taps):
        found = found.plus(_job(layer, layer.normalize and tap == taps - 1, tap > 0))
    return found.times(layer.images * subtiles)


def _job(layer: Filter, normalize: bool, stream_in: bool) -> Cycles:
    """Cycles of one spatial subtile, all output channels."""
    full, rest = divmod(layer.size_out[2], layer.block)
    found = _block(layer, layer.block, normalize, stream_in).times(full)
    return found.plus(_block(layer, rest, normalize, stream_in)) if rest else found


def _block(layer: Filter, k: int, normalize: bool, stream_in: bool) -> Cycles:
    """Cycles of one spatial subtile and k output channels."""
    is_depthwise, is_bytewise = layer.mode == "3x3dw", layer.mode in ("1x1", "taps")
    groups = 1 if is_depthwise else ceil(layer.input_bytes, LINEAR_GROUP) if layer.mode == "linear" else layer.groups
    norm = 8 + ceil(k, 4) + 8 * layer.shifts + (9 + ceil(k, 8)) * layer.biased if normalize else 0
    out = 4 + 9 * (1 if layer.out_bits == 8 else ceil(k, 8))
    incoming = 12 + 9 * ceil(k, 8) + 5 * (groups - 1) if stream_in else 0
    return Cycles(
        products=groups * (6 + (k if is_bytewise else k * layer.bits)),
        features=groups * _LOADS.get(layer.mode, _LOAD),
        weights=groups * (6 + k * is_depthwise + 2),
        normalize=norm,
        sums=out + incoming,
    )
