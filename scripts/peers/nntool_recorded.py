"""NNTool on the drawn networks of tests/support/gap9_drawn.py, recorded for tests/converters/gap9.

    scripts/peer nntool-recorded --autotiler GAP_SDK/tools/autotiler_v3 [--networks 200] [--seed 0] [--work DIR]
                                 [--write]

Network SEED runs as ne16 and sq8, and one in three as ne16 with 16-bit features, or weights of 2 to 7 bits. Each is
compared as scripts/peer nntool and nntool-generators compare. --write puts what is equal into
tests/data/gap9_networks.json.xz, the names of what NNTool and tflq refuse, and of what differs the kind and the first
difference or message, beside what stands there of other networks; and the table of causes into
docs/targets/gap9.md#hand-over-to-greenwaves-flow. --work
keeps NNTool's answers and uses those that are there.
"""

from __future__ import annotations

import json
import lzma
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers.campaign import Row, Verdict, find, parser, report
from peers.nntool import _environment, _run
from peers.nntool_dump import Comparison, Dump
from peers.nntool_generators import _MOVES, calls_of
from tests.support import gap9_recorded
from tests.support.gap9_drawn import drawn_network
from tests.support.gap9_recorded import SAMPLES, Fields, digest
from tests.support.tracked import ROOT
from tflq.converters.gap9.operators import EXPRESSION, FILTERS
from tflq.converters.tflite import model_to_bytes
from tflq.errors import TflqError
from tflq.graph import Model, Node

_PAGE = ROOT / "docs" / "internals" / "evidence" / "gap9.md"
_START, _END = "<!-- made by scripts/peer nntool-recorded -->\n", "<!-- end of what nntool-recorded makes -->\n"
_KINDS = {
    Verdict.REFUSED_BY_TFLQ: gap9_recorded.REFUSED_HERE,
    Verdict.REFUSED_BY_PEER: gap9_recorded.REFUSED_THERE,
    Verdict.DIFFERS: gap9_recorded.DIFFERS,
}


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__, networks=200)
    options.add_argument("--autotiler", type=Path, required=True, help="gap_sdk's tools/autotiler_v3")
    options.add_argument("--work", type=Path, help="keep NNTool's answers here, and use those that are there")
    options.add_argument("--write", action="store_true", help="write what is equal")
    args = options.parse_args(list(arguments))
    names = [f"{seed}.{scheme}" for seed in range(args.seed, args.seed + args.networks) for scheme in _schemes(seed)]
    with tempfile.TemporaryDirectory() as scratch:
        work = args.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        _ask(names, work, args.autotiler)
        found: Fields = {"networks": {}, "refused": [], "differ": {}}
        status = report(_rows(names, work, found), args.json)
    if args.write:
        _write(found, names)
    return status


def _write(found: Fields, names: Sequence[str]) -> None:
    """Put what was found into the file, beside what stands there of other networks."""
    file = gap9_recorded.FILE
    before = json.loads(lzma.decompress(file.read_bytes())) if file.exists() else {}
    kept = {name: facts for name, facts in before.get("networks", {}).items() if name not in names}
    refused = [*(name for name in before.get("refused", ()) if name not in names), *found["refused"]]
    differ = {name: why for name, why in before.get("differ", {}).items() if name not in names} | found["differ"]
    merged: Fields = {"networks": {**kept, **found["networks"]}, "refused": refused, "differ": differ}
    file.write_bytes(lzma.compress(json.dumps(merged).encode(), preset=9))
    text = _PAGE.read_text(encoding="utf-8")
    ahead, _, rest = text.partition(_START)
    table = "\n".join(gap9_recorded.table_of_causes(differ))
    _PAGE.write_text(f"{ahead}{_START}{table}\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")


def _schemes(seed: int) -> list[str]:
    further = {1: ["ne16_16"], 4: [f"ne16_w{2 + seed % 6}"]}
    return ["ne16", "sq8", *further.get(seed % 6, [])]


def _ask(names: Sequence[str], work: Path, autotiler: Path) -> None:
    jobs = []
    for name in names:
        seed, _, scheme = name.partition(".")
        engine, _, variant = scheme.partition("_")
        model = work / f"{seed}.tflite"
        if (work / f"{name}.c").exists():
            continue
        model.write_bytes(model_to_bytes(Model([drawn_network(int(seed))])))
        weights = int(variant[1:]) if variant.startswith("w") else 8
        jobs.append({"model": str(model), "prefix": str(work / name), "engine": engine, "weight_bits": weights,
                     "feature_bits": 16 if variant == "16" else 8, "samples": SAMPLES})  # fmt: skip
    if not jobs:
        return
    peer = find("nntool")
    environment = _environment(peer)
    source = environment["NNTOOL_SOURCE"]
    variables = {"PYTHONPATH": source, "NNTOOL_PATH": source, "GAP_SDK_HOME": source}
    variables["TILER_CNN_KERNEL_PATH_SQ8"] = str(autotiler / "CNN_Libraries_SQ8")
    (work / "jobs.json").write_text(json.dumps(jobs))
    worker = Path(__file__).with_name("nntool_recorded_worker.py")
    _run([environment["NNTOOL_PYTHON"], worker, peer.scripts, work / "jobs.json"], **variables)


