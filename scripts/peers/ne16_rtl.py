"""NE16's open RTL against tflq: every filter that `convert` gives the accelerator, its jobs run in Verilator.

    scripts/peer ne16-rtl [MODEL ...] [--bits 8 ...] [--target gap9-ne16 settings by --set and --layer] [--networks 20]
        [--seed 1] [--json FILE]

The features are those of a random sample, the bytes and registers those of ne16_memory.bin and ne16_jobs.json. All
output bytes are compared, the memory around them must stay as it was, and the cycles must be the formula's. Without
MODEL --networks filters are drawn: modes, kernels, strides, dilations, paddings, ragged channels.

--gvsoc PROGRAM judges by GVSOC's model instead (ne16_gvsoc/build makes it): bytes alone, as its cycles are its own,
of the filters that fit the 128 KiB that it addresses.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from peers.campaign import Row, Verdict, find, parser, report
from tflq.api.read_model import read_model
from tflq.converters.gap9.jobs.cycles import cycles_of
from tflq.converters.gap9.jobs.filters import is_on_ne16
from tflq.converters.gap9.jobs.memory import LayerMemory, layer_memory, outputs_after_jobs
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.errors import TflqError, UnsupportedError
from tflq.graph import Affine, Array, DType, Graph, GraphBuilder
from tflq.graph.attributes import Attribute
from tflq.parallel.executions import Execution, for_target
from tflq.sampling import RandomSamples

_GUARD, _AROUND = 0xA5, 4096
_RTL_BYTES, _GVSOC_BYTES = 16 << 20, 128 << 10
_KERNELS = ((1, 1), (3, 3), (3, 3), (5, 5), (4, 1), (2, 3))


class Engine(Protocol):
    """The peer's client: a flat memory and jobs."""

    def clear(self, value: int = 0) -> None: ...
    def write(self, address: int, data: Array | bytes) -> None: ...
    def read(self, address: int, shape: tuple[int, ...]) -> Array: ...
    def run(self, registers: dict[str, int]) -> int: ...


@dataclass(frozen=True)
class Accelerator:
    """A running peer: whether its cycles are the accelerator's, and how many bytes it addresses."""

    engine: Engine
    is_timed: bool
    memory_bytes: int


@dataclass(frozen=True)
class Outcome:
    """What the RTL made of one filter; `untrue`: bytes after single jobs that are not those of test vectors."""

    jobs: int
    values: int
    differing: int
    untrue: int
    stray: int
    cycles: int
    formula: int
    is_timed: bool

    @property
    def is_equal(self) -> bool:
        return not (self.differing or self.untrue or self.stray) and (not self.is_timed or self.cycles == self.formula)


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("models", nargs="*", type=Path, help=".tflite files; none: filters are drawn")
    options.add_argument("--bits", nargs="+", type=int, default=[8], help="of the weights (8)")
    options.add_argument("--set", nargs="+", default=[], help="KEY=VALUE, more settings of the target")
    options.add_argument("--gvsoc", type=Path, metavar="PROGRAM", help="GVSOC's model in place of the RTL")
    options.add_argument("--layer", nargs="+", default=[], help="PATTERN:KEY=VALUE")
    args = options.parse_args(list(arguments))
    with opened(args.gvsoc) as engine:
        if not args.models:
            drawn = (_drawn(engine, seed) for seed in range(args.seed, args.seed + args.networks))
            return report(drawn, args.json)
        pairs = ((model, bits) for model in args.models for bits in args.bits)
        return report((_model(engine, m, b, args.set, args.layer, args.seed) for m, b in pairs), args.json)


@contextmanager
def opened(gvsoc: Path | None = None) -> Iterator[Accelerator]:
    """The verilated accelerator, or a server of GVSOC's model; one line and status 2 where it is not set up."""
    peer = find("ne16_rtl", "ne16")
    sys.path.insert(0, str(peer.scripts))
    try:
        server = importlib.import_module("ne16_server")
    finally:
        sys.path.remove(str(peer.scripts))
    with cast("AbstractContextManager[Engine]", server.NE16(str(gvsoc or peer.target / "ne16_jobs"))) as engine:
        yield Accelerator(engine, gvsoc is None, _RTL_BYTES if gvsoc is None else _GVSOC_BYTES)


