"""HiSilicon's libgfpq against tflq's logarithmic codes: every float32 value, both widths, all three modes.

    scripts/peer libgfpq --networks 40 --seed 3      # 40 arrays of 250 000 values

Arrays have magnitudes from 1e-30 to 1e30 of five distributions, with values on and beside the code's thresholds, zeros
and NaN. The range is the array's own (INIT), grows with a second array (UPDATE), or is another array's (APPLY).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from peers.campaign import Row, Verdict, find, parser, report
from tflq.arrays import Singles
from tflq.interpreter.kernels.nnie.logarithm import fake_quantize, magnitudes, scheme_of, z_of

SIZE = 250_000
MODES = ("init", "update", "apply")


def main(arguments: Sequence[str]) -> int:
    chosen = parser(__doc__, networks=40).parse_args(arguments)
    peer = find("libgfpq")
    os.environ["LIBGFPQ"] = str(next(peer.target.glob("libgfpq.so*")))
    sys.path.insert(0, str(peer.scripts))
    gfpq: Any = import_module("gfpq")
    return report(rows(gfpq, chosen.networks, chosen.seed), chosen.json)


def rows(gfpq: Any, count: int, seed: int) -> Iterator[Row]:  # noqa: ANN401 - the peer's module
    """A row for each array and width."""
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        bits, mode = (8, 16)[index % 2], MODES[index // 2 % 3]
        first, second = values(rng, bits), values(rng, bits)
        parameters = gfpq.Parameters(bits)
        theirs = parameters.update(first)
        largest = np.nanmax(np.abs(first))
        if mode == "update":
            theirs, largest = parameters.update(second), max(largest, np.nanmax(np.abs(second)))
        elif mode == "apply":
            theirs = parameters.apply(second)
        x = first if mode == "init" else second
        scheme = scheme_of(bits)
        z = z_of(largest, scheme)
        mine = fake_quantize(x, z, scheme)
        differ = int(np.count_nonzero(mine.view(np.uint32) != theirs.view(np.uint32)))
        same_z = parameters.z() == z
        verdict = Verdict.EQUAL if not differ and same_z else Verdict.DIFFERS
        words = "" if verdict is Verdict.EQUAL else f"{differ} of {x.size} bits differ; z {z}, theirs {parameters.z()}"
        yield Row(f"array_{seed}_{index}", f"{bits} bits {mode}", verdict, x.size, words)


def values(rng: np.random.Generator, bits: int) -> Singles:
    """One array: a distribution at a magnitude, and what lies on and beside the thresholds."""
    magnitude = np.float32(10.0 ** rng.uniform(-25, 25))
    draws: tuple[Callable[[], np.ndarray], ...] = (
        lambda: rng.standard_normal(SIZE),
        lambda: rng.uniform(-1, 1, SIZE),
        lambda: rng.laplace(size=SIZE),
        lambda: np.exp(rng.normal(0, 4, SIZE)) * rng.choice([-1, 1], SIZE),
        lambda: rng.standard_normal(SIZE) * (rng.random(SIZE) < 0.1),
    )
    found = np.clip(draws[int(rng.integers(len(draws)))]() * magnitude, -1e37, 1e37).astype(np.float32)
    scheme = scheme_of(bits)
    levels = magnitudes(z_of(np.abs(found).max(), scheme), scheme).astype(np.float64)
    between = np.sqrt(levels[1:] * levels[:-1]).astype(np.float32)
    special = np.concatenate([levels.astype(np.float32), between])
    beside = [np.nextafter(special, np.float32(way)) for way in (0, np.inf)]
    edge = np.concatenate([special, *beside, -special, np.zeros(3, np.float32), np.full(2, np.nan, np.float32)])
    found[: edge.size] = edge[: found.size]
    return np.ascontiguousarray(found)
