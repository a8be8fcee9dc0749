#!/usr/bin/env python3
"""Trains a reduced Mask R-CNN, or quantizes the trained one for Zhouyi and prints what that costs.

    python scripts/mask_rcnn.py [--images 100] [--samples 1 100] [--every-step] [--seed 1000] [--weights FILE]
    python scripts/mask_rcnn.py --train [--steps 1500] [--weights FILE]

Training needs tflq[tensorflow] and writes the file; everything else needs numpy alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from pathlib import Path

from detector.evaluation import SEED, WEIGHTS, Row, load, rows
from detector.integer_detector import BOXES, INT8, MIXED, SCORES

_HEAD = f"{'':14}{'samples':>8}{'AP@0.5':>9}{'drop':>7}{'boxes as float':>16}{'masks':>8}"


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=100, help="test images")
    parser.add_argument("--samples", type=int, nargs="+", default=[1, 100], help="calibration images")
    parser.add_argument("--every-step", action="store_true", help="also with 16 bits for boxes or scores alone")
    parser.add_argument("--seed", type=int, default=SEED, help="of the test images; the calibration's is 1000 higher")
    parser.add_argument("--train", action="store_true", help="train and write the weights")
    parser.add_argument("--steps", type=int, default=None, help="of the training")
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="file of weights")
    given = parser.parse_args()
    if given.train:
        from detector.training import STEPS, save, train

        save(given.weights, train(given.steps or STEPS))
        return
    precisions = (INT8, BOXES, SCORES, MIXED) if given.every_step else (INT8, MIXED)
    start = time.perf_counter()
    _print_table(rows(load(given.weights), given.images, given.samples, precisions, given.seed))
    print(f"{given.images} images, {time.perf_counter() - start:.0f} s")


def _print_table(lines: Iterable[Row]) -> None:
    best = 0.0
    print(_HEAD)
    for row in lines:
        best = best if row.samples else row.precision
        count = str(row.samples) if row.samples else ""
        shares = f"{row.precision:8.2f}%{best - row.precision:7.2f}{row.agreement:15.2f}%{row.masks:7.2f}%"
        print(f"{row.name:14}{count:>8}{shares}", flush=True)


if __name__ == "__main__":
    main()
