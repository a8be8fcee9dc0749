"""Layers on logarithmic quantized values: inputs get one z, then the float kernel runs (docs/rules/nnie.md#layers).

First step of every quantizing layer: its computed inputs become logarithmic quantized values with one z for all of
them; constant weights become such with one z for all channels. Then the float kernel runs on the dequantized values,
with sums of float32 in TFLite's order and a float bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.errors import GraphError, InputError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.float.products import FloatFullyConnected
from tflq.interpreter.kernels.nnie.logarithm import (
    Scheme,
    dequantize,
    fake_quantize,
    quantize,
    scheme_of,
    true_form,
    z_of,
)
from tflq.interpreter.registry import Kernel, kernel, kernel_name


@dataclass(frozen=True)
class InputQuantizer:
    """How a layer sees its inputs.

    Attributes:
        scheme: 8 or 16 bits.
        z: z_a.
        formula: "library", "page" or "mqbench".
        where: the layer, for messages.
    """

    scheme: Scheme
    z: int
    formula: str
    where: str

    def apply(self, x: Singles) -> Singles:
        """Return the dequantized values of an input.

        Raises:
            InputError: infinity.
        """
        try:
            return fake_quantize(x, self.z, self.scheme, self.formula)
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from None


@dataclass(frozen=True, eq=False)
class QuantizedWeights:
    """The weights of a layer.

    Attributes:
        z: z_w, from the layer's largest |w|.
        sign: int8[*shape of the weights].
        codes: int16[*shape], q.
        stored: uint8[*shape] in true form for 8 bits; None for 16 (the packing is unpublished).
        values: float32[*shape], the dequantized values.
    """

    z: int
    sign: NDArray[np.int8]
    codes: NDArray[np.int16]
    stored: NDArray[np.uint8] | None
    values: Singles


@dataclass(frozen=True, eq=False)
class Quantized:
    """A layer: quantized inputs, then the float kernel.

    Attributes:
        inputs: Quantization of each input.
        inner: Params of the float kernel.
        quantized: Whether the layer quantizes each input.
        weights: Weights that replace input 1; None in layers without.
    """

    inputs: InputQuantizer
    inner: object
    quantized: tuple[bool, ...]
    weights: QuantizedWeights | None = None


def _inputs(node: Node, where: str) -> InputQuantizer:
    """Read bits, clipping value and formula from the node.

    Raises:
        GraphError: an attribute is missing: the graph was not quantized for NNIE.
        UnsupportedError: another width.
    """
    scheme = scheme_of(node.attributes.integer("bits"))
    formula = node.attributes.text("formula", "library")
    return InputQuantizer(scheme, z_of(node.attributes.real("activation_clipping"), scheme, formula), formula, where)


def _lower(node: Node, operands: Operands) -> Quantized:
    """Quantize all computed float inputs; raises as the float kernel."""
    computed = [t is not None and not t.is_constant and t.dtype is DType.FLOAT32 for t in operands.inputs]
    inner = kernel("float", kernel_name(node)).lower(node, operands)
    return Quantized(_inputs(node, operands.where), inner, tuple(computed))


def _lower_weighted(node: Node, operands: Operands, position: int) -> Quantized:
    """Quantize the weights, input 1, which must be constant, and the data at a position; raises as the float kernel.

    Raises:
        GraphError: weights computed at run time, or infinite.
        UnsupportedError: as `z_of`.
    """
    inner, inputs = kernel("float", node.operator).lower(node, operands), _inputs(node, operands.where)
    reals = np.asarray(operands.constant(1), np.float32)
    if reals.size == 0:
        raise GraphError(f"{operands.where}: weights of shape {reals.shape} are empty")
    try:
        z = z_of(np.abs(reals).max(), inputs.scheme, inputs.formula)
        sign, codes = quantize(reals, z, inputs.scheme, inputs.formula)
    except (InputError, UnsupportedError) as error:
        raise GraphError(f"weights '{operands.input(1).name}': {error}") from None
    stored = true_form(sign, codes) if inputs.scheme.bits == 8 else None
    weights = QuantizedWeights(z, sign, codes, stored, dequantize(sign, codes, z, inputs.scheme))
    if isinstance(inner, FloatFullyConnected):
        inner = replace(inner, constant=weights.values)
    return Quantized(inputs, inner, tuple(p == position for p in range(len(operands.inputs))), weights)


def _run(operator: str, params: Quantized, arrays: tuple[Array | None, ...]) -> tuple[Array, ...]:
    pairs = zip(arrays, params.quantized, strict=False)
    seen = [params.inputs.apply(cast(Singles, x)) if own else x for x, own in pairs]
    if params.weights is not None:
        seen[1] = params.weights.values[None]
    return kernel("float", operator).run(params.inner, *seen)


def logarithmic_kernel(operator: str) -> Kernel:
    """Return a kernel that runs the operator's float kernel on dequantized logarithmic values."""

    def run(params: Quantized, *arrays: Array) -> tuple[Array, ...]:
        return _run(operator, params, arrays)

    rule = f"{operator} of what logarithmic values with one z stand for, in float32"
    return Kernel(_lower, run, rule, "docs/rules/nnie.md#layers")


def _weighted_row(operator: str, position: int) -> Kernel:
    """Return a row of a layer with weights; `position` is that of the data. `explain` shows the parameters' names."""

    def run(params: Quantized, x: Array, _weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
        return _run(operator, params, (x, _weights, bias))

    def run_transposed(
        params: Quantized, shape: Array, _weights: Array, x: Array, bias: Array | None = None
    ) -> tuple[Array, ...]:
        return _run(operator, params, (shape, _weights, x, bias))

    rule = "float32 sums of products of what logarithmic quantized values stand for"
    lower = partial(_lower_weighted, position=position)
    return Kernel(lower, run_transposed if position else run, rule, "docs/rules/nnie.md#layers")


OPERATORS = """
    add average_pool_2d concatenation div hard_swish maximum mean minimum mul neg pow rsqrt sqrt square
    squared_difference sub sum
    """
WEIGHTED = {"conv_2d": 0, "depthwise_conv_2d": 0, "fully_connected": 0, "transpose_conv": 2}
"""Operator -> position of the data."""
KERNELS = {
    **{operator: logarithmic_kernel(operator) for operator in OPERATORS.split()},
    **{operator: _weighted_row(operator, position) for operator, position in WEIGHTED.items()},
}
