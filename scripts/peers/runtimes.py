"""The runtimes of a .tflite file, each with its own program, tensor by tensor.

    scripts/peer runtimes [FILE...] [--runtimes NAME,...] [--samples 2] [--jobs 1] [--json FILE]

Without FILE: the int8 and int16x8 files of cases/keras, cases/world and zoo below TFLQ_DATA. LiteRT (with and without
its delegate) and tflite-micro run as tflq's oracle and must be importable. CMSIS-NN and the TOSA reference model run in
the peer's scripts, single-input files only. Inner tensors are compared if the program returns them, else outputs.
Known differences (docs/runtimes.md): `floating point`: a floating-point layer differs first; `stored shape`: the
runtime trusts a false size in the file; rows of KNOWN below.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from tflq.api.read_model import read_model
from tflq.api.samples import samples
from tflq.diagnosis.verify import written_tensors
from tflq.errors import OracleError, TflqError
from tflq.graph import Array, Graph, Model
from tflq.interpreter import Engine
from tflq.interpreter.runtimes import RUNTIMES
from tflq.oracle import Oracle
from tflq.oracle.delegated import with_written_tensors_as_outputs
from tflq.oracle.package import RUNTIME_ORACLES

SUITES = ("cases/keras/files", "cases/world", "zoo")
KNOWN = {
    ("tflm", "unidirectional_sequence_lstm"): "rule of UNIDIRECTIONAL_SEQUENCE_LSTM is not known",
    ("litert-optimized", "depthwise_conv_2d"): "uint8 layers are computed partly as vectors",
    ("litert-optimized", "mul"): "a multiplier of 2^31 and more is undefined",
    ("xnnpack", "mul"): "a multiplier of 2^31 and more is undefined",
    ("tosa", "resize_bilinear"): "rule of RESIZE_BILINEAR is not known",
}
"""Causes by runtime and operator."""
TIMEOUT_S = 120


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--runtimes", default=",".join(name for name in RUNTIMES if name != "ref"))
    options.add_argument("--samples", type=int, default=2, help="samples of each file (2)")
    args = options.parse_args(list(arguments))
    names = args.runtimes.split(",")
    peer = find("runtimes") if any(name not in RUNTIME_ORACLES for name in names) else None
    files = args.files or list_files()
    with ThreadPoolExecutor(args.jobs) as pool:
        per_name = pool.map(lambda name: list(judge_runtime(peer, name, files, args.samples)), names)
        return report((row for rows in per_name for row in rows), args.json)


def list_files() -> list[Path]:
    root = Path(os.environ["TFLQ_DATA"])
    paths = [path for suite in SUITES for path in sorted((root / suite).rglob("*.tflite"))]
    return [path for path in paths if "keras" not in path.parts or ".int8" in path.name or ".int16" in path.name]


def judge_runtime(peer: Peer | None, name: str, files: Sequence[Path], count: int) -> Iterator[Row]:
    oracle = Oracle(*RUNTIME_ORACLES[name], timeout_s=TIMEOUT_S) if name in RUNTIME_ORACLES else None
    for path in files:
        yield judge_file(peer, oracle, name, path, count)
    if oracle is not None:
        oracle.close()


def judge_file(peer: Peer | None, oracle: Oracle | None, name: str, path: Path, count: int) -> Row:
    try:
        model = read_model(path)
        inputs = samples(model, count=count).take(0, count)
        engine = Engine(model.main, name, graphs=model.graphs, state="independent")
        ours = engine.run(inputs, keep=written_tensors(model.main))
    except TflqError as error:
        return Row(path.name, name, Verdict.REFUSED_BY_TFLQ, 0, str(error)[:200])
    try:
        if oracle is not None:
            theirs = run_oracle(oracle, name, path.read_bytes(), inputs, tuple(ours))
        else:
            theirs = run_peer(peer, name, model, path, inputs)
    except (OracleError, RuntimeError) as error:
        return Row(path.name, name, Verdict.REFUSED_BY_PEER, 0, str(error)[:200])
    return compare(name, path.name, model.main, ours, theirs)


def run_oracle(
    oracle: Oracle, name: str, content: bytes, inputs: Sequence[Array], wanted: tuple[int, ...]
) -> Mapping[int, Array]:
    if name == "xnnpack":
        return oracle.run(with_written_tensors_as_outputs(content), inputs, tensors="outputs").tensors
    return oracle.run(content, inputs, tensors=wanted).tensors


def run_peer(peer: Peer | None, name: str, model: Model, path: Path, inputs: Sequence[Array]) -> Mapping[int, Array]:
    assert peer is not None
    if len(model.main.inputs) != 1:
        raise RuntimeError("several inputs")
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "x.npy"), inputs[0])
        command = [
            peer.target / "runtimes/bin/python",
            peer.scripts / "run_all.py",
            path,
            "--inputs",
            f"{folder}/x.npy",
        ]
        command += ["-o", f"{folder}/y.npz", "--runtimes", name, "--limit", str(TIMEOUT_S)]
        environment = {**os.environ, "RUNTIMES": str(peer.target), "PYTHONPATH": ""}
        subprocess.run(list(map(str, command)), check=False, capture_output=True, env=environment)
        with np.load(f"{folder}/y.npz") as stored:
            state = json.loads(str(stored["report"]))[name]["state"]
            if state != "ok":
                raise RuntimeError(state)
            return {int(k.split("/")[1]): stored[k] for k in stored.files if k.startswith(f"{name}/")}


def compare(name: str, file: str, graph: Graph, ours: Mapping[int, Array], theirs: Mapping[int, Array]) -> Row:
    """Compare all tensors; the cause is that of the first layers that differ on equal inputs."""
    differing, checks = dict[int, str](), 0
    for t, mine in ours.items():
        if t not in theirs or mine.dtype == object:
            continue
        checks += mine.size
        words = difference(mine, np.asarray(theirs[t]))
        if words:
            differing[t] = words
    if not differing:
        return Row(file, name, Verdict.EQUAL, checks)
    writers = graph.producers()
    roots = {t: graph.nodes[writers[t]] for t in differing if t in writers}
    roots = {t: node for t, node in roots.items() if not set(node.inputs) & differing.keys()}
    causes = {t: cause_of(name, graph, t, node.operator, differing[t]) for t, node in roots.items()}
    first = next(iter(differing))
    words = f"{graph.tensors[first].name}: {differing[first]}; "
    known = [cause for cause in causes.values() if cause]
    if causes and len(known) == len(causes):
        return Row(file, name, Verdict.KNOWN, checks, words + ", ".join(sorted(set(known))))
    operators = sorted({roots[t].operator for t, cause in causes.items() if not cause})
    return Row(file, name, Verdict.DIFFERS, checks, words + ", ".join(operators))


def difference(mine: Array, other: Array) -> str:
    if mine.size != other.size:
        return f"sizes {mine.shape} and {other.shape}"
    a, b = mine.reshape(-1), other.reshape(-1)
    is_equal = (a == b) | ((a != a) & (b != b))
    return "" if is_equal.all() else f"{np.count_nonzero(~is_equal)} of {a.size}"


def cause_of(name: str, graph: Graph, t: int, operator: str, words: str) -> str:
    """Return the cause by which a layer may differ, or nothing."""
    if words.startswith("sizes"):
        return "stored shape"
    if name == "tosa":  # outputs only: any layer may be the first
        operators = [node.operator for node in graph.nodes]
        return next((cause for (runtime, o), cause in KNOWN.items() if runtime == name and o in operators), "")
    node = graph.nodes[graph.producers()[t]]
    if any(graph.tensors[i].dtype.is_floating for i in (*node.inputs, t) if i >= 0) and operator != "quantize":
        return f"floating point ({operator})"
    return KNOWN.get((name, operator), "")
