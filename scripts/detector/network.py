"""The detector's convolutional parts, written once: ResNet blocks, FPN, RPN, box head and mask head.

`Layers` is what they are built of: tensorflow while training (training.py), a graph of tflq afterwards (graphs.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from detector.scenes import CLASSES

STRIDES = (4, 8, 16, 32)
RATIOS = (0.5, 1.0, 2.0)
POOLED, POOLED_MASK = 7, 14
PYRAMID = 24

_STEM = 16
_STAGES = (16, 24, 32, 48)
_RPN = 32
_HEAD = 64
_MASK = 24

T = TypeVar("T")


class Layers(Protocol[T]):
    """What builds the parts; weights are found by name, and layers of one name share them."""

    def conv(
        self, name: str, x: T, outputs: int, kernel: int = 3, stride: int = 1, *, relu: bool = True, norm: bool = False
    ) -> T:
        """2-D convolution with SAME padding, batch normalization where `norm`, ReLU where `relu`."""

    def dense(self, name: str, x: T, outputs: int, *, relu: bool = True) -> T:
        """[R, K] -> [R, outputs]."""

    def add(self, a: T, b: T, *, relu: bool = False) -> T:
        """Sum of two tensors of one shape."""

    def pool(self, x: T) -> T:
        """2 x 2 maxima."""

    def upsample(self, x: T) -> T:
        """Each pixel four times."""

    def rows(self, x: T, width: int) -> T:
        """Reshape to [N, rows, width]."""

    def flat(self, x: T) -> T:
        """[R, H, W, C] -> [R, H * W * C]."""

    def join(self, parts: list[T]) -> T:
        """Concatenate along axis 1."""

    def softmax(self, name: str, x: T) -> T:
        """Over the last axis."""

    def sigmoid(self, x: T) -> T:
        """Element by element."""


@dataclass(frozen=True)
class FirstStage(Generic[T]):
    """Attributes of one image.

    Attributes:
        pyramid: P2 to P5, [1, H / stride, W / stride, PYRAMID].
        scores: background and object of each anchor, [1, K, 2].
        deltas: dy, dx, dh, dw of each anchor, [1, K, 4], in units of their deviations.
    """

    pyramid: tuple[T, ...]
    scores: T
    deltas: T


def first_stage(layers: Layers[T], image: T) -> FirstStage[T]:
    """Backbone, feature pyramid and region proposal network."""
    x = layers.pool(layers.conv("stem", image, _STEM, 3, 2, norm=True))
    features = []
    for level, channels in enumerate(_STAGES, start=2):
        x = _block(layers, f"c{level}/conv", x, channels, 1 if level == 2 else 2, is_wider=True)
        x = _block(layers, f"c{level}/identity", x, channels, 1, is_wider=False)
        features.append(x)
    pyramid = _pyramid(layers, features)
    found = [_proposals(layers, f"p{level}", x) for level, x in enumerate(pyramid, start=2)]
    scores, deltas = (layers.join([pair[i] for pair in found]) for i in (0, 1))
    return FirstStage(tuple(pyramid), scores, deltas)


def box_head(layers: Layers[T], pooled: T) -> tuple[T, T]:
    """[R, POOLED, POOLED, PYRAMID] -> probabilities [R, classes] and deltas [R, 4 * classes]."""
    x = layers.dense("head/fc1", layers.flat(pooled), _HEAD)
    x = layers.dense("head/fc2", x, _HEAD)
    logits = layers.dense("head/class", x, len(CLASSES), relu=False)
    deltas = layers.dense("head/box", x, 4 * len(CLASSES), relu=False)
    return layers.softmax("head/probabilities", logits), deltas


def mask_head(layers: Layers[T], pooled: T) -> T:
    """[D, POOLED_MASK, POOLED_MASK, PYRAMID] -> probabilities [D, POOLED_MASK, POOLED_MASK, classes]."""
    x = layers.conv("mask/conv1", pooled, _MASK)
    x = layers.conv("mask/conv2", x, _MASK)
    return layers.sigmoid(layers.conv("mask/logits", x, len(CLASSES), 1, relu=False))


def _block(layers: Layers[T], name: str, x: T, channels: int, stride: int, *, is_wider: bool) -> T:
    """Two convolutions and a way around them; conv_block has a convolution there too, identity_block nothing."""
    y = layers.conv(f"{name}/1", x, channels, 3, stride, norm=True)
    y = layers.conv(f"{name}/2", y, channels, 3, 1, relu=False, norm=True)
    around = layers.conv(f"{name}/around", x, channels, 1, stride, relu=False, norm=True) if is_wider else x
    return layers.add(y, around, relu=True)


def _pyramid(layers: Layers[T], features: list[T]) -> list[T]:
    above: T | None = None
    levels = []
    for level in (5, 4, 3, 2):
        lateral = layers.conv(f"fpn/lateral{level}", features[level - 2], PYRAMID, 1, relu=False)
        above = lateral if above is None else layers.add(lateral, layers.upsample(above))
        levels.append(layers.conv(f"fpn/p{level}", above, PYRAMID, relu=False))
    return levels[::-1]


def _proposals(layers: Layers[T], level: str, x: T) -> tuple[T, T]:
    y = layers.conv("rpn/shared", x, _RPN)
    logits = layers.rows(layers.conv("rpn/class", y, 2 * len(RATIOS), 1, relu=False), 2)
    deltas = layers.rows(layers.conv("rpn/box", y, 4 * len(RATIOS), 1, relu=False), 4)
    return layers.softmax(f"rpn/{level}", logits), deltas
