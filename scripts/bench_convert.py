#!/usr/bin/env python3
"""Processor time of `quantize` for chains of 200 and 400 nodes, and time and peak memory of `tflq convert`.

    python scripts/bench_convert.py [--targets tflite,gap9-sq8] [--repeats 3] [--model FILE.tflite]

The first table has the time of each target for both chains, best of all repeats, and their ratio: 2 for a linear
quantizer; the limit is 2.3. The second table is one `tflq convert` per target in a separate process, start of Python
included. Its model is FILE, otherwise Keras' ResNet-50 with random weights in int8 (26 MB, needs tensorflow). Limits
for tflite and gap9-sq8 are 15 s and 1 GiB. Everything runs in one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tflq.graph import Graph

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")
LENGTHS = (200, 400)
_CHANNELS, _SIDE = 8, 8


def main(arguments: Sequence[str]) -> int:
    from tflq.converters.targets import target_names

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default=",".join(target_names()), help="names, separated by commas (all targets)")
    parser.add_argument("--repeats", type=int, default=3, help="runs per chain; the fastest one is printed (3)")
    parser.add_argument("--model", type=Path, help="file to convert in place of ResNet-50")
    args = parser.parse_args(arguments)
    targets = args.targets.split(",")
    _print_chains(targets, args.repeats)
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or _make_resnet(Path(folder))
        _print_conversions(targets, model, Path(folder))
    return 0


def make_chain(length: int) -> Graph:
    """Return a chain of `length` nodes: convolution, RELU and a residual ADD in turns, each tensor with a range."""
    from tflq.graph import DType, GraphBuilder, Range

    builder, rng, shape = GraphBuilder("chain"), np.random.default_rng(length), (1, _SIDE, _SIDE, _CHANNELS)
    x = source = builder.input("x", shape, DType.FLOAT32)
    for n in range(length):
        if n % 3 == 0:
            source = x
            filters = rng.normal(size=(_CHANNELS, 3, 3, _CHANNELS)).astype(np.float32)
            operands = [x, builder.constant(f"w{n}", filters), builder.constant(f"b{n}", filters[:, 0, 0, 0])]
            window: dict[str, Any] = {"padding": "same", "stride_h": 1, "stride_w": 1}
            x = builder.add("conv_2d", operands, shape, DType.FLOAT32, fused_activation_function="none", **window)
        elif n % 3 == 1:
            x = builder.add("relu", [x], shape, DType.FLOAT32)
        else:
            x = builder.add("add", [x, source], shape, DType.FLOAT32, fused_activation_function="none")
    graph = builder.build([x])
    limits = Range(np.array([-8], np.float32), np.array([8], np.float32))
    graph.tensors = [tensor if tensor.is_constant else replace(tensor, range=limits) for tensor in graph.tensors]
    return graph


def _print_chains(targets: Sequence[str], repeats: int) -> None:
    print(f"{'quantize':12}{LENGTHS[0]:>6} nodes{LENGTHS[1]:>6} nodes{'ratio':>8}")
    for name in targets:
        first, second = (_time_quantize(name, length, repeats) for length in LENGTHS)
        print(f"{name:12}{first:10.2f} s{second:10.2f} s{second / first:8.2f}", flush=True)


def _time_quantize(name: str, length: int, repeats: int) -> float:
    """Return the processor time in seconds, best of all repeats."""
    from tflq.converters.settings import parse_settings
    from tflq.converters.settled import settled_graph
    from tflq.converters.targets import find_target

    target, graph = find_target(name), settled_graph(make_chain(length))
    settings, times = parse_settings(target.settings), []
    for _ in range(repeats):
        start = time.process_time()
        target.quantize(graph, settings)
        times.append(time.process_time() - start)
    return min(times)


def _make_resnet(folder: Path) -> Path:
    """Return the file of Keras' ResNet-50 with random weights in int8, inputs and outputs included."""
    path = folder / "resnet50_int8.tflite"
    script = (
        "import sys, numpy, keras, tensorflow as tf\n"
        "keras.utils.set_random_seed(1)\n"
        "c = tf.lite.TFLiteConverter.from_keras_model(keras.applications.ResNet50(weights=None))\n"
        "c.optimizations = [tf.lite.Optimize.DEFAULT]\n"
        "r = numpy.random.default_rng(1)\n"
        "c.representative_dataset = lambda: ([r.random((1, 224, 224, 3), numpy.float32)] for _ in range(2))\n"
        "c.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]\n"
        "c.inference_input_type = c.inference_output_type = tf.int8\n"
        "open(sys.argv[1], 'wb').write(c.convert())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"ResNet-50 was not made, name a file by --model: {done.stderr.strip().splitlines()[-1]}")
    return path


def _print_conversions(targets: Sequence[str], model: Path, folder: Path) -> None:
    print(f"\n{'convert':12}{'time':>12}{'memory':>12}   {model.name}, {model.stat().st_size / 1e6:.0f} MB")
    for name in targets:
        print(f"{name:12}{' '.join(_measure_convert(name, model, folder))}", flush=True)


def _measure_convert(name: str, model: Path, folder: Path) -> Iterator[str]:
    """Yield processor time and peak memory of one command, or the error that it prints."""
    command = [sys.executable, "-m", "tflq", "convert", str(model), "--target", name, "-o", str(folder / name)]
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        yield f"{usage.ru_utime + usage.ru_stime:10.1f} s"
        yield f"{usage.ru_maxrss / 1024:7.0f} MiB"
        if status:
            errors.seek(0)
            yield f"  {errors.read().decode().strip()[-200:]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
