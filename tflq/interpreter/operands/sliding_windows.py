"""Sliding windows over height and width: kernel size, strides, dilations, explicit padding, output size."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Attributes, DType
from tflq.interpreter.operands.checks import require_result

Pair = tuple[int, int]


@dataclass(frozen=True)
class Window:
    """A sliding window over height and width.

    Output row i reads input rows i * stride[0] - top + ky * dilation[0], ky < kernel[0]; columns likewise.

    Attributes:
        kernel: Number of taps, (height, width).
        stride: Steps between windows, (vertical, horizontal).
        dilation: Distance of neighboring taps, (vertical, horizontal).
        top: Rows of padding above the image.
        bottom: Rows of padding below the image; rows outside every window may be omitted.
        left: Columns of padding to the left.
        right: Columns of padding to the right.
    """

    kernel: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0

    def __post_init__(self) -> None:
        for name in ("kernel", "stride", "dilation"):
            if min(getattr(self, name)) < 1:
                raise GraphError(f"window: {name} is {getattr(self, name)}, both numbers must be 1 or more")
        if min(self.top, self.bottom, self.left, self.right) < 0:
            raise GraphError(f"window: padding is {self.padding}, all numbers must be 0 or more")

    @cached_property
    def padding(self) -> tuple[int, int, int, int]:
        """(top, bottom, left, right)."""
        return (self.top, self.bottom, self.left, self.right)

    @property
    def taps(self) -> int:
        """Number of taps of one channel."""
        return self.kernel[0] * self.kernel[1]

    @cached_property
    def extent(self) -> Pair:
        """Rows and columns from the first to the last tap: (kernel - 1) * dilation + 1."""
        return (
            (self.kernel[0] - 1) * self.dilation[0] + 1,
            (self.kernel[1] - 1) * self.dilation[1] + 1,
        )

    @cached_property
    def is_pointwise(self) -> bool:
        """Whether each output reads one pixel, without padding."""
        return self.kernel == (1, 1) and not any(self.padding)

    def output_size(self, input_size: Pair) -> Pair:
        """Return (height, width) of the output: (input + padding - extent) // stride + 1.

        Raises:
            GraphError: The window does not fit the padded image.
        """
        height = input_size[0] + self.top + self.bottom - self.extent[0]
        width = input_size[1] + self.left + self.right - self.extent[1]
        if height < 0 or width < 0:
            raise GraphError(f"a window of {self.extent} does not fit an input of {input_size} with {self.padding}")
        return height // self.stride[0] + 1, width // self.stride[1] + 1


def window_of(attributes: Attributes, input_size: Pair, kernel: Pair) -> Window:
    """Return the window of a TFLite operator from its attributes.

    SAME: output = ceil(input / stride); total = max(0, (output - 1) * stride + extent - input);
    top = total // 2, bottom = total - top. VALID: no padding.

    Args:
        attributes: Attributes padding ("same" or "valid"), stride_h, stride_w, dilation_h_factor, dilation_w_factor
            (default: 1).
        input_size: Size of the image, (height, width).
        kernel: Size of the kernel, (height, width).

    Raises:
        UnsupportedError: Another padding.
        GraphError: A size below 1, or a window that does not fit the image.

    Source: TFLite kernels/padding.h, ComputePaddingHeightWidth.
    """
    stride = (attributes.integer("stride_h"), attributes.integer("stride_w"))
    dilation = (attributes.integer("dilation_h_factor", 1), attributes.integer("dilation_w_factor", 1))
    window = Window(kernel, stride, dilation)
    padding = attributes.text("padding")
    if padding == "valid":
        window.output_size(input_size)
        return window
    if padding != "same":
        raise UnsupportedError(f"padding '{padding}'; known are same, valid")
    top, bottom = _same(input_size[0], window.extent[0], stride[0])
    left, right = _same(input_size[1], window.extent[1], stride[1])
    padded = (top + input_size[0] + bottom, left + input_size[1] + right)
    require_result(padded, DType.INT8, "the padded image, without channels,")
    return Window(kernel, stride, dilation, top, bottom, left, right)


def require_convolved(window: Window, shape: tuple[int, ...], outputs: int) -> None:
    """Check the bytes of the int32 accumulators of a convolution of an image [N, H, W, C] with `outputs` channels.

    Raises:
        UnsupportedError: More bytes than the limit `max_bytes`.
        GraphError: the window does not fit the image.
    """
    height, width = window.output_size((shape[1], shape[2]))
    require_result((shape[0], height, width, outputs), DType.INT32, "the accumulators")


def _same(size: int, extent: int, stride: int) -> Pair:
    output = -(-size // stride)
    total = max(0, (output - 1) * stride + extent - size)
    return total // 2, total - total // 2
