"""Layers of boxes and regions: NMS, Proposal, DetectionOutput, BoundingBox, RoiAlign, pyramids (docs/aipu.md, 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.converters.aipu.descriptor import Internal, Layer, OutputType, Single, by_range, like, plain, typed
from tflq.converters.aipu.emitted import (
    CURVED,
    TYPED,
    Computed,
    Emitted,
    Factors,
    FromFile,
    Lowered,
    Luts,
    Number,
    Params,
    Part,
    factor_keys,
)
from tflq.converters.aipu.operators.linear import encoded
from tflq.converters.aipu.options import LayerOptions
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.bounding_box import OUTPUT_SCALE, BoundingBoxParams
from tflq.interpreter.kernels.aipu.boxes import hidden_scale
from tflq.interpreter.kernels.aipu.detection_output import CAFFE, DetectionParams
from tflq.interpreter.kernels.aipu.max_roi_pool import MaxRoiPoolParams
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.nms import OVERLAP_BITS, NmsParams
from tflq.interpreter.kernels.aipu.proposal import ANCHORS, DEVIATIONS, ProposalParams
from tflq.interpreter.kernels.aipu.pyramid_crop import PyramidCropParams, is_normalised
from tflq.interpreter.kernels.aipu.pyramid_roi_align import PyramidParams
from tflq.interpreter.kernels.aipu.pyramid_shared import has_own_scales
from tflq.interpreter.kernels.aipu.roi_align import FRACTION, RoiAlignParams
from tflq.interpreter.kernels.aipu.scales import (
    affine_of,
    bits_of,
    code_limits,
    constant_named,
    is_signed,
    offset_of,
    required_constant,
    scale_of,
)
from tflq.schemas.aipu import Value

_MOVES = Luts(("ty_lut", "tx_lut"), ("move_y", "move_x"), "moves")
_GROWTHS = Luts(("th_lut", "tw_lut"), ("grow_y", "grow_x"), "growths")
_NMS_ORDER = ("scale_value", "scale_type", "shift_type", "shift_value")
_DETECTION_ORDER = ("shift_type", "shift_value", "scale_value", "scale_type")


def shared_map(maps: Sequence[Tensor]) -> Tensor:
    """Return the map whose largest value is the median of all, the upper one of two: its type holds them all.

    Source: whitepaper ACN-AWP-1002A, 5.1.3.4, which takes P2 of P2 to P5 for that reason.
    """
    return sorted(maps, key=scale_of, reverse=True)[len(maps) // 2]


def _nms(node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Boxes: in pixels at scale 1, or as they are where they stay within 0..1; zp = 0. Scores pass."""
    boxes = operands.input(0)
    s, value = scale_of(boxes), node.attributes.integer
    is_sized = "image_height" in node.attributes and "image_width" in node.attributes
    if value("center_point_box", 0) and is_sized:
        s = np.float32(max(value("image_height"), value("image_width")))
    low, high = code_limits(boxes)
    largest = (high + offset_of(boxes)) / float(scale_of(boxes))
    if boxes.range is not None:
        largest = float(np.max(boxes.range.maximum))
    kept = s if s <= int(scale_of(boxes)) or largest <= 1 else np.float32(1)
    affine = affine_of(kept, 0, boxes.affine.bits, low < 0, boxes.affine.narrow_range)
    return typed(affine), plain(16), like(operands.input(3)), plain(16)


def _emit_nms(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, NmsParams)
    decay = params.decay
    keys: dict[str, Value] = {} if decay is None else {"soft_nms_sigma_in_shift": OVERLAP_BITS}
    keys |= {"iou_thresh_shift": OVERLAP_BITS, "iou_threshold": params.overlap, "areas_shift": params.areas_shift}
    changed: dict[str, Value | None] = {"iou_threshold": None, "areas_shift": None}
    if "score_threshold" in layer.node.attributes:
        changed["score_threshold"] = params.threshold
    else:
        keys["score_threshold"] = params.threshold
    tables: dict[str, Array] = {}
    if decay is not None:
        tables = {"gaussian_scale_lut": decay.m.astype(np.uint16), "gaussian_shift_lut": decay.n.astype(np.uint8)}
    return Emitted(tables, keys, changed)


def _read_nms(file: FromFile) -> Params:
    pairs = (("iou_threshold", "overlap"), ("areas_shift", "areas_shift"))
    return {name: found for key, name in pairs if (found := file.numbers(key)) is not None}


