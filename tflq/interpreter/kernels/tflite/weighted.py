"""Common parts of layers with weights in TFLite's integer arithmetic: zero points, folded bias, packing.

acc = sum of (w - zw) * x with stored x, padding holding zi; total = acc + bias - zi * sum(w - zw). That is the
reference kernels' bias plus the sum over taps inside the image of (w - zw) * (x - zi). Weights or a bias that are
computed at run time are packed for each sample anew, and the rule itself runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np

from tflq.arrays import Integers
from tflq.errors import GraphError
from tflq.graph import Array, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rule, make_rescale
from tflq.interpreter.samples import each_sample

Packed = TypeVar("Packed")
Layer = TypeVar("Layer", bound="WeightedLayer[Any]")


@dataclass(frozen=True, eq=False)
class LayerConstants(Generic[Packed]):
    """The constants derived from weights and bias.

    Attributes:
        weights: integers [O, ...], their zero point taken off.
        bias: int64[O] as in the file, zeros if there is none.
        rescale: rule, folded bias, proven map.
        prepared: the packed weights.
    """

    weights: Array
    bias: Integers
    rescale: Rescale
    prepared: Packed


@dataclass(frozen=True, eq=False)
class WeightedLayer(Generic[Packed]):
    """A layer with weights and bias that are constants, or computed at run time.

    Attributes:
        input_zero_point: zi, also the padding value.
        weights_zero_point: zw; 0 except for uint8, and if weights are quantized per channel.
        rule: Rule from totals to quantized values.
        constants: None if weights or bias are computed at run time.
    """

    input_zero_point: int
    weights_zero_point: int
    rule: Rule
    constants: LayerConstants[Packed] | None

    def make(self, weights: Array, bias: Array | None, fit: bool) -> LayerConstants[Packed]:
        """Return the constants of weights [O, ...] and a bias, as `make_constants`."""
        raise NotImplementedError

    def compute(self, constants: LayerConstants[Packed], x: Array) -> Array:
        """Return the quantized values of x."""
        raise NotImplementedError

    def run(self, x: Array, weights: Array, bias: Array | None) -> Array:
        """Return the quantized values of x.

        Args:
            x: T[S or 1, ...].
            weights: [S or 1, O, ...]; used if there are no constants.
            bias: [S or 1, O] or None; likewise.
        """
        if self.constants is not None:
            return self.compute(self.constants, x)
        results = []
        for image, own, added in each_sample(x, weights, bias):
            made = self.make(own[0], None if added is None else added[0], fit=False)
            results.append(self.compute(made, image))
        return np.concatenate(results)


def with_constants(layer: Layer, weights: Array | None, bias: Tensor | None) -> Layer:
    """Return a layer with the constants of its weights and bias, if they are known."""
    if weights is None or (bias is not None and bias.data is None):
        return layer
    constants = layer.make(weights, None if bias is None else bias.data, fit=True)
    made: Layer = replace(cast(Any, layer), constants=constants)
    return made


def make_constants(
    rule: Rule,
    bounds: tuple[int, int],
    zero_points: tuple[int, int],
    weights: Array,
    bias: Array | None,
    pack: Callable[[Array, int], Packed],
    fit: bool,
) -> LayerConstants[Packed]:
    """Take zero points off, fold them into the bias, and pack.

    Args:
        rule: Rule from totals to quantized values.
        bounds: smallest and largest x that is multiplied.
        zero_points: zi (0 if it is subtracted from x before) and zw.
        weights: quantized values [O, ...].
        bias: [O] or None.
        pack: packs weights without zero point, given the largest |x|.
        fit: whether to look for a proven map; worthwhile if the constants serve many samples.

    Raises:
        GraphError: a bias of another size.
    """
    wide = np.int32 if weights.dtype == np.int16 else np.int16
    zi, zw = zero_points
    shifted = weights if zw == 0 else weights.astype(wide) - zw
    outputs = weights.shape[0]
    plain = np.zeros(outputs, np.int64) if bias is None else bias.astype(np.int64).reshape(-1)
    if plain.shape[0] != outputs:
        what = "rows" if weights.ndim == 2 else "output channels"
        raise GraphError(f"the bias has {plain.shape[0]} elements, the weights have {outputs} {what}")
    folded = plain - zi * shifted.astype(np.int64).reshape(outputs, -1).sum(axis=1)
    rescale = Rescale(rule, folded, None)
    if fit:
        rescale = make_rescale(rule, folded, *accumulator_range(shifted, *bounds))
    return LayerConstants(shifted, plain, rescale, pack(shifted, max(-bounds[0], bounds[1])))
