"""What Proposal and DetectionOutput compute within themselves and quantize, as the Optimizer's float layers do.

tflq takes its ranges from a file; tests take them of these values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.detections import ANCHORS, CAFFE, DEVIATIONS
from tflq.interpreter.kernels.aipu.scales import constant_named


def internal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the real numbers whose ranges the intermediates of a layer of boxes get."""
    values = _proposal_values if node.operator == "proposal" else _detection_values
    return values(node, operands, inputs)


def _proposal_values(node: Node, operands: Operands, inputs: Sequence[Array]) -> tuple[Singles, ...]:
    """Return Proposal's coordinates, and its deltas with their growths; inputs: scores, deltas [S, N, K, 4].

    Source: Compass Optimizer, ops/proposal.py, placeholders.
    """
    found = [constant_named(operands, key) for key in ANCHORS]
    ha, wa, ya, xa = (np.asarray(t.data, np.float32) for t in found if t is not None)
    sizes, centers = np.stack([ha, wa], axis=-1), np.stack([ya, xa], axis=-1)
    deltas = _divided(inputs[1], DEVIATIONS)
    grown = _exponential(deltas[..., 2:])
    center, size = deltas[..., :2] * sizes + centers, grown * sizes
    corners = _corners(node, ("height", "width"), center, size)
    return _joined((center, size, corners, deltas[..., :2] * size)), _joined((deltas, grown))


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
    center, size = deltas[..., :2] * (far - near) + (near + far) / np.float32(2), grown * (far - near)
    corners = _corners(node, ("image_height", "image_width"), center, size)
    return _joined((corners, center, size)), _joined((grown,)), _joined((deltas[..., :2],))


def _divided(deltas: Array, deviations: Sequence[float]) -> Singles:
    divided: Singles = (np.asarray(deltas, np.float32) / np.asarray(deviations, np.float32)).astype(np.float32)
    return divided


def _exponential(x: Array) -> Singles:
    """Return e^x, rounded once to float32."""
    return np.exp(x.astype(np.float64)).astype(np.float32)


def _corners(node: Node, window: tuple[str, str], center: Array, size: Array) -> Array:
    """Return the corners inside the window, [2, ..., 2]."""
    limits = [np.float32(node.attributes.real(key)) for key in window]
    return np.stack([np.clip(center + sign * size / np.float32(2), 0, limits) for sign in (-1, 1)])


def _joined(parts: Sequence[Array]) -> Singles:
    joined: Singles = np.concatenate([np.asarray(part, np.float32).reshape(-1) for part in parts])
    return joined