def _rows(names: Sequence[str], work: Path, found: Fields) -> Iterator[Row]:
    for name in names:
        row = _judged(name, Dump.read(work / name), (work / f"{name}.c").read_text(encoding="utf-8"), found)
        if row.verdict is Verdict.REFUSED_BY_BOTH:
            found["refused"].append(name)
        elif row.verdict is not Verdict.EQUAL:
            found["differ"][name] = {"kind": _KINDS[row.verdict], "first": row.words}
        yield row


def _judged(name: str, dump: Dump, text: str, found: Fields) -> Row:
    network, scheme = name.split(".")
    try:
        graph = gap9_recorded.converted(name, "nntool")
    except TflqError as error:
        verdict = Verdict.REFUSED_BY_BOTH if dump.failed else Verdict.REFUSED_BY_TFLQ
        return Row(network, scheme, verdict, 0, f"{error} | {dump.failed}"[:200])
    if dump.failed:
        return Row(network, scheme, Verdict.REFUSED_BY_PEER, 0, dump.failed[:200])
    model = Model([drawn_network(int(network))])
    comparison = Comparison.of(dump, (model, graph))
    if comparison.differences:
        return Row(network, scheme, Verdict.DIFFERS, comparison.checks, comparison.differences[0])
    calls: dict[str, list[Any]] = {
        node: [call.name, list(call.parameters), dict(call.controls)]
        for node, call in calls_of(text).items()
        if not _MOVES.search(call.name)
    }
    ours, wrong = gap9_recorded.calls_of(graph), []
    for node, call in list(calls.items()):
        here = ours.get(node)
        if here is not None:
            extra = call[0] == "CNN_GlobalPoolAct_SQ8"
            cut = call[1][len(call[1]) - len(here[1]) - extra :]  # without the 0 for no Ctrl
            calls[node] = [call[0], gap9_recorded.area(call[0], cut), call[2]]
        if here != calls[node]:
            wrong.append(f"{node}: {here}, NNTool {calls[node]}")
    if wrong:
        return Row(network, scheme, Verdict.DIFFERS, comparison.checks, wrong[0])
    inputs = [node["name"] for node in dump.fields["nodes"] if node["op"] == "input"]
    found["networks"][name] = {"inputs": [list(dump.arrays[f"tensor/{node}"].shape[1:]) for node in inputs],
                               "layers": _layers(dump, comparison), "calls": calls}  # fmt: skip
    return Row(network, scheme, Verdict.EQUAL, comparison.checks)


def _layers(dump: Dump, comparison: Comparison) -> Fields:
    layers: Fields = {}
    for outer in dump.fields["nodes"]:
        if outer["op"] in ("constant", "input", "output"):
            continue
        for inner in outer.get("internal") or [outer]:
            node = comparison._ours(inner["name"])
            if node is not None and inner.get("quant") and node.operator != EXPRESSION:
                base = f"tensor/{inner['name']}" if outer is inner else f"tensor/{outer['name']}//{inner['name']}"
                layers[node.name] = _layer(dump, comparison, node, outer, inner, base)
    return layers


def _layer(dump: Dump, comparison: Comparison, node: Node, outer: Fields, inner: Fields, base: str) -> Fields:
    found: Fields = {"outputs": []}
    for k, (t, kind) in enumerate(zip(node.outputs, inner["quant"]["out_qs"], strict=True)):
        theirs = dump.arrays[f"{base}#{k}" if k else base].astype(np.int64)
        ours = comparison.values[t]
        equal = ours.size == theirs.size and np.array_equal(ours.reshape(-1), theirs.reshape(-1))
        type_ = [kind["signed"], kind["bits"], int(np.ravel(kind["zero_point"])[0]), float(np.ravel(kind["scale"])[0])]
        found["outputs"].append({"type": type_, "values" if equal else "sorted": digest(theirs, not equal)})
    if node.operator in FILTERS:
        quant: Any = inner["quant"]["mul_biases_q"]
        constants = [dump.arrays[f"const/{outer['inputs'][place][0]}"] for place in (1, 2)]
        count = np.broadcast_to(quant["value"], constants[1].size), np.broadcast_to(quant["norm"], constants[1].size)
        for key, value in zip(("multiplier", "shift", "weights", "bias"), (*count, *constants), strict=True):
            found[key] = digest(np.reshape(value, (1, -1)), False)
    return found
