"""TPU-MLIR against tflq: every tensor, type, scale, multiplier and shift of the tool's lowered graph and simulator.

    scripts/peer tpu-mlir --networks 100 --seed 5
    scripts/peer tpu-mlir --models FILE.tflite ...

Networks are drawn by keras_networks.py, or files are named (NAME.samples.npz beside NAME.*.tflite calibrates and is
run; else inputs are drawn). Each is quantised in both modes, with tflq's calibration table and (`--tables`) with one
that the tool makes. A scheme is "sym ours", "asym kl" and so on. The tool reads the ONNX file and the table that
`tflq convert -t tpu-mlir` writes. Layers in float16 or float32 may differ in the last places (order of the tool's
sums), and integers behind them then by 1: a known difference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.keras_networks import random_networks
from tflq.analysis.executions import quantised
from tflq.api.calibrate import calibrate
from tflq.api.read_model import read_model
from tflq.converters.settings import parse_settings
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.emit import artefacts_of, integers_of
from tflq.converters.tpu_mlir.quantise import float_network
from tflq.errors import TflqError
from tflq.graph import Affine, Array, DType, Graph, Model, Node
from tflq.interpreter import lower
from tflq.interpreter.execution.engine import Engine

MODES = {"sym": False, "asym": True}
TYPES = {"i8": DType.INT8, "u8": DType.UINT8, "i32": DType.INT32, "f16": DType.FLOAT16, "f32": DType.FLOAT32}
UNROUNDED = ("tpu.Interp", "tpu.LayerNorm")
"""Layers that the tool calls float16, but whose float32 results its simulator keeps."""
MOVES = ("tpu.Reshape", "tpu.Permute", "tpu.Cast", "tpu.Squeeze", "tpu.Unsqueeze")
"""Layers of the tool that need no counterpart: they only move or convert what another layer wrote."""


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--models", nargs="*", type=Path, help="files instead of random networks")
    options.add_argument("--tables", default="ours,minmax", help="ours, minmax, kl, ...: whose ranges (ours,minmax)")
    options.add_argument("--modes", default="sym,asym", help="sym, asym or both")
    options.add_argument("--samples", type=int, default=3, help="that are run (3)")
    options.add_argument("--chip", default="bm1684x", help="of the tool (bm1684x)")
    options.add_argument("--keep", type=Path, help="folder that keeps what was exchanged")
    chosen = options.parse_args(arguments)
    peer = find("tpu_mlir")
    with tempfile.TemporaryDirectory() as scratch:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if chosen.models is not None:
            networks: Any = ((path.stem, path, samples_beside(path)) for path in chosen.models)
        else:
            networks = random_networks(chosen.networks, chosen.seed, folder)
        tool = Tool(peer)
        rows = (row for network in networks for row in judge(tool, network, folder, chosen))
        return report(rows, chosen.json)


class Tool:
    """The worker in the tool's own Python."""

    def __init__(self, peer: Peer) -> None:
        worker = Path(__file__).with_name("tpu_mlir_worker.py")
        command = '. "$0/environment"; exec python "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", command, str(peer.target), str(worker), str(peer.scripts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __call__(self, **job: object) -> str:
        """Do one job; returns why it failed, else nothing."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return str(json.loads(self._process.stdout.readline()).get("error", ""))


def samples_beside(path: Path) -> Path | None:
    found = path.with_name(f"{path.name.split('.')[0]}.samples.npz")
    return found if found.exists() else None


def inputs_of(model: Model, samples: Path | None, count: int) -> list[Array]:
    """Real values of each input: of the file, or normal ones."""
    graph = model.main
    if samples is not None:
        with np.load(samples) as file:
            arrays = [file[key] for key in file.files]
        if len(arrays) == len(graph.inputs):
            shaped = [a.reshape(len(a), *graph.tensors[t].shape) for a, t in zip(arrays, graph.inputs, strict=True)]
            return [a.astype(np.float32) for a in shaped]
    rng = np.random.default_rng(7)
    found: list[Array] = []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        real: Array = rng.standard_normal((count, *tensor.shape)) * 1.5 + 0.3
        if isinstance(tensor.quantisation, Affine):
            codes = rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, real.shape)
            real = (codes - int(tensor.affine.zero_point[0])) * float(tensor.affine.scale[0])
        found.append(real.astype(np.float32))
    return found


def calibrated(path: Path, samples: list[Array]) -> Model:
    model = read_model(path)
    quantised_already = any(isinstance(t.quantisation, Affine) and not t.is_constant for t in model.main.tensors)
    if quantised_already:
        return calibrate(model)
    names = [model.main.tensors[t].name for t in model.main.inputs]
    return calibrate(model, samples=dict(zip(names, samples, strict=True)))


def judge(
    tool: Tool, network: tuple[str, Path, Path | None], folder: Path, options: argparse.Namespace
) -> Iterator[Row]:
    """A row for each mode and table of one network."""
    name, path, beside = network
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    schemes = [(mode, table) for table in options.tables.split(",") for mode in options.modes.split(",")]
    try:
        samples = inputs_of(read_model(path), beside, max(8, options.samples))
        model = calibrated(path, samples)
        settings = parse_settings(TPU_MLIR.settings, [])
        made = artefacts_of(quantised(model.main, TPU_MLIR, settings), model)
        _, written = float_network(model.main)
    except Exception as error:
        verdict = Verdict.REFUSED_BY_TFLQ if isinstance(error, TflqError) else Verdict.FAILED
        words = f"{type(error).__name__}: {error}"[:300]
        yield from (Row(name, f"{mode} {table}", verdict, 0, words) for mode, table in schemes)
        return
    (place / "net.onnx").write_bytes(next(data for key, data in made.items() if key.endswith(".onnx")))
    run = [x[: options.samples] for x in samples]
    feeds = {
        v.name: (x.transpose(0, 1, 4, 2, 3) if x.ndim == 5 else x) for v, x in zip(written.inputs, run, strict=True)
    }
    np.savez(place / "x.npz", **feeds)  # type: ignore[arg-type]
    for table in options.tables.split(","):
        for mode in options.modes.split(","):
            words = ""
            if table != "ours" and not (place / f"table_{table}").exists():
                words = tool(folder=str(place), method=table)
                if not words:
                    shutil.move(place / "table", place / f"table_{table}")
            scheme = f"{mode} {table}"
            if words:
                yield Row(name, scheme, Verdict.REFUSED_BY_PEER, 0, words)
                continue
            try:
                yield compared(tool, model, place, run, name, scheme, options.chip)
            except TflqError as error:
                yield Row(name, scheme, Verdict.REFUSED_BY_TFLQ, 0, str(error)[:300])
            except Exception as error:
                yield Row(name, scheme, Verdict.FAILED, 0, f"{type(error).__name__}: {error}"[:300])


def compared(tool: Tool, model: Model, place: Path, run: list[Array], name: str, scheme: str, chip: str) -> Row:
    mode, table = scheme.split()
    sets = [f"asymmetric={str(MODES[mode]).lower()}"]
    if table != "ours":
        sets.append(f"calibration_table={place / f'table_{table}'}")
    settings = parse_settings(TPU_MLIR.settings, sets)
    graph = lower(quantised(model.main, TPU_MLIR, settings), TPU_MLIR.arithmetic)
    if table == "ours":
        made = artefacts_of(graph, model)
        (place / "table_ours").write_bytes(next(data for key, data in made.items() if key.endswith("_cali_table")))
    words = tool(folder=str(place), table=f"table_{table}", asymmetric=MODES[mode], chip=chip)
    if words:
        return Row(name, scheme, Verdict.REFUSED_BY_PEER, 0, words)
    with np.load(place / f"{mode}.npz") as file:
        theirs = {key: file[key] for key in file.files}
    layers = json.loads((place / f"{mode}.json").read_text())
    return Comparison(graph, run, theirs, layers).row(name, scheme)


@dataclass
class Comparison:
    """One network in one scheme.

    Attributes:
        graph: tflq's, lowered.
        inputs: real values [S, *shape].
        theirs: the tool's tensors by name.
        layers: the tool's lowered graph.
    """

    graph: Graph
    inputs: list[Array]
    theirs: dict[str, Array]
    layers: list[dict[str, Any]]
    checks: int = 0
    problems: list[str] = field(default_factory=list)
    close: list[str] = field(default_factory=list)

    def row(self, name: str, scheme: str) -> Row:
        keep = [t for node in self.graph.nodes for t in node.outputs]
        found = Engine(self.graph).run(self.inputs, keep)
        ours = {self.graph.tensors[t].name: t for t in keep}
        nodes = {t: node for node in self.graph.nodes for t in node.outputs}
        for layer in self.layers:
            if layer["op"].startswith("top."):
                continue
            for output in layer["outputs"]:
                key = our_name(output["name"], ours)
                if key is None or output["name"] not in self.theirs:
                    inside = output["name"].endswith(("_i32", "_slice"))  # parts of one layer
                    if layer["op"] not in MOVES and not inside:
                        self.problems.append(f"tflq has no {output['name']} ({layer['op']})")
                    continue
                self.tensor(layer, output, ours[key], found[ours[key]], nodes[ours[key]])
        if self.problems:
            return Row(name, scheme, Verdict.DIFFERS, self.checks, "; ".join(self.problems[:3]))
        if self.close:
            return Row(name, scheme, Verdict.KNOWN, self.checks, "last places of floats: " + "; ".join(self.close[:2]))
        return Row(name, scheme, Verdict.EQUAL, self.checks)

    def tensor(self, layer: dict[str, Any], output: dict[str, Any], t: int, value: Array, node: Node) -> None:
        """One tensor's type, scale, integers and values."""
        tensor, theirs = self.graph.tensors[t], self.theirs[output["name"]]
        name = f"{output['name']} ({layer['op']})"
        unrounded = layer["op"] in UNROUNDED and tensor.dtype is DType.FLOAT32
        if TYPES.get(output["type"]) is not tensor.dtype and not unrounded:
            self.problems.append(f"{name}: type {tensor.dtype.value}, the tool's is {output['type']}")
            return
        if "scale" in output:
            pair = (float(tensor.affine.scale[0]), int(tensor.affine.zero_point[0]))
            if not np.isclose(pair[0], output["scale"], rtol=1e-6, atol=0) or pair[1] != output["zero_point"]:
                self.problems.append(f"{name}: scale {pair}, the tool's {output['scale'], output['zero_point']}")
                return
        for key, number in integers_of(node).items():
            wanted = layer["attributes"].get(key, layer["attributes"].get(f"{key}s"))
            if wanted is not None and not np.array_equal(np.ravel(np.array(number)), np.ravel(wanted)):
                self.problems.append(f"{name}: {key} {number}, the tool's {wanted}")
                return
        mine = same_layout(self.graph, t, value, theirs)
        self.checks += theirs.size
        if mine is None:
            self.problems.append(f"{name}: shape {value.shape}, the tool's {theirs.shape}")
            return
        gap = np.abs(mine.astype(np.float64) - theirs.astype(np.float64))
        if not np.any(gap > 0):
            return
        count, largest = int(np.count_nonzero(gap > 0)), float(gap.max())
        words = f"{name}: {count} of {gap.size} differ, at most by {largest:.4g}"
        span = float(np.abs(theirs).max()) or 1.0
        if tensor.dtype.is_integer and (theirs.max() > tensor.dtype.maximum or theirs.min() < tensor.dtype.minimum):
            self.close.append(f"{words}: the tool's simulator leaves the type")
        elif tensor.dtype.is_floating and largest <= 1e-5 * span * (100 if tensor.dtype is DType.FLOAT16 else 1):
            self.close.append(words)
        elif any("leaves the type" in line for line in self.close) or (self.close and largest <= 1):
            self.close.append(words)  # behind a float layer
        else:
            self.problems.append(words)


