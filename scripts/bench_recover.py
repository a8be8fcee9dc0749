"""Measure recovery and print the table of docs/guides/recover.md.

    python scripts/bench_recover.py kws_ref_model.tflite DIR

Every row fits to one half of the 1000 clips and reports on the other: the first half, and random ones by seed. Loss is
against 8 bits without recovery on the same clips, the SQNR that of the logits against the float network.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.api.calibrate import calibrate
from tflq.api.read_model import read_model
from tflq.benchmarks.scoring import load_named
from tflq.converters.settings import parse_settings
from tflq.converters.settled import dequantized
from tflq.converters.targets import find_target
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.parallel.executions import Execution, for_target, in_float, real_values
from tflq.precision.recover import RealSamples, RecoverySettings, prepare, recover_network, results_of
from tflq.sampling import GivenSamples

HALF, ASIDE = 500, 10


@dataclass(frozen=True)
class Row:
    """One way to recover: its name, the target with settings, and how many clips are fitted to."""

    name: str
    target: str
    settings: tuple[str, ...]
    layers: tuple[str, ...] = ()
    clips: int = HALF
    bias_only: bool = False


SQ8_FIRST = ("CONV_2D_0_0:use_ne16=false",)
ROWS = (
    *(Row(f"gap9-ne16, {b} bits", "gap9-ne16", (f"weight_bits={b}",), SQ8_FIRST) for b in (4, 3, 2)),
    Row("gap9-ne16, 2 bits, down to -2", "gap9-ne16", ("weight_bits=2", "weight_range=full"), SQ8_FIRST),
    Row("gap9-ne16, 4 bits, bias alone", "gap9-ne16", ("weight_bits=4",), SQ8_FIRST, bias_only=True),
    *(Row(f"gap9-ne16, {b} bits, 100 clips", "gap9-ne16", (f"weight_bits={b}",), SQ8_FIRST, 100) for b in (4, 3)),
    Row("gap9-ne16, 3 bits, all on NE16", "gap9-ne16", ("weight_bits=3",)),
    Row("gap9-ne16, 8 bits", "gap9-ne16", ("weight_bits=8",), SQ8_FIRST),
    *(Row(f"aipu, {b} bits", "aipu", (f"weight_bits={b}",)) for b in (4, 5, 6, 7)),
    Row("aipu, 4 bits, a scale each channel", "aipu", ("weight_bits=4", "weights=per_channel")),
    *(
        Row(f"aipu, {b} bits, {method}", "aipu", (f"weight_bits={b}", f"global_calibration={method}"))
        for b in (4, 8)
        for method in ("adaround", "adaquant_zy")
    ),
    Row("aipu, 8 bits", "aipu", ("weight_bits=8",)),
    Row("openvino, 4 bits", "openvino", ("weight_bits=4",)),
    Row("tpu-mlir, 8 bits", "tpu-mlir", ()),
    Row("tflite, 4 bits", "tflite", ("weight_bits=4",)),
    Row("tflite, 8 bits", "tflite", ()),
    Row("tflite, 8 bits, a scale each tensor", "tflite", ("per_channel=false",)),
)


class Bench:
    """The model, its float network, and what all clips give: logits of the float network, answers of targets."""

    def __init__(self, path: str, folder: str) -> None:
        self.model = calibrate(read_model(path))
        self.floating = dequantized(self.model)
        data = load_named(f"kws01={folder}", self.model.main)
        (self.clips,) = data.samples.take(0, 2 * HALF)
        self.labels = data.labels[: 2 * HALF]
        self.samples = RealSamples(GivenSamples([self.clips]), self.model.main, self.floating.main)
        self.reference = in_float(self.floating, "independent")
        self.known: dict[tuple[str, ...], Figures] = {}

    def figures(self, execution: Execution) -> Figures:
        """Return what a target gives on all clips."""
        ((ours, theirs),) = results_of(execution, self.reference, self.samples)
        output = execution.graph.outputs[0]
        found, answers, wanted = [], [], []
        for chunk, floats in zip(
            execution.iterate(self.samples, {ours, output}),
            self.reference.iterate(self.samples, (theirs,)),
            strict=True,
        ):
            found.append(real_values(chunk[ours], execution.graph.tensors[ours]).reshape(len(floats[theirs]), -1))
            answers.append(real_values(chunk[output], execution.graph.tensors[output]).reshape(len(found[-1]), -1))
            wanted.append(floats[theirs].astype(np.float64).reshape(found[-1].shape))
        logits, target = np.concatenate(found), np.concatenate(wanted)
        right = np.concatenate(answers).argmax(1) == self.labels
        return Figures(right, np.square(target).sum(1), np.square(logits - target).sum(1))

    def plain(self, row: Row, settings: tuple[str, ...]) -> Figures:
        """Return what a target gives with weights rounded to nearest; run once."""
        key = (row.target, *settings, *row.layers)
        if key not in self.known:
            target = find_target(row.target)
            chosen = parse_settings(target.settings, settings, row.layers)
            self.known[key] = self.figures(for_target(self.floating.main, target, chosen))
        return self.known[key]

    def recovered(self, row: Row, order: NDArray[np.int64]) -> Figures:
        """Return what it gives with weights fitted to the first clips of an order."""
        target, fitted = find_target(row.target), order[: row.clips]
        is_aside = np.arange(row.clips) % ASIDE == ASIDE - 1
        parts = (GivenSamples([self.clips[fitted[~is_aside]]]), GivenSamples([self.clips[fitted[is_aside]]]))
        chosen = parse_settings(target.settings, row.settings, row.layers)
        how = RecoverySettings(bias_only=row.bias_only)
        prepared = prepare(self.model, self.floating, parts, how)
        return self.figures(recover_network(prepared, target, chosen).execution)


@dataclass(frozen=True)
class Figures:
    """For each clip: whether it is right, the power of the float network's logits, and of the difference from them."""

    right: NDArray[np.bool_]
    signal: NDArray[np.float64]
    noise: NDArray[np.float64]

    def accuracy(self, clips: NDArray[np.int64]) -> float:
        """Return the accuracy on some clips, in percent."""
        return 100 * float(self.right[clips].mean())

    def sqnr(self, clips: NDArray[np.int64]) -> float:
        """Return the ratio on some clips, in dB."""
        return sqnr_db(float(self.signal[clips].sum()), float(self.noise[clips].sum()))


