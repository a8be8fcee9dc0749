"""Constants of layers that are not linear: anchors of Proposal, slopes of PRELU, biases of BiasAdd."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.outputs import code_type
from tflq.converters.aipu.ranges import type_of_range
from tflq.graph import Affine, Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.bias_add import BIASES
from tflq.interpreter.kernels.aipu.prelu import SLOPE, SLOPE_SHIFT
from tflq.interpreter.kernels.aipu.proposal import ANCHORS
from tflq.interpreter.kernels.aipu.scales import affine_of, encode, offset_of, required_constant, scale_of

_WEIGHT_BITS = 8
_Rule = Callable[[Operands, LayerOptions], Mapping[str, Tensor]]


def quantised_constants(node: Node, operands: Operands, asked: LayerOptions) -> Mapping[str, Tensor]:
    """Return key -> the constants of a layer as integers; its inputs and outputs have their types."""
    is_prelu = "PRELU" in (node.attributes.get("method"), node.attributes.get("with_activation"))
    rule = _PRELU if is_prelu else _RULES.get(node.operator)
    return rule(operands, asked) if rule else {}


def _as_codes(constant: Tensor, affine: Affine, codes: Array) -> Tensor:
    dtype = code_type(affine)
    data = np.ascontiguousarray(codes, dtype.storage)
    data.setflags(write=False)
    return replace(constant, shape=data.shape, dtype=dtype, quantisation=affine, data=data, range=None)


def _encoded(constant: Tensor, affine: Affine) -> Tensor:
    """Return the constant with codes clamp(RNE(f32(s * x) - zp))."""
    return _as_codes(constant, affine, encode(np.asarray(constant.data), affine))


def _anchors(operands: Operands, _asked: LayerOptions) -> Mapping[str, Tensor]:
    affine = affine_of(scale_of(operands.output(1)), 0, 16)
    return {key: _encoded(required_constant(operands, key), affine) for key in ANCHORS}


def _slopes(operands: Operands, _asked: LayerOptions) -> Mapping[str, Tensor]:
    """RNE(slope * 2^12); a batch axis is left out where all its slices are the same."""
    slope = _encoded(required_constant(operands, SLOPE), affine_of(np.float32(1 << SLOPE_SHIFT), 0, 16))
    codes = np.asarray(slope.data)
    if codes.ndim >= len(operands.input(0).shape) and np.all(codes == codes[:1]):
        codes = codes[0]
    return {SLOPE: _as_codes(slope, slope.affine, codes)}


def _biases(operands: Operands, asked: LayerOptions) -> Mapping[str, Tensor]:
    """b_q = clamp(RNE(s_x * s_w * b)) + zp_x * w_q, of a weight 1 of 8 bits in the activation's mode.

    By the whitepaper the weight has no scale: b_q = clamp(RNE(s_x * b)) + zp_x.
    """
    x = operands.input(0)
    weight = type_of_range(0, 1, _WEIGHT_BITS, True, asked.is_symmetric, asked.restricted)
    one = Tensor("", (), DType.INT8, weight)
    s_w, code = scale_of(one), int(encode(np.ones(1, np.float32), weight)[0])
    if asked.by_whitepaper:
        s_w, code = np.float32(1), 1
    affine = affine_of((scale_of(x) * s_w).astype(np.float32), 0, asked.bias_bits)
    constant = required_constant(operands, BIASES)
    folded = encode(np.asarray(constant.data), affine) + offset_of(x) * code
    return {BIASES: _as_codes(constant, affine, np.clip(folded, affine.minimum_code, affine.maximum_code))}


_PRELU: _Rule = _slopes
_RULES: dict[str, _Rule] = {"bias_add": _biases, "proposal": _anchors}