def _proposal(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the largest power of two below the scale of the coordinates."""
    s = np.exp2(np.floor(np.log2(hidden_scale(operands, 0))))
    return like(operands.input(0)), typed(affine_of(np.float32(s), 0, 16)), plain(16), plain(16)


def _proposal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
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


def _emit_proposal(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, ProposalParams)
    kind = "uint8" if bits_of(layer.operands.input(0)) <= 8 else "uint16"
    keys: dict[str, Value] = {"score_threshold_value": params.threshold, "score_threshold_type": kind}
    return Emitted(keys=keys, changed={"height": params.window[0], "width": params.window[1]})


def _read_threshold(file: FromFile) -> Params:
    found = file.numbers("score_threshold_value")
    return {} if found is None else {"threshold": found}


def _detection(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the scale of the coordinates."""
    boxes = typed(affine_of(hidden_scale(operands, 0), 0, 16))
    return like(operands.input(0)), boxes, *(plain(16),) * 3


def _detection_values(node: Node, _operands: Operands, inputs: Sequence[Array]) -> tuple[Single, ...]:
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


def _divided(deltas: Array, deviations: Sequence[float]) -> Single:
    divided: Single = (np.asarray(deltas, np.float32) / np.asarray(deviations, np.float32)).astype(np.float32)
    return divided


def _exponential(x: Array) -> Single:
    """Return e^x, rounded once to float32."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _corners(node: Node, window: tuple[str, str], centre: Array, size: Array) -> Array:
    """Return the corners inside the window, [2, ..., 2]."""
    limits = [np.float32(node.attributes.real(key)) for key in window]
    return np.stack([np.clip(centre + sign * size / np.float32(2), 0, limits) for sign in (-1, 1)])


def _joined(parts: Sequence[Array]) -> Single:
    joined: Single = np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in parts])
    return joined


def _emit_detection(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, DetectionParams)
    factors = (params.grow, params.move, params.place)
    keys: dict[str, Value] = {
        "height": params.window[0],
        "width": params.window[1],
        **factor_keys(_DETECTION_ORDER, factors, "uint16", "box_{0}_{1}"),
        "delta_shift": params.early,
        "score_threshold_value": params.threshold,
    }
    gone = ("image_height", "image_width", "score_threshold", "bbox_xform_clip")
    return Emitted(keys=keys, changed={**dict.fromkeys(gone), "variance": (1, 1, 1, 1)})


def _read_detection(file: FromFile) -> Params:
    found = file.multiplier("box_{0}_{1}")
    numbers = {name: given for name in ("height", "width") if (given := file.numbers(name)) is not None}
    return {**numbers, **_read_threshold(file), **({} if found is None else {"box": found})}


def _emit_bounding_box(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, BoundingBoxParams)
    factors = (*params.moves, *params.halves, params.output)
    return Emitted(keys={**factor_keys(TYPED, factors, "uint16", "box_{0}_{1}"), "delta_shift": params.early_shift})


def _emit_max_roi(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, MaxRoiPoolParams)
    return Emitted(changed={"spatial": params.spatial})


def _emit_roi_align(layer: Lowered) -> Emitted:
    params = layer.node.params
    assert isinstance(params, RoiAlignParams)
    widths = bits_of(layer.operands.output()), bits_of(layer.operands.input(1))
    keys = factor_keys(CURVED, (params.rescale, params.regions), "uint16")
    keys["scale_type"] = tuple(type_of_multiplier(bits) for bits in widths)
    keys |= factor_keys(TYPED, params.steps, "uint16", "bin_{0}_{1}")
    keys |= factor_keys(TYPED, params.grids, "uint16", "grid_{0}_{1}")
    keys |= {
        "spatial_scale_type": ("uint16", "uint16"),
        "spatial_shift_value": FRACTION,
        "spatial_shift_type": "int8",
    }
    return Emitted(keys=keys, changed={"spatial_scale_value": params.spatial})


def _pyramid(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Boxes in 0..1: the type of the first map with zp = 0, or the shared type of maps with scales of their own.

    Boxes in pixels: an own range, signed where a map is.
    """
    maps = [operands.input(k) for k in range(1, len(operands.inputs))]
    if has_own_scales(node):
        return (like(shared_map(maps)),)
    if is_normalised(node):
        first = maps[0].affine
        return (typed(affine_of(scale_of(maps[0]), 0, first.bits, first.signed, first.narrow_range)),)
    return (by_range(operands.output(), any(is_signed(m) for m in maps), options),)


def _emit_pyramid(layer: Lowered) -> Emitted:
    params = layer.node.params
    if isinstance(params, PyramidCropParams):
        return Emitted(keys={"box_input_qvalue": params.fraction})
    if not isinstance(params, PyramidParams):
        return Emitted()
    keys = factor_keys(CURVED, params.rescales, type_of_multiplier(bits_of(layer.operands.output())))
    inputs = factor_keys(TYPED, params.inputs, "uint16", "input_{0}_{1}")
    keys |= {key.removesuffix("_value"): value for key, value in inputs.items()}
    return Emitted(keys={**keys, "spatial_shift": params.fraction, "levels": params.levels})


_PROPOSAL: tuple[Part, ...] = (
    _MOVES,
    _GROWTHS,
    Number("box_shift_value", "shift", "box_shift_type"),
    Computed(_emit_proposal, _read_threshold),
)

LAYERS = {
    "bounding_box": Layer(
        "BoundingBox",
        types=lambda _, __, ___: (typed(affine_of(np.float32(OUTPUT_SCALE), 0, 16)),),
        emitted=(_GROWTHS, Computed(_emit_bounding_box)),
    ),
    "detection_output": Layer(
        "DetectionOutput",
        types=_detection,
        emitted=(_MOVES, _GROWTHS, Computed(_emit_detection, _read_detection)),
        internal=Internal(("coords", "box", "txty"), _detection_values),
    ),
    "max_roi_pool": Layer("MaxRoiPool", emitted=(Computed(_emit_max_roi),)),
    "nms": Layer("NMS", types=_nms, emitted=(Computed(_emit_nms, _read_nms), Factors(_NMS_ORDER, "uint16"))),
    "proposal": Layer(
        "Proposal",
        types=_proposal,
        emitted=_PROPOSAL,
        internal=Internal(("coords", "box"), _proposal_values),
        constants=_anchors,
    ),
    "pyramid_roi_align": Layer("PyramidROIAlign", types=_pyramid, emitted=(Computed(_emit_pyramid),)),
    "roi_align": Layer("RoiAlign", emitted=(Computed(_emit_roi_align),)),
}
