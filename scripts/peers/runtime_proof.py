"""Counterexamples of `tflq compare --prove`, each run in both runtimes' own programs as a file of one layer.

    scripts/peer runtime-proof [FILE...] [--runtimes xnnpack,tflm,cmsis-nn] [--table FILE.md]

Without FILE: the five MLPerf Tiny networks below TFLQ_DATA. The reference runs in LiteRT's BUILTIN_REF. A
counterexample is confirmed if both programs return the two proven values at the proven element. --table writes one row
per network and runtime.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.runtimes import TIMEOUT_S, run_peer
from tflq.api.read_model import read_model
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.diagnosis.proof import LayerProof, prove_layers, single_layer
from tflq.errors import OracleError
from tflq.graph import Array, Graph
from tflq.interpreter.runtimes import find_runtime
from tflq.oracle import Oracle
from tflq.oracle.package import RUNTIME_ORACLES

NETWORKS = {
    "kws": "kws_ref_model",
    "ic": "pretrainedResnet_quant",
    "vww": "vww_96_int8",
    "ad": "ad01_int8",
    "sww": "str_ww_ref_model",
}


@dataclass(frozen=True)
class Outcome:
    """One network in one runtime."""

    network: str
    runtime: str
    proofs: tuple[LayerProof, ...]
    rows: tuple[Row, ...]

    @property
    def cells(self) -> str:
        """Row of the table."""
        differences = [p.difference for p in self.proofs if p.difference is not None]
        differing = [p for p in self.proofs if p.status == "differs"]
        confirmed = sum(row.verdict is Verdict.EQUAL for row in self.rows)
        counts = (
            sum(p.is_equal for p in self.proofs),
            len(differing),
            len(self.proofs) - len(differences),
            sum(d.differing for d in differences),
            sum(d.reachable for d in differences),
            max((d.largest for d in differences), default=0),
            f"{confirmed} of {len(differing)}",
        )
        return " | ".join(map(str, ("", self.network, self.runtime, *counts, ""))).strip()


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--runtimes", default="xnnpack,tflm,cmsis-nn")
    options.add_argument("--table", type=Path)
    args = options.parse_args(list(arguments))
    models = Path(os.environ["TFLQ_DATA"], "models")
    files = {path.stem: path for path in args.files} or {k: models / f"{v}.tflite" for k, v in NETWORKS.items()}
    names = args.runtimes.split(",")
    peer = find("runtimes") if any(name not in RUNTIME_ORACLES for name in names) else None
    outcomes = [judge(peer, network, path, name) for network, path in files.items() for name in names]
    if args.table is not None:
        head = "| network | runtime | equal | differ | not decided | accumulators | of | largest, LSB | confirmed |"
        lines = [head, "|---" * 9 + "|", *(outcome.cells for outcome in outcomes)]
        args.table.write_text("\n".join(lines) + "\n", "utf-8")
    return report((row for outcome in outcomes for row in outcome.rows), args.json)


def judge(peer: Peer | None, network: str, path: Path, runtime: str) -> Outcome:
    graph, proofs = prove_layers(read_model(path), "ref", find_runtime(runtime).name)
    with Oracle("litert", "BUILTIN_REF", timeout_s=TIMEOUT_S) as reference:
        other = Oracle(*RUNTIME_ORACLES[runtime], timeout_s=TIMEOUT_S) if runtime in RUNTIME_ORACLES else None
        rows = tuple(
            confirm(peer, reference, other, runtime, network, graph, p) for p in proofs if p.status == "differs"
        )
        if other is not None:
            other.close()
    return Outcome(network, runtime, proofs, rows)


def confirm(
    peer: Peer | None,
    reference: Oracle,
    other: Oracle | None,
    runtime: str,
    network: str,
    graph: Graph,
    proof: LayerProof,
) -> Row:
    """Run the counterexample of a layer in both programs."""
    name = f"{network} {proof.node.name}"
    content = model_to_bytes(single_layer(graph, proof))
    try:
        ours = reference.run(content, proof.inputs, tensors="outputs").outputs[0]
        theirs = run_runtime(peer, other, runtime, content, proof.inputs)
    except (OracleError, RuntimeError) as error:
        return Row(name, runtime, Verdict.REFUSED_BY_PEER, 0, str(error)[:200])
    assert proof.difference is not None
    example = proof.difference.example
    assert example is not None
    place = (0, *proof.place)
    pairs = [(ours[place], theirs[place])] if proof.place else list(zip(ours.flat, theirs.flat, strict=True))
    is_confirmed = (example.first, example.second) in {(int(a), int(b)) for a, b in pairs}
    words = f"element {proof.place}: {example.first} and {example.second} proven, {pairs[0][0]} and {pairs[0][1]} run"
    return Row(name, runtime, Verdict.EQUAL if is_confirmed else Verdict.DIFFERS, 1, words)


def run_runtime(
    peer: Peer | None, other: Oracle | None, runtime: str, content: bytes, inputs: Sequence[Array]
) -> Array:
    if other is not None:
        return other.run(content, inputs, tensors="outputs").outputs[0]
    model = model_from_bytes(content, "one layer")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "layer.tflite")
        path.write_bytes(content)
        return np.asarray(run_peer(peer, runtime, model, path, inputs)[model.main.outputs[0]])