def our_name(name: str, ours: dict[str, int]) -> str | None:
    """What tflq calls a tensor of the tool; it has no reshapes round a softmax."""
    plain = name.replace("_Softmax__softmax", "_Softmax")
    return next((key for key in (name, plain, plain.replace("_reshape", "")) if key in ours), None)


def same_layout(graph: Graph, t: int, value: Array, theirs: Array) -> Array | None:
    """The value in that order of elements that fits the tool's best: an image is in the order (c, h, w) there."""
    if value.size != theirs.size:
        return None
    orders = [value.reshape(theirs.shape)]
    if value.ndim == 5:
        orders.append(np.asarray(value.transpose(0, 1, 4, 2, 3)).reshape(theirs.shape))
    image = flattened_image(graph, t)
    if image is not None:
        orders.append(value.reshape(len(value), *image).transpose(0, 1, 4, 2, 3).reshape(theirs.shape))
    return min(orders, key=lambda order: np.count_nonzero(order != theirs))


def flattened_image(graph: Graph, t: int) -> tuple[int, ...] | None:
    writers = graph.producers()
    while t in writers:
        node = graph.nodes[writers[t]]
        source = graph.tensors[node.inputs[0]]
        if node.operator == "reshape":
            return source.shape if len(source.shape) == 4 else None
        if node.operator not in ("quantize", "dequantize"):
            return None
        t = node.inputs[0]
    return None
