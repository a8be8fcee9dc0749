"""What NNTool made of the drawn networks (gap9_drawn.py), and tflq's graphs beside it.

    scripts/peer nntool-recorded --autotiler GAP_SDK/tools/autotiler_v3

runs the tool and writes tests/data/gap9_networks.json.xz: of each network and scheme the types, multipliers, shifts,
and the CRC of constants and tensors, by tflq's nodes, and AutoTiler's calls; or that NNTool fails. What differs is
named there, with the kind of difference and its first words, and left out.
"""

from __future__ import annotations

import json
import lzma
import re
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from peers.nntool_dump import as_read

from tests.support.gap9_drawn import drawn_network
from tests.support.tracked import ROOT
from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.converters.gap9.emit.hardware import constants_of
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import find_target
from tflq.graph import Affine, Array, Graph
from tflq.interpreter import Engine, lower

FILE = ROOT / "tests" / "data" / "gap9_networks.json.xz"
SAMPLES = 2
Fields = dict[str, Any]


@cache
def recorded() -> Fields:
    """What was recorded: "networks", "refused", "differ", by SEED.SCHEME; of what differs `kind` and `first`."""
    found: Fields = json.loads(lzma.decompress(FILE.read_bytes()))
    return found


REFUSED_HERE, REFUSED_THERE, DIFFERS = "refused by tflq", "refused by NNTool", "differs"
_WHAT = (
    (r": \['(\w+)'", r"a call of \1"),
    (r"node: quantize absent", "a Quantize node that tflq lacks"),
    (r"node: ", "another node that tflq lacks"),
    (r"type( \d)?: ", "the type of a tensor"),
    (r", weights: ", "weights, or their columns"),
    (r", (M|N|bias): ", "M, N or bias of a filter"),
    (r", tensor: ", "values alone"),
)
"""The first difference -> what it is called."""


def cause_of(kind: str, first: str) -> str:
    """Say in a few words, without names and numbers of one network, why NNTool's and tflq's answers are not equal."""
    if kind == DIFFERS:
        pattern, words = next((p, w) for p, w in _WHAT if re.search(p, first))
        found = re.search(pattern, first)
        return found.expand(words) if found else words
    text = first.partition(" | ")[0] if kind == REFUSED_HERE else first
    text = re.sub(r"^.*?'\): ", "", text).partition(";")[0] if kind == REFUSED_HERE else re.sub(r"\d+", "n", text)
    return text.replace("|", "/").strip()


def table_of_causes(differ: Fields) -> list[str]:
    """Return the table of docs/internals/evidence/gap9.md: causes and counts, the most frequent first."""
    names: dict[tuple[str, str], list[str]] = {}
    for name, why in differ.items():
        names.setdefault((why["kind"], cause_of(why["kind"], why["first"])), []).append(name)
    lines = ["| what | cause, or the first difference | answers | networks |", "|---|---|---|---|"]
    for (kind, cause), answers in sorted(names.items(), key=lambda item: (-len(item[1]), item[0])):
        seeds = sorted({int(name.partition(".")[0]) for name in answers})
        shown = ", ".join(map(str, seeds[:8])) + (", ..." if len(seeds) > 8 else "")
        lines.append(f"| {kind} | {cause} | {len(answers)} | {shown} |")
    return lines


def converted(name: str, numerics: str) -> Graph:
    """The lowered graph of SEED.SCHEME; a scheme is ne16, sq8, ne16_16, or ne16_w2 to ne16_w7."""
    seed, _, scheme = name.partition(".")
    engine, _, variant = scheme.partition("_")
    sets = [f"numerics={numerics}"]
    if variant:
        sets.append(f"weight_bits={variant[1:]}" if variant.startswith("w") else f"feature_bits={variant}")
    target = find_target(f"gap9-{engine}")
    settings = parse_settings(target.settings, sets)
    return lower(target.quantize(settled_graph(drawn_network(int(seed))), settings), target.arithmetic)


def shown(affine: Affine) -> list[Any]:
    """A type as it is recorded: signed, bits, zero point, scale."""
    return [affine.signed, affine.bits, int(affine.zero_point[0]), float(np.ravel(affine.scale)[0])]


