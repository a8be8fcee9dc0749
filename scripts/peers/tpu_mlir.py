"""TPU-MLIR against tflq: every tensor, type, scale, multiplier and shift of the tool's lowered graph and simulator.

    scripts/peer tpu-mlir --networks 100 --seed 5
    scripts/peer tpu-mlir --models FILE.tflite ...
    scripts/peer tpu-mlir --zoo FOLDER --tables ours
    scripts/peer tpu-mlir --sweep moves equal --networks 40 --seed 2 --tables ours

Networks are drawn by keras_networks.py, or files are named (NAME.samples.npz beside NAME.*.tflite calibrates and is
run; else inputs are drawn): single ones, or all .tflite files below a folder of architectures. A sweep draws networks
around one condition of the front end, with ranges on both sides of it (tpu_mlir_sweeps.py). Each is quantized in both
modes, with tflq's calibration table and (`--tables`) with one that the tool makes. A scheme is "sym ours", "asym kl"
and so on. The tool reads the ONNX file and the table that `tflq convert -t tpu-mlir` writes. How layers are compared:
tpu_mlir_layers.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.keras_networks import random_networks
from peers.tpu_mlir_layers import Comparison
from peers.tpu_mlir_sweeps import SWEEPS, draw_sweeps
from tflq.api.calibrate import calibrate
from tflq.api.read_model import read_model
from tflq.converters.onnx import OnnxGraph, model_bytes, translate
from tflq.converters.onnx.options import OnnxOptions
from tflq.converters.passes.requirements import float_network as with_ranges
from tflq.converters.settings import parse_settings
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.converters.tpu_mlir.adapt import for_the_tool
from tflq.converters.tpu_mlir.emit import artifacts_of
from tflq.converters.tpu_mlir.passes.expand import expand
from tflq.converters.tpu_mlir.quantize import float_network, opset_of
from tflq.errors import TflqError
from tflq.graph import Affine, Array, Model, Tensor
from tflq.interpreter import lower
from tflq.parallel.executions import quantized

MODES = {"sym": False, "asym": True}


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--models", nargs="*", type=Path, help="files instead of random networks")
    options.add_argument("--zoo", type=Path, help="folder of .tflite files, at any depth, instead of random networks")
    options.add_argument("--sweep", nargs="*", choices=sorted(SWEEPS), help="conditions to draw networks around (all)")
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
        models = chosen.models if chosen.zoo is None else sorted(chosen.zoo.rglob("*.tflite"))
        if chosen.sweep is not None:
            networks: Any = draw_sweeps(chosen.sweep or sorted(SWEEPS), chosen.networks, chosen.seed, folder)
        elif models is not None:
            networks = ((path.stem, path, samples_beside(path)) for path in models)
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


def index_type(tensor: Tensor) -> np.dtype[Any]:
    """Return the type of an input's samples: float32, or integers for indices."""
    is_index = tensor.dtype.is_integer and not isinstance(tensor.quantization, Affine)
    return np.dtype(tensor.dtype.storage if is_index else np.float32)


def inputs_of(model: Model, samples: Path | None, count: int) -> list[Array]:
    """Real values of each input: of the file, or normal ones."""
    graph = model.main
    if samples is not None:
        with np.load(samples) as file:
            arrays = [file[key] for key in file.files]
        sizes = [graph.tensors[t].size for t in graph.inputs]
        if [a[0].size for a in arrays] == sizes:
            shaped = [a.reshape(len(a), *graph.tensors[t].shape) for a, t in zip(arrays, graph.inputs, strict=True)]
            types = [index_type(graph.tensors[t]) for t in graph.inputs]
            return [a.astype(dtype) for a, dtype in zip(shaped, types, strict=True)]
    rng = np.random.default_rng(7)
    found: list[Array] = []
    for t in graph.inputs:
        tensor = graph.tensors[t]
        real: Array = rng.standard_normal((count, *tensor.shape)) * 1.5 + 0.3
        if isinstance(tensor.quantization, Affine):
            codes = rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, real.shape)
            real = (codes - int(tensor.affine.zero_point[0])) * float(tensor.affine.scale[0])
        elif tensor.dtype.is_integer:  # indices
            found.append(rng.integers(0, 3, real.shape).astype(tensor.dtype.storage))
            continue
        found.append(real.astype(np.float32))
    return found


