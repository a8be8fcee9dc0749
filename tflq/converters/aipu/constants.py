"""Constants of layers that are not linear: anchors of Proposal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from tflq.converters.aipu.outputs import code_type
from tflq.graph import Affine, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.proposal import ANCHORS
from tflq.interpreter.kernels.aipu.scales import affine_of, encode, scale_of

_Rule = Callable[[Operands], Mapping[str, Affine]]


def constant_types(node: Node, operands: Operands) -> Mapping[str, Affine]:
    """Return key -> type of the constants of a layer that become integers; inputs and outputs have their types."""
    rule = _RULES.get(node.operator)
    return rule(operands) if rule else {}


def as_codes(constant: Tensor, affine: Affine) -> Tensor:
    """Return the constant with codes clamp(RNE(f32(s * x) - zp)) as its data."""
    dtype = code_type(affine)
    data = encode(np.asarray(constant.data), affine).astype(dtype.storage)
    data.setflags(write=False)
    return replace(constant, dtype=dtype, quantisation=affine, data=data, range=None)


def _anchors(operands: Operands) -> Mapping[str, Affine]:
    return dict.fromkeys(ANCHORS, affine_of(scale_of(operands.output(1)), 0, 16))


_RULES: dict[str, _Rule] = {"proposal": _anchors}
