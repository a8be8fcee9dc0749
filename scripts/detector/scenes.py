"""Synthetic images with known boxes: rectangles, ellipses and triangles on a noisy ground, beside stray lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

HEIGHT, WIDTH = 96, 512
CLASSES = ("background", "rectangle", "ellipse", "triangle")
FEWEST_SHAPES, MOST_SHAPES = 6, 24

_SMALLEST, _LARGEST = 5.0, 32.0
_LARGEST_OVERLAP = 0.25
_CONTRAST = 0.15
_NOISE = 0.08
_LINES = 12

Image = NDArray[np.float32]
Boxes = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scene:
    """One image and what is on it.

    Attributes:
        image: float32[HEIGHT, WIDTH, 3], 0 to 1.
        boxes: float64[N, 4], y0, x0, y1, x1 in parts of height and width.
        classes: int64[N], an index of CLASSES.
        masks: bool[N, HEIGHT, WIDTH], the shape's own pixels, whatever lies above it.
    """

    image: Image
    boxes: Boxes
    classes: NDArray[np.int64]
    masks: Mask


def scenes(count: int, seed: int) -> Iterator[Scene]:
    """Yield scenes; the same seed gives the same ones."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield draw_scene(rng)


def draw_scene(rng: np.random.Generator) -> Scene:
    """Draw one scene: FEWEST_SHAPES to MOST_SHAPES shapes whose boxes overlap little, log-uniform in size."""
    image = _ground(rng)
    for _ in range(rng.integers(_LINES + 1)):
        _draw_line(rng, image)
    boxes: list[Boxes] = []
    classes, masks = [], []
    for _ in range(rng.integers(FEWEST_SHAPES, MOST_SHAPES + 1)):
        box = _free_box(rng, boxes)
        if box is None:
            continue
        kind = int(rng.integers(1, len(CLASSES)))
        inside = shape_mask(kind, box)
        image[inside] = _color_against(rng, image[inside].mean(axis=0))
        boxes.append(box)
        classes.append(kind)
        masks.append(inside)
    image += rng.normal(0, _NOISE, image.shape).astype(np.float32)
    size = np.array([HEIGHT, WIDTH, HEIGHT, WIDTH])
    return Scene(np.clip(image, 0, 1), np.array(boxes) / size, np.array(classes), np.array(masks))


def shape_mask(kind: int, box: Boxes) -> Mask:
    """Return the pixels whose center lies in a shape: bool[HEIGHT, WIDTH]; the box is in pixels."""
    y0, x0, y1, x1 = box
    v = ((np.arange(HEIGHT) + 0.5 - y0) / (y1 - y0))[:, None]
    u = ((np.arange(WIDTH) + 0.5 - x0) / (x1 - x0))[None, :]
    inside: Mask = (v >= 0) & (v <= 1) & (u >= 0) & (u <= 1)
    if CLASSES[kind] == "ellipse":
        inside &= (2 * u - 1) ** 2 + (2 * v - 1) ** 2 <= 1
    if CLASSES[kind] == "triangle":
        inside &= np.abs(2 * u - 1) <= v
    return inside


def _ground(rng: np.random.Generator) -> Image:
    corners = rng.uniform(0.1, 0.9, (2, 2, 3))
    v, u = np.linspace(0, 1, HEIGHT)[:, None, None], np.linspace(0, 1, WIDTH)[None, :, None]
    top, bottom = ((1 - u) * corners[i, 0] + u * corners[i, 1] for i in (0, 1))
    ground: Image = ((1 - v) * top + v * bottom).astype(np.float32)
    return ground


def _draw_line(rng: np.random.Generator, image: Image) -> None:
    start, end = rng.uniform(0, [HEIGHT - 1, WIDTH - 1], (2, 2))
    end = start + (end - start) * rng.uniform(0.1, 0.4)
    points = np.rint(start + np.linspace(0, 1, 64)[:, None] * (end - start)).astype(np.int64)
    y, x = points.T
    color = _color_against(rng, image[y, x].mean(axis=0))
    image[y, x] = image[y, np.minimum(x + 1, WIDTH - 1)] = color


def _color_against(rng: np.random.Generator, ground: Image) -> Image:
    """Return a color that differs from the ground by _CONTRAST or more in the mean of its channels."""
    while True:
        color = rng.uniform(0, 1, 3)
        if np.abs(color - ground).mean() >= _CONTRAST:
            return color.astype(np.float32)


def _free_box(rng: np.random.Generator, others: list[Boxes]) -> Boxes | None:
    for _ in range(20):
        size = np.exp(rng.uniform(np.log(_SMALLEST), np.log(_LARGEST)))
        aspect = np.exp(rng.uniform(-0.5, 0.5))
        h, w = size * aspect, size / aspect
        if h > HEIGHT - 2 or w > WIDTH - 2 or min(h, w) < _SMALLEST:
            continue
        y, x = rng.uniform(1, HEIGHT - 1 - h), rng.uniform(1, WIDTH - 1 - w)
        box = np.array([y, x, y + h, x + w])
        if all(_covered(box, other) <= _LARGEST_OVERLAP for other in others):
            return box
    return None


def _covered(a: Boxes, b: Boxes) -> float:
    """Return how much of the smaller box the other covers."""
    h = min(a[2], b[2]) - max(a[0], b[0])
    w = min(a[3], b[3]) - max(a[1], b[1])
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b))
    return float(max(h, 0) * max(w, 0) / smaller)
