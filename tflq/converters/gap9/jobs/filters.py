"""One filter as NE16 sees it: its mode, its maps, its numbers (docs/rules/gap9/ne16.md#jobs)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from tflq.converters.gap9.operators import FILTERS
from tflq.converters.gap9.packing import GROUP, WIDE_GROUP, plane_mode
from tflq.converters.gap9.passes.choose_engines import NE16
from tflq.errors import UnsupportedError
from tflq.graph import Graph, Node
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node

Map = tuple[int, int, int]
"""Height, width, channels."""

BLOCK, DEPTHWISE_BLOCK = 32, 16
"""Output channels that are computed together."""
SIDE = 3
"""Output pixels of a subtile in either direction."""
LINEAR_GROUP = 256
"""Inputs that a linear job takes at a time."""
LARGEST_PADDING = 2
"""Pixels at a side of one 3x3 job; more must stand in memory."""
_WORD_BYTES = 4
_SHORT_BLOCK = 8


@dataclass(frozen=True)
class Filter:
    """One filter; all its registers and cycles follow from this.

    Attributes:
        mode: "3x3", "3x3dw" (depthwise), "1x1", "linear", or "taps": any other kernel, a 1x1 job for each tap.
        window: kernel, stride, dilation and the padding that the accelerator makes itself.
        padding_value: the code of a padded pixel.
        size_in: of the input as memory holds it: with what is padded there.
        size_out: of the output; of taps, with the channels that are computed and dropped.
        bits: of a weight, 2..8.
        weight_zero_point: the code of weight 0.
        wide: features of 16 bits.
        signed: the output keeps its sign; otherwise it is cut off at 0.
        out_bits: 8, or 32 for sums and values that the cluster clips.
        normalize: multiply, add the bias, shift; otherwise sums leave.
        biased: the bias is added.
        shifts: one shift for each channel; otherwise `right_shift`.
        right_shift: for all channels; with 16-bit features the pre-normalization.
        images: how often it runs: the batch, or the rows of a fully connected layer.
        padded_in_memory: (top, bottom, left, right): pixels of the padding value that stand in memory.
    """

    mode: str
    window: Window
    padding_value: int
    size_in: Map
    size_out: Map
    bits: int
    weight_zero_point: int
    wide: bool = False
    signed: bool = False
    out_bits: int = 8
    normalize: bool = True
    biased: bool = True
    shifts: bool = True
    right_shift: int = 0
    images: int = 1
    padded_in_memory: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def block(self) -> int:
        """Output channels of a subtile."""
        return DEPTHWISE_BLOCK if self.mode == "3x3dw" else BLOCK

    @property
    def input_bytes(self) -> int:
        """Bytes of an input pixel as the accelerator reads them; linear inputs end in zeros up to a whole group."""
        size = self.size_in[2] * (2 if self.wide else 1)
        return ceil(size, GROUP) * GROUP if self.mode == "linear" else size

    @property
    def output_bytes(self) -> int:
        """Bytes of an output pixel."""
        return self.size_out[2] * self.out_bits // 8

    @property
    def plane_bytes(self) -> int:
        """Bytes of one bit plane of a group of 16 input bytes."""
        return (WIDE_GROUP if self.wide else GROUP) // 8

    @property
    def groups(self) -> int:
        """Groups of 16 bytes of an input pixel."""
        return ceil(self.input_bytes, GROUP)

    @property
    def tap_bytes(self) -> int:
        """Bytes of the planes of one tap of all output channels."""
        return self.size_out[2] * self.groups * self.bits * self.plane_bytes

    @property
    def planes_bytes(self) -> int:
        """Bytes of all bit planes."""
        if self.mode == "3x3dw":
            return self.window.taps * self.groups * self.bits * self.plane_bytes
        return self.window.taps * self.tap_bytes

    @property
    def parameter_bytes(self) -> int:
        """Bytes of multipliers, shifts and biases."""
        return 6 * self.size_out[2]

    @property
    def working_set_bytes(self) -> int:
        """Bytes of one image's input and output, the planes and the parameters."""
        maps = prod(self.size_in[:2]) * self.input_bytes + prod(self.size_out[:2]) * self.output_bytes
        return maps + self.planes_bytes + self.parameter_bytes

    @property
    def is_strided(self) -> bool:
        """Whether it runs in jobs of 2x2 outputs."""
        return self.mode in ("3x3", "3x3dw") and self.window.stride == (2, 2)

    @property
    def step(self) -> int:
        """Output rows and columns of a strided job: 2; 1 where halved strides of the output would be no whole bytes."""
        return 1 if self.output_bytes % 2 and max(self.size_out[:2]) > 1 else 2

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates of a cycle in which all columns of the array work.

        3x3: 1296 one-bit products, 9 pixels x 9 taps x 16 channels; 1x1: 9 pixels x 16 channels, bits side by side.
        """
        return {"3x3": 1296 / self.bits, "3x3dw": 81 / self.bits, "linear": LINEAR_GROUP / self.bits}.get(
            self.mode, 144
        )


def is_on_ne16(node: Node) -> bool:
    """Whether a node is a filter that the accelerator computes."""
    return node.operator in FILTERS and node.attributes.text("engine", "") == NE16


def filter_of(graph: Graph, index: int) -> Filter:
    """Return a filter of a quantized graph, lowered or not.

    3x3 jobs pad up to two pixels at a side; other padding stands in memory. Dense 3x3 kernels with a stride other than
    1 and 2x2 or with a dilation run tap by tap.

    Raises:
        UnsupportedError: a depthwise layer that no mode takes.
    """
    node = graph.nodes[index]
    x, weights, y = graph.tensors[node.inputs[0]], graph.tensors[node.inputs[1]], graph.tensors[node.outputs[0]]
    linear = node.operator == "fully_connected"
    window = Window((1, 1)) if linear else window_of_node(node, x.shape, weights.shape)
    images = y.size // y.shape[-1] if linear else x.shape[0]
    rescaling: object = getattr(getattr(node.params, "filter", None), "rescaling", None)
    found = Filter(
        mode=_mode(node, window, weights.shape[3] // x.shape[3] if not linear else 1, graph.where(index)),
        window=window,
        padding_value=int(getattr(getattr(node.params, "filter", None), "padding_code", x.affine.zero_point[0])),
        size_in=(1, 1, weights.shape[-1]) if linear else _map(x.shape),
        size_out=(1, 1, y.shape[-1]) if linear else _map(y.shape),
        bits=weights.affine.bits,
        weight_zero_point=1 << (weights.affine.bits - 1),
        wide=x.affine.bits == 16,
        signed=y.affine.signed,
        out_bits=y.affine.bits,
        right_shift=int(getattr(rescaling, "pre_normalization", 0)),
        images=images,
    )
    return _on_taps(_padded(found))


def streamable(outputs: int) -> int:
    """Return the output channels to compute where sums stream in.

    In the RTL a job whose last block has 1 to 8 channels never ends then; 9 are computed, the others dropped.
    """
    rest = outputs % BLOCK
    return outputs + _SHORT_BLOCK + 1 - rest if 0 < rest <= _SHORT_BLOCK else outputs


def ceil(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def job_mode(operator: str, window: Window) -> str:
    """Return the mode of a filter's jobs: a dense 3x3 kernel of another stride than 1 and 2x2, or dilated, is taps."""
    mode = plane_mode(operator, () if operator == "fully_connected" else window.kernel)
    return "taps" if mode == "3x3" and not _fits(window) else mode


