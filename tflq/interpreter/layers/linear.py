"""Convolutions and fully connected layers in every arithmetic of integers: exact sums, then the scheme's own rule.

acc[..., o] = sum over taps and channels of x * w[o, ...], exactly; taps outside the image contain the scheme's padding
value. The scheme folds zero points into its bias, and takes accumulators to quantized values (its epilogue).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import (
    Convolution,
    MatrixProduct,
    accumulate_in_order,
    accumulate_product,
    gain_in_order,
    prepare_convolution,
    prepare_product,
)
from tflq.interpreter.layers.reals import RealMap
from tflq.interpreter.numerics.requantize import StepMaps, requantize
from tflq.interpreter.operands.products import check_shapes, output_shape
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class Linear:
    """View of a linear layer with constant weights, for code that computes it in another way.

    Attributes:
        weights: integers [O, KH, KW, C/groups], their zero point taken off; [O, 1, 1, K] of a fully connected layer.
        window: None if it is fully connected.
        groups: number of groups.
        pad_value: Value of taps outside the image.
        maps: Map from sums of w * x over stored quantized values x to quantized values, or to floating-point values.
    """

    weights: Array
    window: Window | None
    groups: int
    pad_value: int
    maps: StepMaps | RealMap


def linear_product(weights: Array, maps: StepMaps | RealMap) -> Linear:
    """Return a fully connected layer of weights [O, K]."""
    return Linear(weights[:, None, None, :], None, 1, 0, maps)


class Scheme:
    """Computation of a linear layer in one arithmetic, without its shape; subclasses are frozen dataclasses.

    Attributes:
        weights: int64[O, ...], output channel first, their zero point taken off.
        dtype: storage of the result.
        step_map: proven map from accumulators to quantized values, fitted from `exact`; None if the rule runs.
    """

    weights: Integers
    dtype: np.dtype[np.generic]
    step_map: StepMaps | None

    @property
    def pad_value(self) -> int:
        """Value of taps outside the image: the zero point that the bias folds."""
        raise NotImplementedError

    @property
    def real_map(self) -> RealMap | None:
        """Map from accumulators to floating-point values; None if the output is quantized."""
        return None

    @property
    def channel_zero_points(self) -> Integers | None:
        """int64[C] to take off the input before it is multiplied; None if the bias folds one zero point for all."""
        return None

    @property
    def maps(self) -> StepMaps | RealMap | None:
        """Map that serves all accumulators of a layer; None if the rule itself runs."""
        return self.real_map if self.step_map is None else self.step_map

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> quantized values int64[..., O]."""
        raise NotImplementedError

    def finish(self, accumulators: Array) -> Array:
        """Return quantized values for exact accumulators [..., O] in float32, float64 or int64."""
        return requantize(self.step_map, self.exact, accumulators, self.dtype)


@dataclass(frozen=True, eq=False)
class ConvolutionLayer:
    """One convolution.

    Attributes:
        filter: weights and rule.
        groups: number of groups; the number of input channels if it is depthwise.
        prepared: the packed weights, and the window.
    """

    filter: Scheme
    groups: int
    prepared: Convolution

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None if no map serves it, or zero points are subtracted first."""
        maps, weights, kernel = self.filter.maps, self.filter.weights, self.prepared.window.kernel
        if maps is None or self.filter.channel_zero_points is not None:
            return None
        depth = self.prepared.channels[0] // self.groups
        shaped = weights if weights.shape[1:] == (*kernel, depth) else np.moveaxis(weights, 1, 3)
        return Linear(shaped, self.prepared.window, self.groups, self.filter.pad_value, maps)

    def accumulated(self, x: Array) -> Array:
        """Return the multiplied values: stored values, or stored values without their channels' zero points."""
        zero_points = self.filter.channel_zero_points
        return x if zero_points is None else x.astype(np.int32) - zero_points.astype(np.int32)


