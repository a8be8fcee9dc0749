"""Layers that move, choose or pool values, most of which pass their input's type (docs/aipu.md, 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.descriptor import Layer, OutputType, like, plain
from tflq.converters.aipu.emitted import Computed, Emitted, Lowered
from tflq.converters.aipu.operators.linear import encoded
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import range_of, type_of_range
from tflq.errors import UnsupportedError
from tflq.graph import DType, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.layout import LayoutParams
from tflq.interpreter.kernels.aipu.resize import WEIGHT_BITS, ResizeParams
from tflq.interpreter.kernels.aipu.scales import affine_of

_PLAIN = (DType.UINT8, DType.UINT16, DType.INT8, DType.INT16, DType.INT32)


def _constant(_node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Whole numbers as they are (s = 1), others as an input.

    Source: Compass Optimizer, ops/constant.py; dtype_utils.py, range_to_dtype.
    """
    tensor, values = operands.output(), np.asarray(operands.input(0).data, np.float64)
    if np.array_equal(values, np.rint(values)):
        low, high = values.min(initial=0), values.max(initial=0)
        kinds = [d for d in _PLAIN if d.minimum <= low and high <= d.maximum]
        if not kinds:
            raise UnsupportedError(f"constant '{tensor.name}' holds {low:g}..{high:g}; allowed is int32")
        return ((kinds[0], affine_of(np.float32(1), 0, kinds[0].bits, kinds[0].is_signed)),)
    low, high = (values.min(), values.max()) if tensor.range is None else range_of(tensor)
    bits = options.activation_bits
    affine = type_of_range(low, high, bits, bool(low < 0), options.is_symmetric, options.restricted)
    return ((DType(f"{'int' if affine.signed else 'uint'}{8 if affine.bits <= 8 else 16}"), affine),)


def _constant_values(_node: Node, operands: Operands, _options: LayerOptions) -> Mapping[str, Tensor]:
    """The weights of a Constant have its output's type."""
    weights = operands.input(0)
    found = encoded(weights, operands.output().affine)
    return {"weights": replace(found, shape=weights.shape, data=np.asarray(found.data).reshape(weights.shape))}


def _emit_pad(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, LayoutParams)
    return Emitted(changed={"constant_value": params.fill} if "constant_value" in layer.node.attributes else {})


def _emit_resize(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, ResizeParams)
    return Emitted(keys={"interp_shift_value": WEIGHT_BITS if params.weights else 0, "interp_shift_type": "int8"})


def _filter(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """What is kept passes; the count is whole."""
    return (*(like(t) for t in operands.inputs[:-1] if t is not None), plain(16))


def _emit_filter(layer: Lowered) -> Emitted:
    return Emitted(real_offsets=(len(layer.operands.outputs) - 1,))


_PASSING = (
    *("BatchToDepth", "BatchToSpace", "Crop", "DataStride", "DepthToSpace", "Gather", "Pooling", "Repeat", "Reshape"),
    *("ReverseSequence", "Slice", "SpaceToBatch", "SpaceToDepth", "Split", "Tile", "Transpose", "UpsampleByIndex"),
)


def snake(name: str) -> str:
    """Return a layer's type as the name of its kernel: "BatchToDepth" -> "batch_to_depth"."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


LAYERS = {
    **{snake(name): Layer(name) for name in _PASSING},
    "constant": Layer("Constant", types=_constant, constants=_constant_values),
    "filter": Layer("Filter", types=_filter, emitted=(Computed(_emit_filter),)),
    "gather_nd": Layer("GatherND"),
    "max_pooling_with_arg_max": Layer(
        "MaxPoolingWithArgMax", types=lambda _, o, __: (like(o.input(0)), plain(32, True))
    ),
    "pad": Layer("Pad", emitted=(Computed(_emit_pad),)),
    "resize": Layer("Resize", emitted=(Computed(_emit_resize),)),
}
