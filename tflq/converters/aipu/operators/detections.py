"""Layers that make boxes of anchors or proposals: Proposal, DetectionOutput (docs/aipu.md, 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.arrays import Singles
from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import Internal, Layer, OutputType, like, plain, typed
from tflq.converters.aipu.operators.boxes import GROWTHS
from tflq.converters.aipu.operators.linear import encoded
from tflq.converters.aipu.options import LayerOptions
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.boxes import internal_scale
from tflq.interpreter.kernels.aipu.detection_output import CAFFE, DetectionParams
from tflq.interpreter.kernels.aipu.proposal import ANCHORS, DEVIATIONS, ProposalParams
from tflq.interpreter.kernels.aipu.scales import (
    affine_of,
    bits_of,
    constant_named,
    required_constant,
    scale_of,
)
from tflq.schemas.aipu import Value

_MOVES = ir.Luts(("ty_lut", "tx_lut"), ("move_y", "move_x"), "moves")
_DETECTION_ORDER = ("shift_type", "shift_value", "scale_value", "scale_type")


def _proposal(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the largest power of two below the scale of the coordinates."""
    s = np.exp2(np.floor(np.log2(internal_scale(operands, 0))))
    return like(operands.input(0)), typed(affine_of(np.float32(s), 0, 16)), plain(16), plain(16)


def _proposal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Singles, ...]:
    """Return Proposal's coordinates, and its deltas with their growths; inputs: scores, deltas [S, N, K, 4].

    Source: Compass Optimizer, ops/proposal.py, placeholders.
    """
    found = [constant_named(operands, key) for key in ANCHORS]
    ha, wa, ya, xa = (np.asarray(t.data, np.float32) for t in found if t is not None)
    sizes, centres = np.stack([ha, wa], axis=-1), np.stack([ya, xa], axis=-1)
    deltas = _divided(inputs[1], DEVIATIONS)
    grown = _exponential(deltas[..., 2:])
    centre, size = deltas[..., :2] * sizes + centres, grown * sizes
    corners = _corners(node, ("height", "width"), centre, size)
    return _joined((centre, size, corners, deltas[..., :2] * size)), _joined((deltas, grown))


def _anchors(_node: Node, operands: Operands, _options: LayerOptions) -> Mapping[str, Tensor]:
    affine = affine_of(scale_of(operands.output(1)), 0, 16)
    return {key: encoded(required_constant(operands, key), affine) for key in ANCHORS}


def _emit_proposal(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, ProposalParams)
    kind = "uint8" if bits_of(layer.operands.input(0)) <= 8 else "uint16"
    keys: dict[str, Value] = {"score_threshold_value": params.threshold, "score_threshold_type": kind}
    return ir.Emitted(keys=keys, changed={"height": params.window[0], "width": params.window[1]})


def _read_threshold(file: ir.FromFile) -> ir.Params:
    found = file.numbers("score_threshold_value")
    return {} if found is None else {"threshold": found}


def _detection(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the scale of the coordinates."""
    boxes = typed(affine_of(internal_scale(operands, 0), 0, 16))
    return like(operands.input(0)), boxes, *(plain(16),) * 3


def _detection_values(node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Singles, ...]:
    """Return DetectionOutput's coordinates, growths and moves; inputs: scores, deltas, proposals.

    Source: Compass Optimizer, ops/detectionoutput.py, placeholders.
    """
    scores, deltas, proposals = (np.asarray(x, np.float32) for x in inputs)
    classes = scores.shape[-1] - 1 if scores.shape[-1] > 1 else 1
    deltas = _divided(deltas[..., deltas.shape[-2] - classes :, :], node.attributes.reals("variance"))
    if node.attributes.text("anchor_mode", "") == CAFFE:
        deltas, proposals = deltas[..., [1, 0, 3, 2]], proposals[..., [1, 0, 3, 2]]
    near, far = proposals[..., None, :2], proposals[..., None, 2:]
    clip = np.float32(node.attributes.real("bbox_xform_clip", float("inf")))
    grown = _exponential(np.minimum(deltas[..., 2:], clip))
    centre, size = deltas[..., :2] * (far - near) + (near + far) / np.float32(2), grown * (far - near)
    corners = _corners(node, ("image_height", "image_width"), centre, size)
    return _joined((corners, centre, size)), _joined((grown,)), _joined((deltas[..., :2],))


def _divided(deltas: Array, deviations: Sequence[float]) -> Singles:
    divided: Singles = (np.asarray(deltas, np.float32) / np.asarray(deviations, np.float32)).astype(np.float32)
    return divided


def _exponential(x: Array) -> Singles:
    """Return e^x, rounded once to float32."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _corners(node: Node, window: tuple[str, str], centre: Array, size: Array) -> Array:
    """Return the corners inside the window, [2, ..., 2]."""
    limits = [np.float32(node.attributes.real(key)) for key in window]
    return np.stack([np.clip(centre + sign * size / np.float32(2), 0, limits) for sign in (-1, 1)])


def _joined(parts: Sequence[Array]) -> Singles:
    joined: Singles = np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in parts])
    return joined


def _emit_detection(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, DetectionParams)
    factors = (params.grow, params.move, params.place)
    keys: dict[str, Value] = {
        "height": params.window[0],
        "width": params.window[1],
        **ir.factor_keys(_DETECTION_ORDER, factors, "uint16", "box_{0}_{1}"),
        "delta_shift": params.early,
        "score_threshold_value": params.threshold,
    }
    gone = ("image_height", "image_width", "score_threshold", "bbox_xform_clip")
    return ir.Emitted(keys=keys, changed={**dict.fromkeys(gone), "variance": (1, 1, 1, 1)})


def _read_detection(file: ir.FromFile) -> ir.Params:
    found = file.multiplier("box_{0}_{1}")
    numbers = {name: given for name in ("height", "width") if (given := file.numbers(name)) is not None}
    return {**numbers, **_read_threshold(file), **({} if found is None else {"box": found})}


_PROPOSAL: tuple[ir.Part, ...] = (
    _MOVES,
    GROWTHS,
    ir.Number("box_shift_value", "shift", "box_shift_type"),
    ir.Computed(_emit_proposal, _read_threshold),
)

LAYERS = {
    "detection_output": Layer(
        "DetectionOutput",
        types=_detection,
        emitted=(_MOVES, GROWTHS, ir.Computed(_emit_detection, _read_detection)),
        internal=Internal(("coords", "box", "txty"), _detection_values),
    ),
    "proposal": Layer(
        "Proposal",
        types=_proposal,
        emitted=_PROPOSAL,
        internal=Internal(("coords", "box"), _proposal_values),
        constants=_anchors,
    ),
}