def main() -> None:
    """Print a row of the table for each way to recover."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data", help="folder of the task kws01")
    parser.add_argument("--splits", type=int, default=6, help="the first half, and random ones of seeds 1, 2, ...")
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    arguments = parser.parse_args()
    bench = Bench(arguments.model, arguments.data)
    orders = [np.arange(2 * HALF)]
    orders += [np.random.default_rng(seed).permutation(2 * HALF) for seed in range(1, arguments.splits)]
    columns = ("target and weights", "nearest, %", "recovered, %", "loss, points", "nearest, dB", "dB")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in ROWS:
        if arguments.only in row.name:
            print(_line(row, bench, orders), flush=True)


def _line(row: Row, bench: Bench, orders: list[NDArray[np.int64]]) -> str:
    cells = []
    eight = tuple("weight_bits=8" if s.startswith("weight_bits") else s for s in row.settings)
    widest, nearest = bench.plain(row, eight), bench.plain(row, row.settings)
    for order in orders:
        found = bench.recovered(row, order)
        others = order[HALF:]
        before, after = nearest.accuracy(others), found.accuracy(others)
        loss = widest.accuracy(others) - after
        cells.append((before, after, nearest.sqnr(others), loss, found.sqnr(others)))
    before, after, ratio, loss, found_ratio = np.array(cells).T
    spread = [f"{x.mean():.1f} ± {x.std():.1f}" for x in (loss, found_ratio)]
    figures = (f"{before.mean():.1f}", f"{after.mean():.1f}", spread[0], f"{ratio.mean():.1f}", spread[1])
    return f"| {row.name} | {' | '.join(figures)} |"


if __name__ == "__main__":
    main()