@dataclass(frozen=True, eq=False)
class ProductLayer:
    """One fully connected layer.

    Attributes:
        filter: weights [O, K] and rule.
        prepared: the packed weights.
        keep: whether the output keeps the input's axes; else it is [rows, O].
    """

    filter: Scheme
    prepared: MatrixProduct
    keep: bool

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None if no map serves it."""
        maps = self.filter.maps
        return None if maps is None else linear_product(self.filter.weights, maps)


FindScheme = Callable[[Node, Operands, int], Scheme]
"""Makes the scheme of a node from the channel axis of its weights: 0, or 3 where they are depthwise."""


def lower_convolution(scheme: Scheme, operands: Operands, channel_axis: int, window: Window) -> ConvolutionLayer:
    """Pack the weights of a convolution.

    Args:
        scheme: Scheme with weights [O, KH, KW, C/groups], depthwise ones of channel axis 3 [O, 1, KH, KW].
        operands: the input is [N, H, W, C].
        channel_axis: 0, or 3 for weights that were [1, KH, KW, O].
        window: kernel, stride, dilation, padding.

    Raises:
        GraphError: shapes that contradict each other.
    """
    x = operands.input(0)
    shaped = scheme.weights if channel_axis == 0 else np.moveaxis(scheme.weights, 1, 3)
    channels, depth = x.shape[3], shaped.shape[3]
    if channels % depth:
        raise GraphError(f"weights {operands.input(1).shape} do not fit {channels} input channels")
    magnitude = _magnitude(x) * (1 if scheme.channel_zero_points is None else 2)
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    groups = channels // depth
    return ConvolutionLayer(scheme, groups, prepare_convolution(shaped, window, groups, magnitude, width))


def run_convolution(params: ConvolutionLayer, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run a convolution: quantized values [S, N, H, W, C] -> [S, N, OH, OW, O]."""
    accumulators = accumulate_in_order(params.prepared, params.accumulated(x), params.filter.pad_value)
    return (params.filter.finish(accumulators),)


def samples_last(params: object, operands: Operands) -> float | None:
    """Return the gain of images with samples last in a `ConvolutionLayer`, as `gain_in_order`."""
    assert isinstance(params, ConvolutionLayer)
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(params.prepared, params.filter.step_map is not None, (height, width))


def lower_product(scheme: Scheme, node: Node, operands: Operands) -> ProductLayer:
    """Pack the weights [O, K] of a fully connected layer.

    Raises:
        GraphError: an input that does not fall into rows.
    """
    x = operands.input(0)
    keep = check_shapes(node, x, operands.input(1))
    return ProductLayer(scheme, prepare_product(scheme.weights, _magnitude(x)), keep)


def run_product(params: ProductLayer, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run a fully connected layer: [S, *any] with elements that form rows of K -> [S, rows, O], or [S, ..., O]."""
    weights = params.filter.weights
    rows = x.reshape(x.shape[0], -1, weights.shape[1])
    y = params.filter.finish(accumulate_product(params.prepared, rows))
    return (y.reshape(output_shape(x.shape, weights.shape, params.keep)),)


def linear_kernels(find: FindScheme, rule: str, source: str) -> dict[str, Kernel]:
    """Return CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED of an arithmetic with TFLite's windows.

    Args:
        find: makes the scheme of a node.
        rule: Rule from the accumulator to the result, in one line.
        source: Source of the rule.
    """

    def convolution(channel_axis: int) -> Kernel:
        def lower(node: Node, operands: Operands) -> ConvolutionLayer:
            scheme = find(node, operands, channel_axis)
            window = window_of_node(node, operands.input(0).shape, operands.input(1).shape)
            return lower_convolution(scheme, operands, channel_axis, window)

        return Kernel(lower, run_convolution, rule, source, samples_last=samples_last)

    def lower(node: Node, operands: Operands) -> ProductLayer:
        return lower_product(find(node, operands, 0), node, operands)

    product = Kernel(lower, run_product, rule, source)
    return {"conv_2d": convolution(0), "depthwise_conv_2d": convolution(3), "fully_connected": product}


def _magnitude(x: Tensor) -> int:
    return max(-x.dtype.minimum, x.dtype.maximum)