def _fits(window: Window) -> bool:
    return window.dilation == (1, 1) and window.stride in ((1, 1), (2, 2))


def _mode(node: Node, window: Window, multiplier: int, where: str) -> str:
    mode, fits = job_mode(node.operator, window), _fits(window)
    if mode == "3x3dw" and not (fits and window.kernel == (3, 3) and multiplier == 1):
        raise UnsupportedError(
            f"{where}: NE16's depthwise mode takes 3x3 with multiplier 1, stride 1 or 2x2, no dilation; this layer has "
            f"kernel {window.kernel}, multiplier {multiplier}, stride {window.stride}, dilation {window.dilation}"
        )
    return mode


def _padded(layer: Filter) -> Filter:
    """Return the filter with the padding in memory that its jobs cannot make."""
    sides = layer.window.padding
    if not any(sides) or (layer.mode in ("3x3", "3x3dw") and max(sides) <= LARGEST_PADDING):
        return layer
    top, bottom, left, right = sides
    height, width, channels = layer.size_in
    window = replace(layer.window, top=0, bottom=0, left=0, right=0)
    size_in = (height + top + bottom, width + left + right, channels)
    return replace(layer, window=window, size_in=size_in, padded_in_memory=sides)


def _on_taps(layer: Filter) -> Filter:
    """Return a filter of taps: 32-bit outputs, which the cluster clips, and channels enough for sums to stream in."""
    if layer.mode != "taps":
        return layer
    rows, columns, outputs = layer.size_out
    return replace(layer, out_bits=8 * _WORD_BYTES, size_out=(rows, columns, streamable(outputs)))


def _map(shape: tuple[int, ...]) -> Map:
    return shape[1], shape[2], shape[3]
