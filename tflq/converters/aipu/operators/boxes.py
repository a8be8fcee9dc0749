"""Layers of boxes and regions: NMS, BoundingBox, Proposal, DetectionOutput, RoiAlign and its kind.

Source: docs/rules/aipu/boxes.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tflq.converters.aipu import emitted as ir
from tflq.converters.aipu.descriptor import (
    Internal,
    Layer,
    OutputType,
    Row,
    all_values,
    by_range,
    like,
    plain,
    typed,
)
from tflq.converters.aipu.operators.linear import encoded
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.passes.activations import as_written
from tflq.converters.aipu.translation import Translation
from tflq.graph import Array, Graph, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.kernels.aipu.bounding_box import OUTPUT_SCALE, BoundingBoxParams
from tflq.interpreter.kernels.aipu.boxes import internal_scale
from tflq.interpreter.kernels.aipu.detections import ANCHORS, DetectionParams, ProposalParams
from tflq.interpreter.kernels.aipu.multiplier import type_of_multiplier
from tflq.interpreter.kernels.aipu.nms import OVERLAP_BITS, NmsParams
from tflq.interpreter.kernels.aipu.pyramid_levels import has_own_scales
from tflq.interpreter.kernels.aipu.pyramid_roi_align import PyramidCropParams, PyramidParams, is_normalized
from tflq.interpreter.kernels.aipu.roi import ALIGN_FRACTION, MaxRoiPoolParams, RoiAlignParams
from tflq.interpreter.kernels.aipu.scales import (
    affine_of,
    bits_of,
    code_limits,
    is_signed,
    offset_of,
    required_constant,
    scale_of,
)
from tflq.schemas.aipu import Value

GROWTHS = ir.Luts(("th_lut", "tw_lut"), ("grow_y", "grow_x"), "growths")
_NMS_ORDER = ("scale_value", "scale_type", "shift_type", "shift_value")


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


def _emit_nms(layer: ir.Lowered) -> ir.Emitted:
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
    return ir.Emitted(tables, keys, changed)


def _read_nms(file: ir.FromFile) -> ir.Params:
    pairs = (("iou_threshold", "overlap"), ("areas_shift", "areas_shift"))
    return {name: found for key, name in pairs if (found := file.numbers(key)) is not None}


def _emit_bounding_box(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, BoundingBoxParams)
    factors = (*params.moves, *params.halves, params.output)
    return ir.Emitted(
        keys={**ir.factor_keys(ir.TYPED, factors, "uint16", "box_{0}_{1}"), "delta_shift": params.early_shift}
    )


def _emit_max_roi(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, MaxRoiPoolParams)
    return ir.Emitted(changed={"spatial": params.spatial})


def _emit_roi_align(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    assert isinstance(params, RoiAlignParams)
    widths = bits_of(layer.operands.output()), bits_of(layer.operands.input(1))
    keys = ir.factor_keys(ir.CURVED, (params.rescale, params.regions), "uint16")
    keys["scale_type"] = tuple(type_of_multiplier(bits) for bits in widths)
    keys |= ir.factor_keys(ir.TYPED, params.steps, "uint16", "bin_{0}_{1}")
    keys |= ir.factor_keys(ir.TYPED, params.grids, "uint16", "grid_{0}_{1}")
    keys |= {
        "spatial_scale_type": ("uint16", "uint16"),
        "spatial_shift_value": ALIGN_FRACTION,
        "spatial_shift_type": "int8",
    }
    return ir.Emitted(keys=keys, changed={"spatial_scale_value": params.spatial})


def _pyramid(node: Node, operands: Operands, options: LayerOptions) -> tuple[OutputType, ...]:
    """Boxes in 0..1: the type of the first map with zp = 0, or the shared type of maps with scales of their own.

    Boxes in pixels: an own range, signed where a map is.
    """
    maps = [operands.input(k) for k in range(1, len(operands.inputs))]
    if has_own_scales(node):
        return (like(shared_map(maps)),)
    if is_normalized(node):
        first = maps[0].affine
        return (typed(affine_of(scale_of(maps[0]), 0, first.bits, first.signed, first.narrow_range)),)
    return (by_range(operands.output(), any(is_signed(m) for m in maps), options),)


def _emit_pyramid(layer: ir.Lowered) -> ir.Emitted:
    params = layer.node.params
    if isinstance(params, PyramidCropParams):
        return ir.Emitted(keys={"box_input_qvalue": params.fraction})
    if not isinstance(params, PyramidParams):
        return ir.Emitted()
    keys = ir.factor_keys(ir.CURVED, params.rescales, type_of_multiplier(bits_of(layer.operands.output())))
    inputs = ir.factor_keys(ir.TYPED, params.inputs, "uint16", "input_{0}_{1}")
    keys |= {key.removesuffix("_value"): value for key, value in inputs.items()}
    return ir.Emitted(keys={**keys, "spatial_shift": params.fraction, "levels": params.levels})


IMAGE_SIZE = 300
"""What the Parser writes as width and height of an image that the model does not name."""


def map_suppression(work: Translation, node: Node) -> None:
    """NMS of one class. Boxes and scores get a batch axis by Reshapes, what is read of the results loses it."""
    name = work.name_of(node.outputs[0])
    inputs = []
    for t in node.inputs[:2]:
        shape = (1, *work.shape(t))
        inputs.append(work.reshaped(node, work.operand(t), shape))
    counts = {"box_num_per_class": work.shape(node.inputs[1])[0], "class_num": 1}
    constants = [work.layer_of_constant(k, np.array([[n]], np.int32)) for k, n in counts.items()]
    limit = work.numbers(node, 2)[0]
    boxes, indices = work.top(node.inputs[0]), work.top(node.outputs[0])
    tops = (
        replace(boxes, shape=(1, limit, 4), data=None),
        replace(indices, shape=(1, 1)),
        replace(work.top(node.inputs[1]), shape=(1, limit), data=None),
        replace(indices, shape=(1, limit)),
    )
    operands = (inputs[0], *constants, inputs[1])
    _, count, scores, kept = work.layer(node, name, "nms", operands, tops, _suppression_keys(work, node, limit))
    results = (kept, scores, count) if node.operator == "non_max_suppression_v5" else (kept, count)
    read = {t for other in work.source.nodes for t in other.inputs} | set(work.source.outputs)
    for port, (source, t) in enumerate(zip(results, node.outputs, strict=True)):
        if t in read:
            work.reshape(node, source, t, f"{name}_post_reshape" + f"_{port}" * (port > 0))


def _suppression_keys(work: Translation, node: Node, limit: int) -> dict[str, Attribute]:
    reals = [as_written(np.asarray(work.source.tensors[t].data).item()) for t in node.inputs[3:]]
    sigma = reals[2] if len(reals) > 2 else 0.0
    return {
        "method": "GAUSSIAN" if sigma > 0 else "HARD",
        "image_width": IMAGE_SIZE,
        "image_height": IMAGE_SIZE,
        "center_point_box": 0,
        "max_output_size": limit,
        "iou_threshold": reals[0],
        "score_threshold": reals[1],
        "soft_nms_sigma": sigma,
    }


def refuse_suppression(graph: Graph, node: Node) -> str:
    """Return why NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5 cannot be mapped; empty if it can."""
    return "" if graph.tensors[node.inputs[2]].size == 1 else "its number of results is no single number"


_MOVES = ir.Luts(("ty_lut", "tx_lut"), ("move_y", "move_x"), "moves")
_DETECTION_ORDER = ("shift_type", "shift_value", "scale_value", "scale_type")


def _proposal(_node: Node, operands: Operands, _options: LayerOptions) -> tuple[OutputType, ...]:
    """Scores pass; boxes have the largest power of two below the scale of the coordinates."""
    s = np.exp2(np.floor(np.log2(internal_scale(operands, 0))))
    return like(operands.input(0)), typed(affine_of(np.float32(s), 0, 16)), plain(16), plain(16)


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
    "bounding_box": Layer(
        "BoundingBox",
        types=lambda _, __, ___: (typed(affine_of(np.float32(OUTPUT_SCALE), 0, 16)),),
        emitted=(GROWTHS, ir.Computed(_emit_bounding_box)),
    ),
    "detection_output": Layer(
        "DetectionOutput",
        types=_detection,
        emitted=(_MOVES, GROWTHS, ir.Computed(_emit_detection, _read_detection)),
        internal=Internal(("coords", "box", "txty")),
    ),
    "max_roi_pool": Layer("MaxRoiPool", types=all_values, emitted=(ir.Computed(_emit_max_roi),)),
    "nms": Layer("NMS", types=_nms, emitted=(ir.Computed(_emit_nms, _read_nms), ir.Factors(_NMS_ORDER, "uint16"))),
    "proposal": Layer(
        "Proposal",
        types=_proposal,
        emitted=_PROPOSAL,
        internal=Internal(("coords", "box")),
        constants=_anchors,
    ),
    "pyramid_roi_align": Layer("PyramidROIAlign", types=_pyramid, emitted=(ir.Computed(_emit_pyramid),)),
    "roi_align": Layer("RoiAlign", emitted=(ir.Computed(_emit_roi_align),)),
}

# fmt: off
DOCS = (
    Row("4.45", "MaxRoiPool", "section 8", "g p", restriction="one image"),
    Row("4.48", "NMS", "section 8", "g r p", tflite="NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5",
        signed="boxes as the input; count and index uint16",
        restriction="thresholds and number of results constant; 16 bits for boxes: areas lose 13 bits"),
)
# fmt: on
