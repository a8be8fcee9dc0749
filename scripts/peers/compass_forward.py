"""tflq's own quantized files in the Optimizer's forward: every tensor, from ranges that tflq calibrated itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from peers.campaign import Row, Verdict
from tflq.converters.aipu import AIPU, network_of
from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.emit.archives import write_npz
from tflq.errors import TflqError
from tflq.graph import Array, Graph
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.norms import NormParams
from tflq.schemas.aipu import write_network

CALIBRATED = 16
"""Samples that give the ranges; the others are run."""

Script = Callable[..., "subprocess.Popen[bytes]"]


def forward_row(folder: Path, scheme: str, graph: Graph, settings: list[str], script: Script) -> Row:
    """Quantize a float graph of Compass's layers, write the files, run them in the Optimizer and in tflq.

    Args:
        folder: of the network, with its samples; the files go to `tflq` in it.
        scheme: as the row is called.
        graph: of `graph_of` of a float IR.
        settings: of the target.
        script: starts a script of the peer.
    """
    name, drawn = folder.name, _samples(folder, graph)
    try:
        ranged = calibrate(graph, [x[:CALIBRATED] for x in drawn])
        lowered = lower(AIPU.quantize(ranged, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)
    except TflqError as error:
        return Row(name, scheme, Verdict.REFUSED_BY_TFLQ, words=str(error)[:160])
    out = folder / f"tflq_{scheme}"
    out.mkdir(exist_ok=True)
    text, binary = write_network(network_of(lowered))
    (out / "model_o.txt").write_text(text, encoding="utf-8")
    (out / "model_o.bin").write_bytes(binary)
    run = [x[CALIBRATED:] for x in drawn]
    tensors = [lowered.tensors[t] for t in lowered.inputs]
    write_npz(out / "x.npz", {t.name.rpartition("_")[0]: x for t, x in zip(tensors, run, strict=True)})
    if script("forward.py", out / "model_o.txt", "--samples", out / "x.npz", "-o", out / "y.npz").wait():
        return Row(name, scheme, Verdict.REFUSED_BY_PEER, words="its forward stops")
    codes = [x if t.quantization is None else AIPU.encode(x, t) for x, t in zip(run, tensors, strict=True)]
    codes = [x.astype(t.dtype.storage) for x, t in zip(codes, tensors, strict=True)]
    wrong, checks = _unequal(_of_integers(lowered), codes, out / "y.npz")
    return Row(name, scheme, Verdict.DIFFERS if wrong else Verdict.EQUAL, checks, "; ".join(wrong)[:160])


def _of_integers(graph: Graph) -> Graph:
    """Return the graph as the Optimizer runs it from a file: the constants of norms are integers, and so are the sums.

    Where it has just quantized them they are float32, and so are the sums (ops/groupnorm.py, `groupnorm`).
    """
    result = graph.copy()
    for index, node in enumerate(graph.nodes):
        if isinstance(node.params, NormParams):
            result.nodes[index] = replace(node, params=replace(node.params, rounds=False))
    return result


def _samples(folder: Path, graph: Graph) -> list[Array]:
    tensors = [graph.tensors[t] for t in graph.inputs]
    single = folder / "samples.npy"
    if single.exists():
        found = [np.load(single)]
    else:
        with np.load(folder / "samples.npz") as file:
            found = [file[t.name.rpartition("_")[0]] for t in tensors]
    return [x.reshape(-1, *t.shape).astype(t.dtype.storage) for x, t in zip(found, tensors, strict=True)]


def _unequal(graph: Graph, codes: list[Array], dump: Path) -> tuple[list[str], int]:
    """Return words for each tensor of the dump that differs, and how many were compared."""
    with np.load(dump) as file:
        golden = {name: file[name] for name in file.files}
    places = {tensor.name: t for t, tensor in enumerate(graph.tensors) if tensor.name in golden}
    found = Engine(graph).run(codes, list(places.values()))
    wrong = [f"tensor {name} has no counterpart" for name in golden if name not in places]
    for name, t in places.items():
        wanted = golden[name].astype(np.int64).reshape(len(golden[name]), -1)
        have = np.asarray(found[t]).astype(np.int64).reshape(len(found[t]), -1)
        apart = np.abs(have - wanted)
        if apart.any():
            wrong.append(f"tensor {name}: {np.count_nonzero(apart)} of {wanted.size} by up to {apart.max()}")
    return wrong, len(golden)
