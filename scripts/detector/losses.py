"""What training minimizes, and the boxes it pools: everything in batches of images, boxes in parts of the image."""

from __future__ import annotations

from typing import Any, TypeAlias

import tensorflow as tf

from detector.anchors import DEVIATIONS
from detector.network import POOLED_MASK
from detector.regions import LEVEL_AREAS
from detector.scenes import CLASSES

_POSITIVE, _NEGATIVE = 0.55, 0.35
_POSITIVE_ROI = 0.5
_PROPOSALS, _JITTER = 96, 0.5

# tensorflow has no types
Tensor: TypeAlias = Any


def first_stage(boxes: Tensor, logits: Tensor, deltas: Tensor, truth: Tensor, classes: Tensor) -> list[Tensor]:
    """Losses of scores [B, K, 2] and deltas [B, K, 4] of the anchors [K, 4]."""
    overlap = _overlaps(boxes[None], truth, classes)
    best, which = tf.reduce_max(overlap, -1), tf.argmax(overlap, -1)
    of_shape = tf.reduce_max(overlap, 1, keepdims=True)
    is_best = tf.reduce_any((overlap >= of_shape - 1e-4) & (overlap > 0.2), -1)
    positive = tf.cast((best >= _POSITIVE) | is_best, tf.float32)
    negative = tf.cast(best < _NEGATIVE, tf.float32) * (1 - positive)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(positive, tf.int32), logits)
    count = tf.reduce_sum(positive) + 1
    scores = tf.reduce_sum(entropy * (positive + negative)) / count
    wanted = _deltas(tf.broadcast_to(boxes[None], tf.shape(deltas)), tf.gather(truth, which, batch_dims=1))
    return [scores, tf.reduce_sum(_huber(wanted - deltas) * positive) / count]


def second_stage(rois: Tensor, logits: Tensor, deltas: Tensor, truth: Tensor, classes: Tensor) -> list[Tensor]:
    """Losses of logits [B * R, classes] and deltas [B * R, 4 * classes] of regions [B, R, 4]."""
    overlap = _overlaps(rois, truth, classes)
    which = tf.argmax(overlap, -1)
    positive = tf.reduce_max(overlap, -1) >= _POSITIVE_ROI
    labels = tf.where(positive, tf.gather(classes, which, batch_dims=1), 0)
    shape = tf.shape(rois)[:2]
    logits = tf.reshape(logits, [*tf.unstack(shape), len(CLASSES)])
    entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    of_class = tf.gather(tf.reshape(deltas, [*tf.unstack(shape), len(CLASSES), 4]), labels, batch_dims=2)
    wanted = _deltas(rois, tf.gather(truth, which, batch_dims=1))
    weight = tf.cast(positive, tf.float32)
    return [2 * entropy, tf.reduce_sum(_huber(wanted - of_class) * weight) / (tf.reduce_sum(weight) + 1)]


def masks(shapes: Tensor, logits: Tensor, truth: Tensor, classes: Tensor) -> Tensor:
    """Loss of mask logits [B * G, M, M, classes] of the shapes' own boxes [B, G, 4]; truth is [B, G, H, W]."""
    count = tf.size(classes)
    pictures = tf.reshape(truth, [count, *truth.shape[2:], 1])
    size = (POOLED_MASK, POOLED_MASK)
    wanted = tf.round(tf.image.crop_and_resize(pictures, tf.reshape(shapes, [-1, 4]), tf.range(count), size))[..., 0]
    kinds = tf.reshape(classes, [-1])
    of_class = tf.gather(logits, kinds, axis=3, batch_dims=1)
    entropy = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(wanted, of_class), [1, 2])
    weight = tf.cast(kinds > 0, tf.float32)
    return tf.reduce_sum(entropy * weight) / (tf.reduce_sum(weight) + 1)


def training_rois(boxes: Tensor, logits: Tensor, deltas: Tensor, truth: Tensor, classes: Tensor) -> Tensor:
    """Regions [B, R, 4]: the best proposals, and the shapes' own boxes, moved a little."""
    best = tf.math.top_k(logits[..., 1] - logits[..., 0], _PROPOSALS).indices
    chosen = tf.gather(boxes, best)
    proposals = _moved(chosen, tf.gather(deltas, best, batch_dims=1))
    present = tf.cast(classes > 0, tf.float32)[..., None]
    own = truth * present + (1 - present) * tf.constant([0.0, 0.0, 1.0, 1.0])
    return tf.stop_gradient(tf.concat([proposals, jittered(own)], axis=1))


def jittered(boxes: Tensor) -> Tensor:
    """Boxes moved and stretched by normal deltas."""
    return _moved(boxes, tf.random.normal(tf.shape(boxes), stddev=_JITTER))


def pool(pyramid: tuple[Tensor, ...], rois: Tensor, size: int) -> Tensor:
    """PyramidROIAlign of [B, R, 4] -> [B * R, size, size, C]; every level is pooled, the right one taken."""
    flat = tf.reshape(rois, [-1, 4])
    image = tf.repeat(tf.range(tf.shape(rois)[0]), tf.shape(rois)[1])
    area = (flat[:, 2] - flat[:, 0]) * (flat[:, 3] - flat[:, 1])
    level = tf.add_n([tf.cast(area >= limit, tf.int32) for limit in LEVEL_AREAS])
    crops = [tf.image.crop_and_resize(x, flat, image, (size, size)) for x in pyramid]
    return tf.add_n([c * tf.cast(level == i, tf.float32)[:, None, None, None] for i, c in enumerate(crops)])


def _overlaps(boxes: Tensor, truth: Tensor, classes: Tensor) -> Tensor:
    """Intersection over union [B, K, G]; -1 where there is no shape."""
    a, b = boxes[:, :, None], truth[:, None]
    size = tf.minimum(a[..., 2:], b[..., 2:]) - tf.maximum(a[..., :2], b[..., :2])
    shared = tf.reduce_prod(tf.maximum(size, 0), -1)
    areas = [tf.reduce_prod(x[..., 2:] - x[..., :2], -1) for x in (a, b)]
    iou = shared / tf.maximum(areas[0] + areas[1] - shared, 1e-9)
    return tf.where((classes > 0)[:, None], iou, -1.0)


def _deltas(boxes: Tensor, targets: Tensor) -> Tensor:
    size, wanted = (tf.maximum(x[..., 2:] - x[..., :2], 1e-3) for x in (boxes, targets))
    shift = (targets[..., :2] + targets[..., 2:] - boxes[..., :2] - boxes[..., 2:]) / 2
    return tf.concat([shift / size, tf.math.log(wanted / size)], -1) / tf.constant(DEVIATIONS, tf.float32)


def _moved(boxes: Tensor, deltas: Tensor) -> Tensor:
    scaled = deltas * tf.constant(DEVIATIONS, tf.float32)
    size = boxes[..., 2:] - boxes[..., :2]
    center = boxes[..., :2] + size / 2 + scaled[..., :2] * size
    half = size * tf.exp(tf.clip_by_value(scaled[..., 2:], -2.0, 2.0)) / 2
    return tf.clip_by_value(tf.concat([center - half, center + half], -1), 0.0, 1.0)


def _huber(error: Tensor) -> Tensor:
    size = tf.abs(error)
    return tf.reduce_sum(tf.where(size < 1, 0.5 * size * size, size - 0.5), -1)
