"""TFLite_Detection_PostProcess: boxes from SSD's encodings, without boxes that overlap better ones.

Center = encoding / scale * size of anchor + center of anchor, half size = 0.5 * exp(encoding / scale) * size of anchor,
in double, rounded to float32. "Fast" suppression looks at the best class of each anchor only and reports its
max_classes_per_detection best classes; "regular" suppresses each class for itself and merges the lists, at most
max_detections long. Classes count without the background, which is first. Elements after the last box are 0 (TFLite
leaves them undefined in the fast way).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError, InputError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.kernels.move.suppression import corner_overlap, partial_sort
from tflq.interpreter.operands.checks import per_tensor, require_type
from tflq.interpreter.operands.movable import equal_samples
from tflq.interpreter.registry import Kernel
from tflq.schemas.tflite.flexbuffer import FlexValue, decode_flexbuffer

_DETECTIONS_PER_CLASS = 100
_Found = tuple[int, int, int, float]  # slot of the result, box, class, score


@dataclass(frozen=True)
class DetectionPostProcess:
    """The options of the operator.

    Attributes:
        max_detections: number of boxes.
        max_classes: classes for each box (fast suppression).
        per_class: boxes for each class (regular suppression).
        regular: whether each class is suppressed for itself.
        score_threshold: smallest score of a candidate.
        overlap: largest intersection over union with a better box.
        classes: number of classes without background.
        scales: Scales of y, x, height, width.
        quantizations: (scale, zero point) of each quantized input, None if it is float32.
    """

    max_detections: int
    max_classes: int
    per_class: int
    regular: bool
    score_threshold: np.float32
    overlap: np.float32
    classes: int
    scales: tuple[np.float32, np.float32, np.float32, np.float32]
    quantizations: tuple[tuple[np.float32, int] | None, ...]


def lower(node: Node, operands: Operands) -> DetectionPostProcess:
    """Read the options.

    Raises:
        GraphError: options that are missing or out of range, or shapes that do not fit.
        FormatError: options that are no flexbuffer.
        UnsupportedError: other types than float32 and quantized uint8.
    """
    options = decode_flexbuffer(node.custom_options or b"", operands.where)
    if not isinstance(options, dict):
        raise GraphError("the options are no map of names and numbers")
    encodings, predictions, anchors = (operands.input(i) for i in range(3))
    classes = int(_number(options, "num_classes"))
    _check_shapes(encodings, predictions, anchors, classes)
    params = DetectionPostProcess(
        max_detections=int(_number(options, "max_detections")),
        max_classes=int(_number(options, "max_classes_per_detection")),
        per_class=int(_number(options, "detections_per_class", _DETECTIONS_PER_CLASS)),
        regular=bool(_number(options, "use_regular_nms", 0)),
        score_threshold=np.float32(_number(options, "nms_score_threshold")),
        overlap=np.float32(_number(options, "nms_iou_threshold")),
        classes=classes,
        scales=tuple(np.float32(_number(options, f"{axis}_scale")) for axis in "yxhw"),
        quantizations=(*_shared_type(encodings, anchors), _quantization(predictions)),
    )
    if params.max_detections < 1 or params.max_classes < 1 or params.per_class < 1:
        raise GraphError("max_detections, max_classes_per_detection and detections_per_class are 1 or more; one is not")
    if not 0 < params.overlap <= 1:
        raise GraphError(f"nms_iou_threshold is {params.overlap}; it is above 0, and 1 at most")
    return params


def run(params: DetectionPostProcess, encodings: Array, predictions: Array, anchors: Array) -> tuple[Array, ...]:
    """Run TFLite_Detection_PostProcess.

    Args:
        params: Result of `lower`.
        encodings: T[S or 1, 1, n, 4 or more]: y, x, height, width of each box.
        predictions: T[S or 1, 1, n, classes with background].
        anchors: T[S or 1, n, 4].

    Returns:
        float32[S, 1, m, 4] boxes (ymin, xmin, ymax, xmax), float32[S, 1, m] classes, float32[S, 1, m] scores,
        float32[S, 1] number of boxes; m = max_detections * max_classes.

    Raises:
        InputError: a box that decodes to a negative size.
    """
    given = equal_samples(encodings, anchors, predictions)
    boxes_in, centers, scores = (_dequantize(x, q) for x, q in zip(given, params.quantizations, strict=True))
    samples, slots = boxes_in.shape[0], params.max_detections * params.max_classes
    boxes = np.zeros((samples, 1, slots, 4), np.float32)
    classes, kept = (np.zeros((samples, 1, slots), np.float32) for _ in range(2))
    counts = np.zeros((samples, 1), np.float32)
    choose = _regular if params.regular else _fast
    for s in range(samples):
        decoded = _decode(params, boxes_in[s, 0, :, :4], centers[s])
        if (decoded[:, :2] > decoded[:, 2:]).any():
            raise InputError(f"sample {s}: a box has a negative height or width; anchors and scales are 0 or more")
        detections, count = choose(params, decoded, scores[s, 0, :, -params.classes :])
        for slot, box, label, score in detections:
            boxes[s, 0, slot], classes[s, 0, slot], kept[s, 0, slot] = decoded[box], label, score
        counts[s, 0] = count
    return boxes, classes, kept, counts


def _fast(params: DetectionPostProcess, boxes: Singles, scores: Singles) -> tuple[list[_Found], int]:
    selected = _suppress(params, boxes, scores.max(-1), params.max_detections)
    labels = min(params.max_classes, params.classes)
    detections: list[_Found] = []
    for place, box in enumerate(selected):
        best = _best_labels(scores[box].tolist(), labels)
        first = place * params.max_classes
        detections += [(first + i, box, label, float(scores[box, label])) for i, label in enumerate(best)]
    return detections, len(selected)


def _regular(params: DetectionPostProcess, boxes: Singles, scores: Singles) -> tuple[list[_Found], int]:
    best: list[tuple[int, int, float]] = []
    for label in range(params.classes):
        limit = min(params.per_class, params.max_detections)
        selected = _suppress(params, boxes, scores[:, label], limit)
        best += [(box, label, float(scores[box, label])) for box in selected]
        best = sorted(best, key=lambda found: -found[2])[: params.max_detections]  # stable, as std::inplace_merge
    return [(slot, *detection) for slot, detection in enumerate(best)], len(best)


def _best_labels(row: list[float], count: int) -> list[int]:
    if count == 1:
        return [row.index(max(row))]
    return partial_sort(list(range(len(row))), count, lambda a, b: row[a] > row[b])


def _suppress(params: DetectionPostProcess, boxes: Singles, scores: Singles, limit: int) -> list[int]:
    candidates = np.flatnonzero(scores >= params.score_threshold)
    candidates = candidates[np.argsort(-scores[candidates], kind="stable")]
    taken: list[int] = []
    for box in candidates.tolist():
        if len(taken) >= limit:
            break
        low, high = boxes[box, :2], boxes[box, 2:]
        if all(corner_overlap(boxes[t, :2], boxes[t, 2:], low, high) <= params.overlap for t in taken):
            taken.append(box)
    return taken


def _decode(params: DetectionPostProcess, encodings: Singles, anchors: Singles) -> Singles:
    scaled = encodings.astype(np.float64) / np.array(params.scales, np.float64)
    sizes = anchors[:, 2:].astype(np.float64)
    centers = (scaled[:, :2] * sizes + anchors[:, :2].astype(np.float64)).astype(np.float32)
    grown = np.array([[_exp(x) for x in row] for row in scaled[:, 2:].tolist()]).reshape(-1, 2)
    halves = (0.5 * grown * sizes).astype(np.float32)
    return np.concatenate([centers - halves, centers + halves], 1)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _dequantize(x: Array, quantization: tuple[np.float32, int] | None) -> Singles:
    if quantization is None:
        return x.astype(np.float32, copy=False)
    scale, zero_point = quantization
    return np.asarray((x.astype(np.float32) - np.float32(zero_point)) * scale)


def _quantization(tensor: Tensor) -> tuple[np.float32, int] | None:
    return per_tensor(tensor) if require_type(tensor, (DType.FLOAT32, DType.UINT8)) is DType.UINT8 else None


def _shared_type(encodings: Tensor, anchors: Tensor) -> tuple[tuple[np.float32, int] | None, ...]:
    require_type(anchors, (encodings.dtype,))
    return _quantization(encodings), _quantization(anchors)


def _check_shapes(encodings: Tensor, predictions: Tensor, anchors: Tensor, classes: int) -> None:
    shapes = (encodings.shape, predictions.shape, anchors.shape)
    fits = [len(shape) for shape in shapes] == [3, 3, 2] and shapes[0][0] == shapes[1][0] == 1
    if not fits or not shapes[0][1] == shapes[1][1] == shapes[2][0] or shapes[0][2] < 4 or shapes[2][1] != 4:
        raise GraphError(f"encodings, predictions and anchors have shapes {shapes}; (1, n, 4), (1, n, c), (n, 4) fit")
    if classes < 1 or shapes[1][2] - classes not in (0, 1):
        raise GraphError(f"num_classes is {classes}; predictions of shape {shapes[1]} have that many, or one more")


def _number(options: dict[str, FlexValue], name: str, default: float | None = None) -> float:
    value = options.get(name, default)
    if isinstance(value, (bool, int, float)):
        return value
    raise GraphError(f"option {name} is {value!r}; a number is needed")


KERNELS = {
    "TFLite_Detection_PostProcess": Kernel(lower, run,
        "TFLite_Detection_PostProcess: boxes from SSD's encodings, the best of them without those that overlap better "
        "ones", "TFLite kernels/detection_postprocess.cc"),
}  # fmt: skip
