"""Quantizes float IR with Compass's Optimizer and dumps it; runs in the peer's environment (compass_recorded.py).

usage: compass_recorded_worker.py PLAN.json
PLAN: a list of {"folder", "text" or "model", "float", "mode", "settings", "calibrated"}; the folder holds samples.npz,
one array an input of the IR, [samples, *shape]. Writes FOLDER/MODE as the peer's quantise_and_dump does; with "float"
the Parser's files alone. Each case runs in a process of its own, so that one that ends does not end the others.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

MOST_SECONDS = 120
Arrays = Sequence[np.ndarray]

sys.path.pop(0)  # this folder, which has a compass.py of its own
compass: Any = importlib.import_module("compass")
torch: Any = importlib.import_module("torch")
data: Any = importlib.import_module("torch.utils.data")


class Samples:
    """Samples in the shape that the IR states, which may have no batch."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, number: int) -> list[Any]:
        return [[torch.from_numpy(np.ascontiguousarray(array[number])) for array in self.arrays], 0]


def batches(arrays: Arrays, _count: int) -> object:
    """A loader of single samples, without an axis for the batch."""
    return data.DataLoader(Samples(arrays), batch_size=1, collate_fn=lambda many: many[0])


def tensors(
    graph: Any,  # noqa: ANN401
    arrays: Arrays,
    kept: set[str] | None = None,
    quantized: bool = True,
) -> dict[str, np.ndarray]:
    """Every tensor for each sample, as the peer's own function, of samples in the shape that the IR states."""
    found: dict[str, list[np.ndarray]] = {}
    graph.enable_fit_dtype()
    for number in range(len(arrays[0])):
        graph.forward([array[number] for array in arrays], quantized, True)
        for node in graph.nodes:
            if kept is None or node.name in kept:
                for tensor in node.outputs:
                    found.setdefault(tensor.name, []).append(compass.plain(tensor.betensor))
    return {name: np.stack([v.astype(np.result_type(*values)) for v in values]) for name, values in found.items()}


class Twice(list[np.ndarray]):
    """Arrays of which the peer's `quantize` sees two, so that it takes the loader."""

    def __len__(self) -> int:
        return max(2, super().__len__())


def dump(case: dict[str, Any]) -> None:
    """Make one dump."""
    folder = Path(case["folder"])
    text = Path(case["text"]) if "text" in case else folder / "ir" / "model.txt"
    if "model" in case and not text.exists():
        compass.parse(case["model"], text.parent)
    if case["float"]:
        return
    with np.load(folder / "samples.npz") as file:
        arrays = [file[name] for name in file.files]
    calibrated = case["calibrated"]
    given, run = [a[:calibrated] for a in arrays], [a[calibrated:] for a in arrays]
    is_one_image = len(arrays) == 1 and arrays[0].shape[1] == 1
    given = [given[0][:, 0]] if is_one_image else Twice(given)
    compass.quantise_and_dump(text, folder / case["mode"], case["settings"], given, run)


def main(plan: str) -> None:
    """Dump every case."""
    compass.optimizer()
    compass.batches, compass.tensors = batches, tensors
    for case in json.loads(Path(plan).read_text(encoding="utf-8")):
        if Path(case["folder"], case["mode"], "tensors.npz").exists():
            continue
        process = os.fork()
        if process == 0:
            signal.alarm(MOST_SECONDS)
            try:
                dump(case)
            finally:
                os._exit(0)
        os.waitpid(process, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
