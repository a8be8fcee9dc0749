"""The table: what float, int8 and int8/int16 find on synthetic images with known boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from detector.average_precision import Detections, agreement, average_precision, overlaps
from detector.float_detector import DETECTIONS, REGIONS, Found, Masks, Trace, detect
from detector.graphs import Parts, parts_of
from detector.integer_detector import IntegerDetector, Precision, calibrated
from detector.scenes import HEIGHT, WIDTH, Scene, scenes

WEIGHTS = Path(__file__).parent / "weights.npz"
SEED, TO_CALIBRATION = 1000, 1000


@dataclass(frozen=True)
class Row:
    """One line of the table; shares are in percent.

    Attributes:
        name: of the precision.
        samples: of the calibration; 0 for float.
        precision: AP at 0.5.
        agreement: boxes of float that this one has too, at 0.9.
        masks: mean overlap of the masks with the shapes' own pixels, where the boxes overlap by 0.5.
    """

    name: str
    samples: int
    precision: float
    agreement: float
    masks: float


def load(path: Path) -> Parts:
    """Return the detector's parts with the weights of a file."""
    with np.load(path) as file:
        weights = {name: file[name].astype(np.float32) for name in file.files}
    return parts_of(weights, REGIONS, DETECTIONS)


def rows(
    parts: Parts, images: int, samples: Sequence[int], precisions: Sequence[Precision], seed: int = SEED
) -> Iterator[Row]:
    """Yield the lines: float, then for each number of calibration samples each precision."""
    drawn = list(scenes(images, seed))
    reference = detect(parts, pictures(drawn))
    yield _row("float", 0, reference.found, reference.found, drawn)
    source = detect(parts, pictures(list(scenes(max(samples), seed + TO_CALIBRATION))))
    for count in samples:
        ranged = calibrated(parts, source, count)
        for precision in precisions:
            yield _row(precision.name, count, _run(ranged, precision, reference), reference.found, drawn)


def pictures(drawn: Sequence[Scene]) -> NDArray[np.float32]:
    """Return images float32[S, HEIGHT, WIDTH, 3]."""
    return np.stack([scene.image for scene in drawn]).astype(np.float32)


def truth_of(scene: Scene) -> Detections:
    """Return the known boxes of a scene."""
    return Detections(scene.boxes, scene.classes, np.ones(len(scene.boxes)))


def pasted(mask: Masks, box: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the pixels of an image that a mask [M, M] of a box marks: the nearest point is 0.5 or more."""
    picture = np.zeros((HEIGHT, WIDTH), np.bool_)
    places = []
    for size, low, high in ((HEIGHT, box[0], box[2]), (WIDTH, box[1], box[3])):
        centers = (np.arange(size) + 0.5) / size
        inside = np.flatnonzero((centers >= low) & (centers <= high))
        places.append((inside, np.rint((centers[inside] - low) / (high - low) * (len(mask) - 1)).astype(np.int64)))
    (rows_inside, i), (columns_inside, j) = places
    picture[np.ix_(rows_inside, columns_inside)] = mask[np.ix_(i, j)] >= 0.5
    return picture


def _run(parts: Parts, precision: Precision, reference: Trace) -> Found:
    return IntegerDetector(parts, precision).detect(reference.images[:, 0])


def _row(name: str, samples: int, found: Found, reference: Found, drawn: Sequence[Scene]) -> Row:
    truth = [truth_of(scene) for scene in drawn]
    precision = average_precision(found.boxes, truth)
    return Row(
        name, samples, 100 * precision, 100 * agreement(found.boxes, reference.boxes), 100 * _masks(found, drawn)
    )


def _masks(found: Found, drawn: Sequence[Scene]) -> float:
    values = []
    for boxes, masks, scene in zip(found.boxes, found.masks, drawn, strict=True):
        table = overlaps(scene.boxes, boxes.boxes) * (scene.classes[:, None] == boxes.classes[None])
        for number, row in enumerate(table):
            best = int(np.argmax(row)) if row.size else 0
            if row.size and row[best] >= 0.5:
                mine, known = pasted(masks[best], boxes.boxes[best]), scene.masks[number]
                values.append((mine & known).sum() / max((mine | known).sum(), 1))
    return float(np.mean(values)) if values else 0.0
