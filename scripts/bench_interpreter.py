#!/usr/bin/env python3
"""Time per sample of tflq beside TFLite's kernels on the five MLPerf Tiny models or others, as ratios of one run.

    TFLQ_DATA=<folder with models/> python scripts/bench_interpreter.py [--samples 256] [--repeats 10] [MODEL ...]
    python scripts/bench_interpreter.py --samples 16 --repeats 3 FILE.tflite ...
    TFLQ_DATA=<folder with models/> python scripts/bench_interpreter.py --targets
    TFLQ_DATA=<folder with models/> python scripts/bench_interpreter.py --backend c [--targets]
    python scripts/bench_interpreter.py --costs

Everything runs in one thread, one after the other. OpenBLAS's own choice of kernels is used: an environment that
forces OPENBLAS_CORETYPE costs a factor, so this program starts itself again without it. The peers take turns, as often
as `--repeats` says, and the best time of each counts: what else runs on the machine slows all of them down, in turn.
tflq's is the processor's time, TFLite's that of a clock around invocations too short to be interrupted each time. A
ratio above 1 says that tflq is faster. With --backend c compiled C takes part in the same turns, with shares of time
below the table; TFLQ_WITHOUT_DOT=1 measures it without the dot product instruction.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np

    from tflq.graph import Array, Tensor

_FORCED = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
MODELS = {
    "kws": "kws_ref_model",
    "ic": "pretrainedResnet_quant",
    "vww": "vww_96_int8",
    "ad": "ad01_int8",
    "sww": "str_ww_ref_model",
}
_KERNELS: dict[str, Literal["BUILTIN_REF", "BUILTIN", "AUTO"]] = {
    "reference": "BUILTIN_REF",
    "optimized": "BUILTIN",
    "xnnpack": "AUTO",
}


def restart_clean() -> None:
    """Start again in an environment where numpy's BLAS uses one thread and its own choice of kernels."""
    if os.environ.get("TFLQ_BENCH_CLEAN") == "1":
        return
    environment = {name: value for name, value in os.environ.items() if name not in _FORCED}
    environment |= {"TFLQ_BENCH_CLEAN": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    forced = [f"{name}={os.environ[name]}" for name in _FORCED if name in os.environ]
    print(f"environment: unset {', '.join(forced) or 'nothing'}; OPENBLAS_NUM_THREADS=1", flush=True)
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


@dataclass(frozen=True)
class Compiled:
    """Figures with backend c: microseconds per sample, and milliseconds until the first sample is through."""

    single_us: float
    many_us: float
    load_ms: float
    in_numpy: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """One model's figures in microseconds per sample."""

    name: str
    single_us: float
    many_us: float
    load_ms: float
    tflite_us: dict[str, float]
    compiled: Compiled | None = None


def measure(name: str, path: Path, samples: int, repeats: int, with_c: bool = False) -> Row:
    """Measure one model, with compiled C beside numpy or not."""
    import numpy as np

    from tflq.converters.tflite import read_model
    from tflq.interpreter import Engine
    from tflq.oracle import Oracle

    start = time.process_time()
    graph = read_model(path).main
    engine = Engine(graph, backend="numpy")
    load_ms = 1e3 * (time.process_time() - start)
    rng = np.random.default_rng(0)
    inputs = [random_values(rng, graph.tensors[t], samples) for t in graph.inputs]
    single = [x[:1] for x in inputs]
    actions = {"many": lambda: engine.run(inputs), "one": lambda: engine.run(single)}
    compiled, compiled_ms = None, 0.0
    if with_c:
        start = time.perf_counter()
        compiled = fast = Engine(graph, backend="c")
        fast.run(single)
        compiled_ms = 1e3 * (time.perf_counter() - start)
        actions |= {"c many": lambda: fast.run(inputs), "c one": lambda: fast.run(single)}
    best = dict.fromkeys((*_KERNELS, *actions), float("inf"))
    content = path.read_bytes()
    with ExitStack() as stack:
        oracles = {label: stack.enter_context(Oracle(kernels=kernels)) for label, kernels in _KERNELS.items()}
        for _ in range(repeats):
            for label, oracle in oracles.items():
                best[label] = min(best[label], oracle.time(content, single, repeats=20).min_s)
            for label, action in actions.items():
                turns = {"many": 2, "c many": 10}.get(label, 20)
                best[label] = min(best[label], *(timed(action) for _ in range(turns)))
    tflite = {label: 1e6 * best[label] for label in _KERNELS}
    row = Row(name, 1e6 * best["one"], 1e6 * best["many"] / samples, load_ms, tflite)
    if compiled is None:
        return row
    rest = tuple(node.operator for node in compiled.in_numpy())
    return replace(row, compiled=Compiled(1e6 * best["c one"], 1e6 * best["c many"] / samples, compiled_ms, rest))


def random_values(rng: np.random.Generator, tensor: Tensor, samples: int) -> Array:
    """Return samples of an input: any quantized value, or numbers in 0..1."""
    shape, dtype = (samples, *tensor.shape), tensor.dtype
    if dtype.storage.kind == "f":
        return rng.random(shape).astype(dtype.storage)
    return rng.integers(dtype.minimum, dtype.maximum + 1, shape).astype(dtype.storage)


def timed(action: object) -> float:
    """Return the processor's seconds for one call: those that other programs take away in between do not count."""
    assert callable(action)
    start = time.process_time()
    action()
    return time.process_time() - start


def report(rows: Sequence[Row], samples: int) -> None:
    """Print the table."""
    print(f"\n{'':16}{'tflq, us per sample':>24}   TFLite, us per invocation       tflq is so many times as fast as")
    print(f"{'model':16}{'1 sample':>12}{f'{samples} samples':>12}{'load ms':>9}", end="")
    print("".join(f"{label:>11}" for label in _KERNELS), "  |", end="")
    print("".join(f"{f'{label} x{n}':>16}" for n in (1, samples) for label in _KERNELS))
    for row in rows:
        print(f"{row.name:16}{row.single_us:12.1f}{row.many_us:12.1f}{row.load_ms:9.1f}", end="")
        print("".join(f"{row.tflite_us[label]:11.1f}" for label in _KERNELS), "  |", end="")
        print(
            "".join(f"{row.tflite_us[label] / us:16.2f}" for us in (row.single_us, row.many_us) for label in _KERNELS)
        )


def report_compiled(rows: Sequence[Row], samples: int) -> None:
    """Print what compiled C takes, in microseconds and as shares of the time of others in the same run."""
    head = f"{samples} samples, us   of XNNPACK   of numpy   1 sample, us   of numpy   ready, ms   in numpy"
    print(f"\nbackend c       {head}")
    for row in rows:
        if row.compiled is not None:
            c = row.compiled
            print(f"{row.name:16}{c.many_us:14.2f}{c.many_us / row.tflite_us['xnnpack']:13.2f}", end="")
            print(f"{c.many_us / row.many_us:11.3f}{c.single_us:15.1f}{c.single_us / row.single_us:11.3f}", end="")
            print(f"{c.load_ms:12.0f}   {' '.join(c.in_numpy) or 'nothing'}")


def measure_targets(paths: Mapping[str, Path], samples: int, repeats: int) -> None:
    """Print the time of each model's samples in each target's arithmetic beside the tflite arithmetic."""
    for name, path in paths.items():
        measure_in_targets(name, path, samples, repeats)


def measure_in_targets(model_name: str, path: Path, samples: int, repeats: int) -> None:
    """Print the same of one model."""
    import numpy as np

    from tflq.converters.settings import parse_settings
    from tflq.converters.targets import find_target, target_names
    from tflq.converters.tflite import read_model
    from tflq.errors import TflqError
    from tflq.parallel.executions import as_is, for_target

    model = read_model(path)
    shape = model.main.tensors[model.main.inputs[0]].shape
    inputs = [np.random.default_rng(0).integers(-128, 128, (samples, *shape), np.int8)]
    runs = {"tflite": as_is(model)}
    for name in target_names():
        target = find_target(name)
        try:
            runs[name] = for_target(model.main, target, parse_settings(target.settings, ()))
        except TflqError as error:
            print(f"{name}: not measured: {error}")
    encoded = {name: run.encode(inputs) for name, run in runs.items()}
    times = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):  # they take turns, so that none of them has the quiet minutes for itself
        for name, run in runs.items():
            times[name] = min(times[name], timed(lambda r=run, n=name: r.engine.run(encoded[n])))
    print(f"\n{samples} samples of {model_name}, seconds, and as a multiple of the tflite arithmetic")
    for name, seconds in times.items():
        print(f"{name:12}{seconds:10.3f}{seconds / times['tflite']:10.2f}")