def filters_of(execution: Execution, seed: int) -> Iterator[tuple[LayerMemory | str, Array, Array]]:
    """The filters on NE16 with input and output of one random sample; why, where no job computes one."""
    graph = execution.graph
    found = [i for i, node in enumerate(graph.nodes) if is_on_ne16(node)]
    keep = {t for i in found for t in (graph.nodes[i].inputs[0], graph.nodes[i].outputs[0])}
    (values,) = execution.iterate(RandomSamples(execution.source, 1, seed), keep)
    for index in found:
        x, y = (values[t][0] for t in (graph.nodes[index].inputs[0], graph.nodes[index].outputs[0]))
        try:
            yield layer_memory(graph, index), x, y
        except UnsupportedError as error:
            yield str(error), x, y


def fits(peer: Accelerator, memory: LayerMemory) -> bool:
    """Whether the peer addresses a filter's memory and what stands around its output."""
    return memory.at.output + memory.output_bytes + _AROUND <= peer.memory_bytes


def run(peer: Accelerator, memory: LayerMemory, features: Array, expected: Array) -> Outcome:
    """Run the jobs of a filter and compare what they leave, and leave alone."""
    engine, start, size = peer.engine, memory.at.output, memory.output_bytes
    engine.clear(_GUARD)
    engine.write(0, memory.constants)
    engine.write(memory.at.features, memory.features(features))
    before = engine.read(0, (start + size + _AROUND,))
    cycles, untrue = [], 0
    for job, wanted in zip(memory.jobs, outputs_after_jobs(memory, features, expected), strict=True):
        cycles.append(engine.run(dict(job)))
        left = engine.read(start, (size,))
        untrue += int((left != wanted)[(left != _GUARD) | (wanted != 0)].sum())
    after = engine.read(0, (start + size + _AROUND,))
    stray = before != after
    stray[start : start + size] = False
    found = memory.output(after[start : start + size].tobytes())
    differing = int((found.reshape(-1) != expected.reshape(-1)).sum())
    formula = cycles_of(memory.layer).total
    return Outcome(len(cycles), found.size, differing, untrue, int(stray.sum()), sum(cycles), formula, peer.is_timed)


def _model(
    engine: Accelerator, path: Path, bits: int, settings: Sequence[str], layers: Sequence[str], seed: int
) -> Row:
    graph = read_model(path).main
    return _row(engine, graph, path.stem, f"w{bits}", (f"weight_bits={bits}", *settings), tuple(layers), seed)


def _row(
    engine: Accelerator,
    graph: Graph,
    name: str,
    scheme: str,
    settings: tuple[str, ...],
    layers: tuple[str, ...],
    seed: int,
) -> Row:
    target = find_target("gap9-ne16")
    try:
        execution = for_target(graph, target, parse_settings(target.settings, settings, layers))
    except TflqError as error:
        return Row(name, scheme, Verdict.REFUSED_BY_TFLQ, 0, str(error)[:200])
    outcomes: list[Outcome] = []
    faults: list[str] = []
    for memory, x, y in filters_of(execution, seed):
        if isinstance(memory, str):
            faults.append(f"no jobs: {memory}")
            continue
        if not fits(engine, memory):
            faults.append(f"{memory.name}: more than {engine.memory_bytes >> 10} KiB")
            continue
        outcome = run(engine, memory, x, y)
        outcomes.append(outcome)
        if not outcome.is_equal:
            faults.append(f"{memory.name} ({memory.layer.mode}): {outcome}")
    jobs, values, cycles = (sum(getattr(o, key) for o in outcomes) for key in ("jobs", "values", "cycles"))
    formula = sum(o.formula for o in outcomes)
    counted = f"{cycles} cycles" + ("" if engine.is_timed else f" (the RTL: {formula})")
    words = f"{len(outcomes)} filters, {jobs} jobs, {values} values, {counted}; {'; '.join(faults) or 'all equal'}"
    if all(o.is_equal for o in outcomes):
        verdict = Verdict.EQUAL if outcomes else Verdict.REFUSED_BY_BOTH
    else:
        verdict = Verdict.DIFFERS
    return Row(name, scheme, verdict, values, words)