def digest(values: ArrayLike, is_sorted: bool) -> str:
    """CRC of integers; of each sample's sorted ones where NNTool has them in another order."""
    whole = np.asarray(values).astype(np.int64)
    ordered = np.sort(whole.reshape(len(whole), -1)) if is_sorted else whole.reshape(len(whole), -1)
    return f"{zlib.crc32(np.ascontiguousarray(ordered).tobytes()):08x}"


def codes_of(graph: Graph, found: Graph, shapes: Sequence[Sequence[int]] = ()) -> list[Array]:
    """The samples that NNTool had: every code of the file's type, drawn, in the types of tflq's graph.

    Args:
        graph: the file's.
        found: tflq's.
        shapes: in which NNTool reads its inputs, where it did.
    """
    feeds = []
    for i, (source, wanted) in enumerate(zip(graph.inputs, found.inputs, strict=True)):
        tensor = graph.tensors[source]
        codes = np.random.default_rng(i).integers(-128, 128, (SAMPLES, *tensor.shape)).astype(np.int8)
        real = (codes.astype(np.float64) - tensor.affine.zero_point[0]) * np.float64(tensor.affine.scale[0])
        real = as_read(real, tuple(shapes[i])) if shapes else real
        feeds.append(find_target("gap9-ne16").encode(real, found.tensors[wanted]))
    return feeds


def problems(name: str, numerics: str) -> list[str]:
    """Return what of a recorded network is another now."""
    found, facts = converted(name, numerics), recorded()["networks"][name]
    keep = [*found.inputs, *(t for node in found.nodes for t in node.outputs)]
    codes = codes_of(drawn_network(int(name.partition(".")[0])), found, facts["inputs"])
    values = Engine(found).run(codes, keep)
    constants, nodes = constants_of(found), {node.name: node for node in found.nodes}
    wrong = [f"no {layer}" for layer in facts["layers"] if layer not in nodes]
    for layer, fact in facts["layers"].items():
        node = nodes.get(layer)
        if node is None:
            continue
        for t, output in zip(node.outputs, fact["outputs"], strict=True):
            affine, words = found.tensors[t].affine, output["type"]
            if shown(affine)[:3] != words[:3] or abs(shown(affine)[3] - words[3]) > 1e-6 * words[3]:
                wrong.append(f"{layer}: {shown(affine)}, NNTool {words}")
            is_sorted = "sorted" in output
            if digest(values[t], is_sorted) != output["sorted" if is_sorted else "values"]:
                wrong.append(f"{layer}: other values")
        if node.operator in FILTERS:
            for key in ("multiplier", "shift", "weights", "bias"):
                if digest(constants[f"{layer}/{key}"].reshape(1, -1), False) != fact[key]:
                    wrong.append(f"{layer}: other {key}")
    calls = {layer: call for layer, call in calls_of(found).items() if layer in facts["calls"]}
    return wrong + [f"{layer}: {calls.get(layer)}, NNTool {call}" for layer, call in facts["calls"].items()
                    if calls.get(layer) != call]  # fmt: skip


def calls_of(graph: Graph) -> dict[str, list[Any]]:
    """AutoTiler's calls by NNTool's names: name, parameters, controls; a global pool has the area alone."""
    units = {node.name: node.attributes.text("fusion", "") or node.name.removesuffix("_merged") for node in graph.nodes}
    found = {}
    for layer, made in generators_of(graph).items():
        if isinstance(made, Generator):
            values = [str(value) for value in made.parameters.values()]
            found[re.sub(r"_trans(_in\d)?_qin", "_qin", units[layer])] = [made.name, area(made.name, values),
                                                                         dict(made.controls)]  # fmt: skip
    return found


def area(name: str, values: list[str]) -> list[str]:
    """NNTool gives two other factors of a global pool's Width x Height."""
    if name == "CNN_GlobalPoolAct_SQ8":
        return [values[0], str(int(values[1]) * int(values[2])), *values[3:]]
    return values
