#!/usr/bin/env python3
"""What bounds each MLPerf Tiny model on this machine: its products, passes and bytes against what numpy reaches here.

    TFLQ_DATA=<folder with models/> python scripts/bench_roofline.py [--samples 256] [--repeats 10] [MODEL ...]

Four figures of the machine, one thread: float32 products of BLAS (1024 x 1024 matrices), one pass of numpy over a
float32 element in the second-level cache, bytes read and written by a copy in memory, and one numpy call. With them

    products = multiply-accumulates of all layers / rate of products
    passes   = 6 passes over each element that a layer computes: cast, and offset, scale, clip, round, store
    memory   = int8 activations in and out of each layer, / rate of memory
    calls    = 12 numpy calls a layer, for one sample

A product and a pass cannot overlap in numpy: the bound of many samples is products + passes, or memory where that is
more; one sample needs at least that or its calls.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from bench_interpreter import add_models, model_paths, restart_clean, timed

PASSES = 6
CALLS = 12


@dataclass(frozen=True)
class Machine:
    """What numpy reaches here, in one thread.

    Attributes:
        products: multiply-accumulates of float32 a nanosecond.
        pass_ns: of one element, in place, in the second-level cache.
        bytes: read and written in memory, a nanosecond.
        call_us: of one numpy call on few elements.
    """

    products: float
    pass_ns: float
    bytes: float
    call_us: float


@dataclass(frozen=True)
class Work:
    """One sample's work, and the times it takes.

    Attributes:
        products: multiply-accumulates.
        elements: computed by all layers.
        bytes: int8 activations in and out of each layer.
        layers: that compute anything.
        many_us: measured for one of many samples.
        single_us: measured for one sample alone.
    """

    products: int
    elements: int
    bytes: int
    layers: int
    many_us: float
    single_us: float


def measure_machine(repeats: int) -> Machine:
    """Measure the four figures; the best of the repeats counts."""
    import numpy as np

    def best_ns(action: object, times: int = 1) -> float:
        return min(timed(action) for _ in range(repeats * times)) * 1e9

    rng = np.random.default_rng(0)
    square = rng.standard_normal((1024, 1024), np.float32)
    product = np.empty_like(square)
    cached = rng.standard_normal(1 << 16, np.float32)
    few = np.ones(16, np.float32)
    long = np.ones(1 << 26, np.uint8)
    copy = np.empty_like(long)
    return Machine(
        products=square.size * 1024 / best_ns(lambda: np.matmul(square, square, out=product)),
        pass_ns=best_ns(lambda: np.multiply(cached, np.float32(1), out=cached), 50) / cached.size,
        bytes=2 * long.size / best_ns(lambda: np.copyto(copy, long)),
        call_us=best_ns(lambda: [np.multiply(few, few, out=few) for _ in range(1000)]) / 1e6,
    )


def measure_model(path: Path, samples: int, repeats: int) -> Work:
    """Count one model's work and time it."""
    import numpy as np

    from tflq.converters.tflite import read_model
    from tflq.graph.arena import macs
    from tflq.interpreter import Engine

    graph = read_model(path).main
    engine = Engine(graph)
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-128, 128, (samples, *graph.tensors[t].shape), np.int8) for t in graph.inputs]
    single = [x[:1] for x in inputs]
    layers = [i for i, node in enumerate(graph.nodes) if node.operator != "reshape"]
    outputs = [graph.tensors[graph.nodes[i].outputs[0]].size for i in layers]
    read = [sum(t.size for t in graph.operands(i).inputs if t is not None and not t.is_constant) for i in layers]
    many = min(timed(lambda: engine.run(inputs)) for _ in range(repeats))
    one = min(timed(lambda: engine.run(single)) for _ in range(20 * repeats))
    return Work(
        products=sum(macs(graph, i) for i in layers),
        elements=sum(outputs),
        bytes=sum(outputs) + sum(read),
        layers=len(layers),
        many_us=1e6 * many / samples,
        single_us=1e6 * one,
    )


def report(machine: Machine, works: dict[str, Work]) -> None:
    """Print the machine and a line for each model; times in microseconds for one sample."""
    print(f"\nproducts {machine.products:.0f} GMAC/s, one pass {machine.pass_ns:.3f} ns an element", end=", ")
    print(f"memory {machine.bytes:.1f} GB/s, one call {machine.call_us:.2f} us\n")
    titles = ("MMAC", "elements", "products", "passes", "memory", "bound", "measured", "share", "calls", "1 sample")
    print(f"{'model':6}" + "".join(f"{title:>10}" for title in titles))
    for name, work in works.items():
        products = work.products / machine.products / 1e3
        passes = PASSES * work.elements * machine.pass_ns / 1e3
        memory = work.bytes / machine.bytes / 1e3
        bound = max(products + passes, memory)
        calls = CALLS * work.layers * machine.call_us
        print(f"{name:6}{work.products / 1e6:10.2f}{work.elements:10}", end="")
        print("".join(f"{us:10.1f}" for us in (products, passes, memory, bound, work.many_us)), end="")
        print(f"{bound / work.many_us:10.2f}{calls:10.1f}{work.single_us:10.1f}")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_models(parser)
    options = parser.parse_args()
    paths = model_paths(parser, options.models)
    restart_clean()
    works = {name: measure_model(path, options.samples, options.repeats) for name, path in paths.items()}
    report(measure_machine(options.repeats), works)


if __name__ == "__main__":
    main()