def calibrated(path: Path, samples: list[Array]) -> Model:
    model = read_model(path)
    quantized_already = any(isinstance(t.quantization, Affine) and not t.is_constant for t in model.main.tensors)
    if quantized_already:
        return calibrate(model)
    ranges = path.with_suffix(".ranges")
    if ranges.exists():
        return calibrate(model, ranges=str(ranges))
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
    samples: list[Array] = []
    try:
        samples = inputs_of(read_model(path), beside, max(8, options.samples))
        model = calibrated(path, samples)
        settings = parse_settings(TPU_MLIR.settings, [])
        made = artifacts_of(quantized(model.main, TPU_MLIR, settings), model)
        written = float_network(model.main).onnx
    except Exception as error:
        verdict = Verdict.REFUSED_BY_TFLQ if isinstance(error, TflqError) else Verdict.FAILED
        words = f"{type(error).__name__}: {error}"[:300]
        if verdict is Verdict.REFUSED_BY_TFLQ and is_refused(tool, path, samples, place, options.chip):
            verdict = Verdict.REFUSED_BY_BOTH
        yield from (Row(name, f"{mode} {table}", verdict, 0, words) for mode, table in schemes)
        return
    (place / "net.onnx").write_bytes(next(data for key, data in made.items() if key.endswith(".onnx")))
    run = [x[: options.samples] for x in samples]
    np.savez(place / "x.npz", **feeds(written, run))  # type: ignore[arg-type]
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
                has_table = (place / f"table_{table}").exists()
                ends = has_table and tool(folder=str(place), table=f"table_{table}", asymmetric=MODES[mode])
                yield Row(
                    name, scheme, Verdict.REFUSED_BY_BOTH if ends else Verdict.REFUSED_BY_TFLQ, 0, str(error)[:300]
                )
            except Exception as error:
                yield Row(name, scheme, Verdict.FAILED, 0, f"{type(error).__name__}: {error}"[:300])


def is_refused(tool: Tool, path: Path, samples: list[Array], place: Path, chip: str) -> bool:
    """Whether the tool itself does not run what tflq refuses: the plain ONNX graph, with the tool's own ranges."""
    try:
        network = expand(with_ranges(calibrated(path, samples).main))
        written = for_the_tool(translate(network, OnnxOptions(opset=opset_of(network))))
    except TflqError:
        return False
    (place / "net.onnx").write_bytes(model_bytes(written))
    np.savez(place / "x.npz", **feeds(written, samples))  # type: ignore[arg-type]
    if tool(folder=str(place), method="minmax"):
        return True
    return all(tool(folder=str(place), table="table", asymmetric=mode, chip=chip) for mode in MODES.values())


def feeds(written: OnnxGraph, samples: list[Array]) -> dict[str, Array]:
    """The samples in the order of axes of the ONNX graph, by name."""
    pairs = zip(written.inputs, samples, strict=True)
    return {v.name: (x.transpose(0, 1, 4, 2, 3) if x.ndim == 5 else x) for v, x in pairs}


def compared(tool: Tool, model: Model, place: Path, run: list[Array], name: str, scheme: str, chip: str) -> Row:
    mode, table = scheme.split()
    sets = [f"asymmetric={str(MODES[mode]).lower()}"]
    if table != "ours":
        sets.append(f"calibration_table={place / f'table_{table}'}")
    settings = parse_settings(TPU_MLIR.settings, sets)
    graph = lower(quantized(model.main, TPU_MLIR, settings), TPU_MLIR.arithmetic)
    if table == "ours":
        made = artifacts_of(graph, model)
        (place / "table_ours").write_bytes(next(data for key, data in made.items() if key.endswith("_cali_table")))
    words = tool(folder=str(place), table=f"table_{table}", asymmetric=MODES[mode], chip=chip)
    if words:
        return Row(name, scheme, Verdict.REFUSED_BY_PEER, 0, words)
    with np.load(place / f"{mode}.npz") as file:
        theirs = {key: file[key] for key in file.files}
    layers = json.loads((place / f"{mode}.json").read_text())
    return Comparison(graph, run, theirs, layers).row(name, scheme)
