"""Weights as GAP9's memory holds them: NE16's bit planes, and the dense stream of sub-byte quantized values.

Source: docs/rules/gap9/quantization.md, docs/rules/gap9/ne16.md.

Quantized values are offset binary, q + 2^(bits-1), in TFLite's order [O, KH, KW, I]; depthwise [C, KH, KW, 1]; linear
[O, I].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array

GROUP = 16
WIDE_GROUP, WIDE_MODES = 8, ("3x3", "1x1")
"""Channels of a group where features have 16 bits, and the modes whose layout is known: NE16's open RTL steps 9 b bytes
a group in 3x3 mode, which 8 channels are."""


@dataclass(frozen=True)
class PlaneLayout:
    """How bit planes of one layer lie in memory.

    Attributes:
        mode: "3x3", "3x3dw", "1x1", "linear", or "taps" for other kernels, which run tap by tap in 1x1 mode.
        shape: of the codes: [O, KH, KW, I], depthwise [C, KH, KW, 1], linear [O, I].
        bits: of a quantized value.
        group: input channels whose bits lie together; a multiple of 8.
    """

    mode: str
    shape: tuple[int, ...]
    bits: int
    group: int = GROUP

    @property
    def groups(self) -> int:
        """Number of groups; missing channels are zero bits."""
        channels = self.shape[0] if self.mode == "3x3dw" else self.shape[-1]
        return -(-channels // self.group)

    @property
    def packed_shape(self) -> tuple[int, ...]:
        """Shape of the packed bytes.

        3x3 [O, G, b, 3, 3, bytes], depthwise [1, G, b, 3, 3, bytes], 1x1 [O, G, b, bytes], linear [O, b, G, bytes],
        taps [KH, KW, O, G, b, bytes].
        """
        g, b, width = self.groups, self.bits, self.group // 8
        if self.mode == "linear":
            return (self.shape[0], b, g, width)
        outputs, height, columns, _ = self.shape
        if self.mode == "3x3dw":
            return (1, g, b, height, columns, width)
        if self.mode == "taps":
            return (height, columns, outputs, g, b, width)
        return (outputs, g, b, width) if self.mode == "1x1" else (outputs, g, b, height, columns, width)


ORDERS = {
    "3x3": (0, 3, 4, 1, 2, 5),
    "3x3dw": (0, 3, 4, 1, 2, 5),
    "1x1": (0, 3, 4, 1, 2, 5),
    "taps": (1, 2, 0, 3, 4, 5),
    "linear": (0, 2, 1, 3),
}
"""From [outer, KH, KW, group, plane, bytes] (linear: [outer, group, plane, bytes]) to memory."""


def plane_mode(operator: str, kernel: tuple[int, ...]) -> str:
    """Return the mode of NE16 that a filter runs in.

    Args:
        operator: "conv_2d", "depthwise_conv_2d" or "fully_connected".
        kernel: (height, width); empty for a fully connected layer.
    """
    if operator == "fully_connected":
        return "linear"
    if operator == "depthwise_conv_2d":
        return "3x3dw"
    return {(3, 3): "3x3", (1, 1): "1x1"}.get((kernel[0], kernel[1]), "taps")


def pack_planes(codes: Array, layout: PlaneLayout) -> Array:
    """Return bit planes, uint8[packed_shape].

    Bit k mod 8 of byte k div 8 of plane p is bit p of the code of input channel k of the group.
    """
    rows: Array = codes.reshape(layout.shape)
    if layout.mode == "3x3dw":
        rows = np.moveaxis(rows[..., 0], 0, 2)[None]
    missing = layout.groups * layout.group - rows.shape[-1]
    padded = np.pad(rows.astype(np.uint8), [(0, 0)] * (rows.ndim - 1) + [(0, missing)])
    grouped = padded.reshape(*rows.shape[:-1], layout.groups, 1, layout.group)
    planes = (grouped >> np.arange(layout.bits, dtype=np.uint8)[:, None]) & 1
    packed = np.packbits(planes, axis=-1, bitorder="little").transpose(ORDERS[layout.mode])
    return np.ascontiguousarray(packed).reshape(layout.packed_shape)


def pack_stream(codes: Array, bits: int) -> Array:
    """Return the dense stream: quantized values in C order, `bits` bits each, least significant first.

    Uint8 bytes, bit 0 first.

    No channel or row is aligned; unused bits of the last byte are 0. Eight bits give plain bytes.
    """
    planes = (codes.reshape(-1, 1).astype(np.uint8) >> np.arange(bits, dtype=np.uint8)) & 1
    return np.packbits(planes.reshape(-1), bitorder="little")