def measure_costs(samples: int, repeats: int) -> None:
    """Print the time of both sample orders on this machine next to the weights of layout.py."""
    import numpy as np

    from tflq.interpreter.accumulate import accumulate_in_order, prepare_convolution
    from tflq.interpreter.accumulate.samples_last import products_per_output
    from tflq.interpreter.layout import COSTS, is_samples_last, to_samples_last
    from tflq.interpreter.operands.sliding_windows import Window

    rng, side, channels = np.random.default_rng(0), 24, 64

    def window(k: int) -> Window:
        return Window((k, k), top=k // 2, bottom=k // 2, left=k // 2, right=k // 2)

    def ns(shape: tuple[int, ...], groups: int, last: bool) -> float:
        """Return a sample's nanoseconds for each output pixel of a convolution with weights [O, K, K, C/groups]."""
        x = rng.integers(-128, 128, (samples, 1, side, side, shape[3] * groups), np.int8)
        x = to_samples_last(x) if last else x
        assert is_samples_last(x) == last
        prepared = prepare_convolution(rng.integers(-9, 9, shape), window(shape[1]), groups, 128, side)
        spent = min(timed(lambda: accumulate_in_order(prepared, x, 0)) for _ in range(repeats + 1))
        return 1e9 * spent / samples / side**2

    x = rng.integers(-128, 128, (samples, 1, side, side, channels), np.int8)
    reordering = 1e9 * min(timed(lambda: to_samples_last(x)) for _ in range(repeats)) / x.size
    small, large = (ns((channels, k, k, 1), channels, False) / channels for k in (3, 5))
    tap = (large - small) / (25 - 9)
    band = ns((channels, 3, 3, 1), channels, True) / channels / products_per_output(window(3), (side, side))
    rows = [
        ("reordering", reordering, COSTS.reordering),
        ("depthwise_output", small - 9 * tap, COSTS.depthwise_output),
        ("depthwise_tap", tap, COSTS.depthwise_tap),
        ("band_product", band, COSTS.band_product),
    ]
    for count, dense in zip((16, 32, 64), COSTS.dense, strict=True):
        for order, wanted in (("first", dense.first), ("last", dense.last)):
            found = ns((count, 3, 3, count), 1, order == "last") / (9 * count**2)
            rows.append((f"dense, {count} channels, {order}", found, wanted))
    print(f"\n{'nanoseconds':28}{'here':>10}{'in use':>10}")
    for name, found, used in rows:
        print(f"{name:28}{found:10.4f}{used:10.4f}")


def add_models(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what is measured: models, samples, repeats."""
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(MODELS)}, all if none is named; or files")
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=10)


def model_paths(parser: argparse.ArgumentParser, names: Sequence[str]) -> dict[str, Path]:
    """Return the files of the named models, all where nothing is named; the parser refuses what is unknown."""
    files = {Path(name).stem[-16:]: Path(name) for name in names if name.endswith(".tflite")}
    names = [name for name in names if not name.endswith(".tflite")]
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        parser.error(f"unknown model {unknown[0]}; there are {', '.join(MODELS)}")
    if files and not names:
        return files
    root = os.environ.get("TFLQ_DATA")
    if not root:
        parser.error("TFLQ_DATA is not set: it names the folder whose models/ holds the .tflite files")
    return {name: Path(root, "models", f"{MODELS[name]}.tflite") for name in names or MODELS} | files


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_models(parser)
    parser.add_argument(
        "--targets", action="store_true", help="measure models in every target's arithmetic instead, KWS unless told"
    )
    parser.add_argument("--backend", choices=("numpy", "c"), default="numpy", help="c: compiled C as well")
    parser.add_argument("--costs", action="store_true", help="measure what samples first and last cost instead")
    options = parser.parse_args()
    if options.costs:
        restart_clean()
        measure_costs(options.samples, options.repeats)
        return
    paths = model_paths(parser, options.models)
    restart_clean()
    import numpy as np

    from tflq.backends import backend

    print(f"numpy {np.__version__}, {options.samples} samples, best of {options.repeats}")
    if options.targets:
        with backend(options.backend):
            measure_targets(model_paths(parser, options.models or ["kws"]), 1000, options.repeats)
        return
    with_c = options.backend == "c"
    rows = [measure(name, path, options.samples, options.repeats, with_c) for name, path in paths.items()]
    report(rows, options.samples)
    if with_c:
        report_compiled(rows, options.samples)


if __name__ == "__main__":
    main()
