"""Plants faults at random, asks `diagnose`, counts: layer first, cause right, wrong, not told, sound ones accused."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.faults import loops, planted
from tests.faults.case import Case, Planted
from tests.faults.networks import network
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.diagnosis.compare import Running, compare_sides, dump_of
from tflq.diagnosis.dumps.wanted import Archive, Stored
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.errors import TflqError
from tflq.parallel.executions import Execution, as_is, for_target
from tflq.sampling import GivenSamples, RandomSamples

FAULTS = {**planted.FAULTS, **loops.FAULTS}
NETWORKS = (
    *("digits", "kws", "ad", "vww", "resnet", "sww", "random0", "random1"),
    *("keras:unet", "keras:mbconv_swish", "keras:squeeze_excite", "keras:merges", "keras:leaky_prelu_elu"),
)
TARGETS = ("tflite", "gap9-ne16", "gap9-sq8", "aipu", "tpu-mlir", "openvino", "nnie", "onnx")
SAMPLES = 4


@dataclass(frozen=True)
class Outcome:
    """What was said of one dump.

    Attributes:
        network: its name.
        target: whose integers.
        fault: planted; "" for a sound dump.
        layer: whether the layer stands first.
        cause: "right", "wrong" (said as certain), or "not told".
        words: what was said.
        seconds: how long it took.
    """

    network: str
    target: str
    fault: str
    layer: bool
    cause: str
    words: str
    seconds: float


@cache
def execution(name: str, target: str, seed: int) -> Execution | None:
    """Return a network under a target; None where there is none."""
    model = network(name, seed)
    if model is None:
        return None
    if target == "tflite":
        return as_is(model, "independent")
    found = find_target(target)
    try:
        return for_target(model.main, found, parse_settings(found.settings, (), ()))
    except TflqError:
        return None


def samples(made: Execution, seed: int) -> GivenSamples:
    """Smooth random samples: neighbors are alike, as in pictures and sound."""
    drawn = RandomSamples(made.source, SAMPLES, seed).take(0, SAMPLES)
    rng, smooth = np.random.default_rng([seed, 7]), []
    for x in drawn:
        if x.ndim < 4 or x.dtype.kind not in "iu":
            smooth.append(x)
            continue
        kind = np.iinfo(x.dtype)
        low = rng.uniform(kind.min, kind.max, (SAMPLES, 1, -(-x.shape[2] // 4), -(-x.shape[3] // 4), *x.shape[4:]))
        wide = low.repeat(4, 2).repeat(4, 3)[:, :, : x.shape[2], : x.shape[3]]
        smooth.append(np.clip(wide + rng.normal(0, 12, x.shape), kind.min, kind.max).astype(x.dtype))
    return GivenSamples(smooth)


def outcomes(
    seed: int, count: int, networks=NETWORKS, targets=TARGETS, faults=tuple(FAULTS), tries=150
) -> Iterator[Outcome]:
    """Yield `count` planted faults, drawn evenly from the faults; a fault that does not show is drawn again."""
    rng = np.random.default_rng(seed)
    made: dict[tuple[str, str], Running | None] = {}
    for number in range(count):
        fault = faults[number % len(faults)]
        for _ in range(tries):
            name, target = str(rng.choice(networks)), str(rng.choice(targets))
            if (name, target) not in made:
                run = execution(name, target, seed)
                made[name, target] = None if run is None else Running(run, samples(run, seed), name)
            side = made[name, target]
            planted = None if side is None else plant(side, fault, rng)
            if side is not None and planted is not None:
                yield judged(side, target, fault, planted)
                break


def plant(side: Running, fault: str, rng: np.random.Generator) -> Planted | None:
    """Return a dump with the fault; None where it does not apply, or does not show."""
    graph = side.execution.graph
    inputs = dict(zip(graph.inputs, side.inputs(0, SAMPLES), strict=True))
    case = Case(graph, inputs, rng)
    with np.errstate(all="ignore"):
        found = FAULTS[fault](case)
    if found is None or np.array_equal(found.dump[found.tensor], case.sound[found.tensor]):
        return None
    return found


def archive(side: Running, dump: dict[int, np.ndarray]) -> Archive:
    """Return the tensors as an archive, in the order of their names, as tools write it."""
    names = {c.index: c.name for c in side.columns}
    return Archive("dump", tuple(Stored(names[t], a) for t, a in sorted(dump.items(), key=lambda p: names[p[0]])))


def judged(side: Running, target: str, fault: str, made: Planted) -> Outcome:
    dump = dump_of(archive(side, made.dump), side)
    began = time.thread_time()
    found = diagnose(side, dump, SAMPLES)
    seconds = time.thread_time() - began
    if found is None:
        return Outcome(side.name, target, fault, False, "not told", "nothing", seconds)
    named = [w for f in found.exact for w in (f.words, *f.alike)] or [found.words]
    right = any(re.search(made.says, w) for w in named)
    told = bool(found.exact)
    cause = "right" if right else "wrong" if told else "not told"
    return Outcome(side.name, target, fault, found.number == made.tensor, cause, found.words, seconds)


def accused(seed: int, count: int, networks=NETWORKS, targets=TARGETS) -> Iterator[Outcome]:
    """Yield sound dumps that something is said of."""
    rng = np.random.default_rng(seed)
    done = 0
    for _ in range(20 * count):
        if done == count:
            return
        name, target = str(rng.choice(networks)), str(rng.choice(targets))
        run = execution(name, target, seed)
        if run is None:
            continue
        side = Running(run, samples(run, int(rng.integers(1 << 30))), name)
        graph = run.graph
        case = Case(graph, dict(zip(graph.inputs, side.inputs(0, SAMPLES), strict=True)), rng)
        dump = dump_of(archive(side, case.sound), side)
        done += 1
        found = diagnose(side, dump, SAMPLES)
        is_equal = compare_sides(side, dump, SAMPLES).is_equal
        if found is not None or not is_equal:
            yield Outcome(name, target, "", False, "wrong", "differs" if found is None else found.words, 0.0)
