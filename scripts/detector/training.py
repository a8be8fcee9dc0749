"""Trains the detector on drawn shapes: both stages and the masks at once, with fixed seeds."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from detector import losses
from detector.anchors import anchors
from detector.network import box_head, first_stage, mask_head
from detector.scenes import HEIGHT, MOST_SHAPES, WIDTH, Scene, scenes
from detector.tensorflow_layers import TensorflowLayers

SEED = 5
TRAINING_SCENES = 1200
STEPS = 1500
BATCH = 4
REPORT = 50
RATE, WARM_UP = 2e-3, 100

# tensorflow has no types
Tensor: TypeAlias = Any


def train(steps: int = STEPS) -> dict[str, NDArray[np.float16]]:
    """Return the weights after `steps` batches; the loss goes to the terminal."""
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    layers = TensorflowLayers(SEED)
    decay = tf.keras.optimizers.schedules.CosineDecay(
        RATE / 20, steps - WARM_UP, 0.02, warmup_target=RATE, warmup_steps=WARM_UP
    )
    optimizer = tf.keras.optimizers.Adam(decay, global_clipnorm=10.0)
    data = _batches(list(scenes(TRAINING_SCENES, SEED)))
    _loss(layers, *next(data))  # makes the variables

    @tf.function  # type: ignore[untyped-decorator]
    def step(images: Tensor, truth: Tensor, classes: Tensor, masks: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            parts = _loss(layers, images, truth, classes, masks)
            total = tf.add_n(parts)
        gradients = tape.gradient(total, layers.trainable)
        optimizer.apply_gradients(zip(gradients, layers.trainable, strict=True))
        return tf.stack(parts)

    start, average = time.perf_counter(), np.zeros(5)
    for number in range(1, steps + 1):
        average += step(*next(data)).numpy()
        if number % REPORT == 0:
            print(f"step {number}: {np.round(average / REPORT, 3)} {time.perf_counter() - start:.0f} s", flush=True)
            average[:] = 0
    return layers.export()


def save(path: Path, weights: Mapping[str, NDArray[np.float16]]) -> None:
    """Write a file of weights."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, values in weights.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # with a fixed date, so that equal weights give equal bytes
            content = io.BytesIO()
            np.save(content, values)
            file.writestr(entry, content.getvalue(), zipfile.ZIP_DEFLATED)


def _loss(layers: TensorflowLayers, images: Tensor, truth: Tensor, classes: Tensor, masks: Tensor) -> list[Tensor]:
    """Return the losses of proposals (scores, boxes), second stage (classes, boxes) and masks."""
    boxes = tf.constant(anchors(), tf.float32)
    found = first_stage(layers, images)
    first = losses.first_stage(boxes, found.scores, found.deltas, truth, classes)
    rois = losses.training_rois(boxes, found.scores, found.deltas, truth, classes)
    logits, deltas = box_head(layers, losses.pool(found.pyramid, rois, 7))
    second = losses.second_stage(rois, logits, deltas, truth, classes)
    shapes = losses.jittered(truth)
    mask_logits = mask_head(layers, losses.pool(found.pyramid, shapes, 14))
    return [*first, *second, losses.masks(shapes, mask_logits, masks, classes)]


def _batches(drawn: list[Scene]) -> Iterator[tuple[Tensor, ...]]:
    """Yield images, boxes [B, MOST_SHAPES, 4], classes (0 where there is none) and masks, for ever."""
    rng = np.random.default_rng(SEED + 1)
    while True:
        order = rng.permutation(len(drawn))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            batch = [drawn[i] for i in order[start : start + BATCH]]
            boxes = np.zeros((BATCH, MOST_SHAPES, 4), np.float32)
            classes = np.zeros((BATCH, MOST_SHAPES), np.int32)
            masks = np.zeros((BATCH, MOST_SHAPES, HEIGHT, WIDTH), np.float32)
            for row, scene in enumerate(batch):
                count = len(scene.boxes)
                boxes[row, :count], classes[row, :count], masks[row, :count] = scene.boxes, scene.classes, scene.masks
            images = np.stack([scene.image for scene in batch]).astype(np.float32)
            yield tuple(tf.constant(a) for a in (images, boxes, classes, masks))