def _drawn(engine: Accelerator, seed: int) -> Row:
    random = np.random.default_rng([16, seed])
    bits = int(random.integers(2, 9))
    graph = drawn_filter(random)
    node = graph.nodes[0]
    window = [node.attributes.integer(f"{key}_h", 1) for key in ("stride", "dilation")]
    weights = graph.tensors[node.inputs[1]].shape
    name = f"{seed}: {node.operator} {graph.tensors[0].shape} {weights} stride, dilation {window}"
    return _row(engine, graph, name, "drawn", (f"weight_bits={bits}",), (), seed)


def drawn_filter(random: np.random.Generator) -> Graph:
    """A network of one filter: mode, window, ragged channels, zero points and scales drawn."""
    kind = ("conv_2d", "conv_2d", "depthwise_conv_2d", "fully_connected")[int(random.integers(0, 4))]
    b = GraphBuilder("drawn")
    scale, zero = np.float32(random.uniform(0.01, 0.1)), int(random.integers(-128, 128))
    inputs, outputs = int(random.integers(1, 45)), int(random.integers(1, 70))
    shape: tuple[int, ...] = (outputs, inputs * 7)
    size: tuple[int, ...] = (1, outputs)
    options: dict[str, Attribute] = {}
    if kind == "fully_connected":
        x = b.input("x", (1, inputs * 7), DType.INT8, Affine.per_tensor(scale, zero))
    else:
        kernel = (3, 3) if kind == "depthwise_conv_2d" else _KERNELS[int(random.integers(0, len(_KERNELS)))]
        stride, dilation = int(random.integers(1, 3)), 1
        if kind == "conv_2d" and stride == 1 and random.integers(0, 4) == 0:
            dilation = 2
        height, width = (int(v) for v in random.integers(9, 14, 2))
        x = b.input("x", (1, height, width, inputs), DType.INT8, Affine.per_tensor(scale, zero))
        outputs = inputs if kind == "depthwise_conv_2d" else outputs
        shape = (1, *kernel, inputs) if kind == "depthwise_conv_2d" else (outputs, *kernel, inputs)
        padding = ("same", "valid")[int(random.integers(0, 2))]
        extent = [0 if padding == "same" else (k - 1) * dilation for k in kernel]
        rows, columns = (-(-(s - e) // stride) for s, e in zip((height, width), extent, strict=True))
        size = (1, rows, columns, outputs)
        options = {"padding": padding, "stride_h": stride, "stride_w": stride}
        options |= {"dilation_h_factor": dilation, "dilation_w_factor": dilation}
        options |= {"depth_multiplier": 1} if kind == "depthwise_conv_2d" else {}
    axis = 3 if kind == "depthwise_conv_2d" else 0
    scales = random.uniform(0.005, 0.02, outputs).astype(np.float32)
    weights = random.integers(-127, 128, shape).astype(np.int8)
    w = b.constant("w", weights, Affine(scales, np.zeros(outputs, np.int64), axis))
    offsets = Affine(scales * scale, np.zeros(outputs, np.int64), 0)
    bias = b.constant("bias", random.integers(-2000, 2000, outputs).astype(np.int32), offsets)
    products = int(np.prod(shape)) // outputs
    result = Affine.per_tensor(np.float32(scale * 0.012 * 73 * np.sqrt(products)), int(random.integers(-100, 100)))
    activation = ("none", "relu")[int(random.integers(0, 2))]
    y = b.tensor("y", size, DType.INT8, result)
    b.node(kind, [x, w, bias], [y], 1, None, fused_activation_function=activation, **options)
    return b.build([y])
