#!/usr/bin/env python3
"""Processor time until a model is ready to run, and until one sample has run, beside that of another checkout.

    python scripts/bench_load.py MODEL.tflite ... [--beside FOLDER] [--repeats 5]

"load and plan" is reading the file and making the engine; "first run" is one random sample, which fits the maps of the
layers that it goes through; "16 samples" is a later run. Each figure is the best of all turns. FOLDER is another
checkout of this repository (`git worktree add FOLDER COMMIT`): both sides run in this Python, in turns, each turn a
process of its own, and the ratio is this checkout's time over the other's. One thread, as scripts/bench_interpreter.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from bench_interpreter import random_values, restart_clean

FIGURES = ("load and plan", "first run", "16 samples")


def measure(path: str) -> list[float]:
    """Return the figures of one turn in seconds; modules are imported before."""
    import numpy as np

    from tflq.converters.tflite import read_model
    from tflq.interpreter import Engine

    Engine(read_model(path).main)
    times = [time.process_time()]
    graph = read_model(path).main
    engine = Engine(graph)
    times.append(time.process_time())
    tensors = [graph.tensors[t] for t in graph.inputs]
    rng = np.random.default_rng(0)
    inputs = [random_values(rng, tensor, 16) for tensor in tensors]
    for samples in (1, 16):
        start = time.process_time()
        engine.run([x[:samples] for x in inputs])
        times.append(times[-1] + time.process_time() - start)
    return [end - begin for begin, end in pairwise(times)]


def turn(root: Path, model: str) -> list[float]:
    """Run `measure` with the tflq of a checkout in a new process."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, __file__, model, "--one-turn"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: list[float] = json.loads(done.stdout)
    return figures


def compare(model: str, beside: Path | None, repeats: int) -> None:
    """Print the figures of a model."""
    roots = [Path(__file__).resolve().parent.parent] + ([beside.resolve()] if beside else [])
    turns = [[turn(root, model) for root in roots] for _ in range(repeats)]
    print(Path(model).name)
    for number, figure in enumerate(FIGURES):
        best = [min(t[side][number] for t in turns) for side in range(len(roots))]
        ratio = f"  {best[1]:8.3f} s there  ratio {best[0] / best[1]:.3f}" if beside else ""
        print(f"  {figure:14} {best[0]:8.3f} s{ratio}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.tflite")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another checkout of this repository")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one-turn", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.one_turn:
        print(json.dumps(measure(given.models[0])))
        return 0
    restart_clean()
    for model in given.models:
        compare(model, given.beside, given.repeats)
    return 0


if __name__ == "__main__":
    sys.exit(main())
