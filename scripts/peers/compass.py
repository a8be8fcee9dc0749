"""Compass Parser and Optimizer on networks drawn at random: float IR, quantized IR and every tensor.

    scripts/peer compass [--networks 20] [--seed 1] [--family F ...] [--mode M ...] [--work DIR] [--lines N] [--forward]

Each network is drawn, parsed and quantized by the vendor's tools (peers/compass), in one of twelve modes that follow
one another: symmetric or asymmetric activations, weights per tensor or per channel, 8 bits, 16 bits, or weights of 8
and activations of 16. tflq translates the same .tflite. Two rows a network: `float` holds tflq's float IR to the
Parser's, field by field; the mode's row holds the quantized IR, byte by byte, and every tensor of every sample, both
from the .tflite with the ranges that the Optimizer calibrated. With --forward there is a third: files that tflq makes
of the Parser's IR, calibrated by tflq, in the Optimizer's own forward. Where the Parser is wrong tflq is asked for its
files (`parser_faults=true`), as it is for the Optimizer's float32 sums on this maker's processors (`float_sums=true`,
`float_library`).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.compass_forward import forward_row
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.check import problems_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.sampled_ranges import in_float
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import read_model
from tflq.errors import TflqError
from tflq.graph import Graph, Range, float_view
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.float_sums import AMD, INTEL
from tflq.schemas.aipu import Layer, Network, read_network, write_network

FAMILIES = ("residual", "inception", "unet", "mobile", "attention", "recurrent", "temporal", "twin", "shuffle")
_STATED = ("weights_range", "biases_range")
"""Ranges of constants, which the Parser takes from a file's own minimum and maximum; nothing reads them."""

_WIDTHS: Mapping[str, Mapping[str, str]] = {
    "8": {},
    "16": {"activation_bits": "16", "weight_bits": "16", "bias_bits": "48", "lut_items_in_bits": "10"},
    "w4": {"weight_bits": "4"},
    "w12": {"weight_bits": "12"},
    "a12": {"activation_bits": "12", "weight_bits": "12", "lut_items_in_bits": "10"},
    "w8a16": {"activation_bits": "16", "weight_bits": "8", "bias_bits": "48", "lut_items_in_bits": "10"},
}


def _is_amd() -> bool:
    """Whether the processor is AMD's, for which the Optimizer's library has code of its own; Linux tells."""
    described = Path("/proc/cpuinfo")
    return described.exists() and "AuthenticAMD" in described.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Mode:
    """One configuration of the Optimizer, and the same as settings of tflq."""

    symmetric: bool
    per_channel: bool
    width: str

    @property
    def name(self) -> str:
        return f"{'sym' if self.symmetric else 'asym'}_{'pc' if self.per_channel else 'pt'}_{self.width}"

    @property
    def compass(self) -> dict[str, str]:
        activation = f"per_tensor_{'symmetric_full' if self.symmetric else 'asymmetric'}_range"
        weight = f"per_{'channel' if self.per_channel else 'tensor'}_symmetric_restricted_range"
        methods = {
            "quantize_method_for_activation": activation if self.symmetric else "per_tensor_asymmetric",
            "quantize_method_for_weight": weight,
        }
        return {**methods, **_WIDTHS[self.width]}

    @property
    def settings(self) -> list[str]:
        chosen = {
            "activations": "symmetric" if self.symmetric else "asymmetric",
            "weights": "per_channel" if self.per_channel else "per_tensor",
            **_WIDTHS[self.width],
            "float_sums": "true",
            "float_library": AMD if _is_amd() else INTEL,
        }
        return [f"{key}={value}" for key, value in chosen.items()]


MODES = tuple(Mode(s, c, w) for w in _WIDTHS for s in (True, False) for c in (False, True))
USUAL = tuple(mode for mode in MODES if mode.width in ("8", "16", "w8a16"))


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--family", action="append", choices=FAMILIES, help="only these (all)")
    options.add_argument("--mode", action="append", choices=[mode.name for mode in MODES], help="only these (all)")
    options.add_argument(
        "--work", type=Path, help="folder that keeps networks and dumps, and whose dumps are not made anew"
    )
    options.add_argument("--lines", type=int, default=0, help="how many differences of each network are printed (0)")
    options.add_argument("--forward", action="store_true", help="also run tflq's own files in the Optimizer's forward")
    chosen = options.parse_args(arguments)
    peer = find("compass")
    modes = [mode for mode in MODES if mode.name in chosen.mode] if chosen.mode else list(USUAL)
    with tempfile.TemporaryDirectory() as scratch:
        work = chosen.work or Path(scratch)
        names = _draw(peer, work, chosen.seed, chosen.networks, chosen.family or FAMILIES)
        plan = [(name, modes[(k + k // len(FAMILIES)) % len(modes)]) for k, name in enumerate(names)]
        _dump(peer, work, plan, chosen.jobs)
        forward = peer if chosen.forward else None
        rows = (row for name, mode in plan for row in _rows(work / mode.name / name, mode, chosen.lines, forward))
        return report(rows, chosen.json)


def environment(peer: Peer) -> dict[str, str]:
    """Return the variables that the peer's own env.sh sets."""
    folders = (peer.scripts / "stub", peer.target / "optimizer")
    return {
        **os.environ,
        "COMPASS_PARSER": str(peer.target / "parser"),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
    }


def python_of(peer: Peer) -> Path:
    """Return the interpreter of the peer's environment."""
    return peer.target / "venv" / "bin" / "python"


def _script(peer: Peer, name: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [str(python_of(peer)), str(peer.scripts / name), *map(str, arguments)]
    return subprocess.Popen(command, env=environment(peer), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _draw(peer: Peer, work: Path, seed: int, count: int, families: Sequence[str]) -> list[str]:
    """Return the names of the networks, family by family; number k has the seed `seed` + k."""
    names = [f"{families[k % len(families)]}_{seed + k}" for k in range(count)]
    missing = [name for name in names if not list(work.glob(f"*/{name}/model.tflite"))]
    if missing:
        drawing = _script(peer, "random_networks.py", seed, count, work / "drawn", *families)
        drawing.wait()
    return names


def _dump(peer: Peer, work: Path, plan: Sequence[tuple[str, Mode]], jobs: int) -> None:
    """Parse and quantize every network in its mode, so many modes at a time."""
    for name, mode in plan:
        source, folder = work / "drawn" / name, work / mode.name / name
        if source.exists() and not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            source.rename(folder)
    running: list[subprocess.Popen[bytes]] = []
    for mode in dict.fromkeys(mode for _, mode in plan):
        sets = [part for key, value in mode.compass.items() for part in ("--set", f"{key}={value}")]
        while sum(one.poll() is None for one in running) >= max(1, jobs):
            next(one for one in running if one.poll() is None).wait()
        running.append(_script(peer, "dump_all.py", work / mode.name, mode.name, *sets))
    for one in running:
        one.wait()


def _rows(folder: Path, mode: Mode, lines: int, forward: Peer | None = None) -> Iterator[Row]:
    """Yield the row of the float IR and that of the mode; with the peer that of its forward."""
    text = folder / "ir" / "model.txt"
    if not (folder / "model.tflite").exists():
        yield Row(
            folder.name, "float", Verdict.REFUSED_BY_PEER, words="the converter of TensorFlow draws no such network"
        )
        return
    source = float_view(settled_graph(read_model(folder / "model.tflite").main))
    refusal = "; ".join(problems_of(source))
    graph = source if refusal else translate(source, "model", faults=True)
    for scheme, is_there in (("float", text.exists()), (mode.name, (folder / mode.name / "model_o.txt").exists())):
        if not is_there:
            verdict = Verdict.REFUSED_BY_BOTH if refusal else Verdict.REFUSED_BY_PEER
            yield Row(folder.name, scheme, verdict, words=refusal[:160])
        elif refusal:
            yield Row(folder.name, scheme, Verdict.REFUSED_BY_TFLQ, words=refusal[:160])
        elif scheme == "float":
            yield float_row(folder.name, "float", graph, read_ir(text), lines)
        else:
            yield quantized_row(folder.name, mode.name, folder / mode.name, graph, mode, lines)
    if forward and text.exists():
        layers, script = graph_of(read_ir(text)), partial(_script, forward)
        yield forward_row(folder, f"run {mode.name}", layers, mode.settings, script)


def read_ir(text: Path) -> Network:
    return read_network(text.read_text(encoding="utf-8"), text.with_suffix(".bin").read_bytes())


def row_of(name: str, scheme: str, found: Sequence[Difference], checks: int, lines: int, known: str) -> Row:
    for one in found[:lines]:
        print("    ", one.words[:600])
    if not found:
        return Row(name, scheme, Verdict.EQUAL, checks)
    words = f"{len(found)} differ, first {' '.join(found[0].words[:160].split())}"
    return Row(
        name, scheme, Verdict.KNOWN if known else Verdict.DIFFERS, checks, f"{known}: {words}" if known else words
    )


def float_row(name: str, scheme: str, graph: Graph, theirs: Network, lines: int, known: str = "") -> Row:
    """Compare the float IR of layers with the Parser's in every field."""
    found = differences(float_network_of(graph, "model"), theirs)
    return row_of(name, scheme, found, sum(len(layer.entries) for layer in theirs.layers), lines, known)


def quantized_row(name: str, scheme: str, dump: Path, graph: Graph, mode: Mode, lines: int) -> Row:
    """Compare the quantized IR of a dump and every tensor, made of float layers with the ranges of the dump."""
    theirs = read_ir(dump / "model_o.txt")
    try:
        ranged = with_ranges(_with_internal_ranges(graph, dump), ranges_of(dump))
        lowered = lower(AIPU.quantize(ranged, parse_settings(AIPU.settings, mode.settings)), AIPU.arithmetic)
    except TflqError as error:
        return Row(name, scheme, Verdict.REFUSED_BY_TFLQ, words=str(error)[:160])
    ours = network_of(lowered)
    found = differences(ours, theirs)
    files = write_network(ours)
    if not found and (files[0].encode(), files[1]) != tuple(
        (dump / f"model_o.{end}").read_bytes() for end in ("txt", "bin")
    ):
        found.append(Difference("", "", "the bytes of the files differ"))
    lost, checks = compare_tensors(lowered, dump)
    return row_of(name, scheme, [*found, *lost], checks, lines, _cause(lowered, found, lost))


def _with_internal_ranges(graph: Graph, dump: Path) -> Graph:
    """Return float layers with ranges of the tensors inside them, which no dump holds: calibrated on its samples."""
    internal = [t for node in graph.nodes for t in node.intermediates or () if graph.tensors[t].range is None]
    calibration = dump / "calibration.npy"
    if not internal or not calibration.exists():
        return graph
    samples = np.load(calibration).reshape(-1, *graph.tensors[graph.inputs[0]].shape).astype(np.float32)
    measured, result = calibrate(in_float(graph), [samples], StatisticsOptions("mean", 1)), graph.copy()
    for t in internal:
        result.tensors[t] = replace(graph.tensors[t], range=measured.tensors[t].range)
    return result


@dataclass(frozen=True)
class Difference:
    """One difference: the layer or tensor, the key, and words for it."""

    name: str
    key: str
    words: str


_OFF_BY_AN_ULP = {"softmax", "exp", "erf", "sqrt", "log", "sine", "cosine", "TANH"}
"""Tables of functions that the tool's library rounds otherwise on each processor."""


def _cause(graph: Graph, found: Sequence[Difference], lost: Sequence[Difference]) -> str:
    """Name the known cause of differences: libraries of floating point that no integer rule stands for."""
    operators = {node.name: str(node.attributes.get("method", node.operator)) for node in graph.nodes}
    writers = {graph.tensors[t].name: node for node in graph.nodes for t in node.outputs}
    first = next((node for node in graph.nodes for one in lost if writers.get(one.name) is node), None)
    if found:
        tables = {operators.get(one.name, "") if one.key == "lut" else "" for one in found}
        is_behind = first is None or first.name in {one.name for one in found}
        is_off = tables <= _OFF_BY_AN_ULP and is_behind
        return f"the tool's library is off by an ulp: {', '.join(sorted(tables))}" if is_off else ""
    is_wide = first is not None and graph.tensors[first.inputs[0]].dtype.bits > 8
    if first is not None and is_wide and first.operator in ("mat_mul", "conv_transpose"):
        return "sums of 16 bits in float32, in the library's order"
    return ""


def differences(ours: Network, theirs: Network) -> list[Difference]:
    """Return each key of the header, layer, edge or field in which two networks differ."""
    keys = dict.fromkeys((*ours.header, *theirs.header))
    found = [
        Difference("", key, f"header {key}: {ours.header.get(key)} for {theirs.header.get(key)}")
        for key in keys
        if ours.header.get(key) != theirs.header.get(key)
    ]
    orders = [[(layer.name, layer.type) for layer in network.layers] for network in (ours, theirs)]
    if orders[0] != orders[1]:
        only = [[one for one in a if one not in b] for a, b in (orders, orders[::-1])]
        words = f"layers: only ours {only[0]}, only theirs {only[1]}" if any(only) else f"order: {orders}"
        found.append(Difference("", "", words))
    by_name = {layer.name: layer for layer in ours.layers}
    for layer in theirs.layers:
        mine = by_name.get(layer.name)
        if mine is not None and mine.type == layer.type:
            found += _of_layer(mine, layer)
    return found


def _of_layer(mine: Layer, theirs: Layer) -> list[Difference]:
    name, found = theirs.name, list[Difference]()
    if (mine.bottoms, mine.tops) != (theirs.bottoms, theirs.tops):
        words = f"{name}: {mine.bottoms} -> {mine.tops} for {theirs.bottoms} -> {theirs.tops}"
        found.append(Difference(name, "edges", words))
    a, b = ({k: v for k, v in one.entries.items() if k not in _STATED} for one in (mine, theirs))
    unequal = [key for key in {**a, **b} if a.get(key) != b.get(key)]
    found += [Difference(name, key, f"{name} {key}: {a.get(key)} for {b.get(key)}") for key in unequal]
    if a == b and list(a) != list(b):
        found.append(Difference(name, "order", f"{name}: order of keys {list(a)} for {list(b)}"))
    return found


def ranges_of(dump: Path) -> dict[str, tuple[np.float32, np.float32]]:
    """Return the ranges that the Optimizer used: as calibrated, and where its template prints one, that."""
    found = {
        key: (np.float32(low), np.float32(high))
        for key, (low, high) in json.loads((dump / "ranges.json").read_text(encoding="utf-8")).items()
    }
    for layer in json.loads((dump / "model_opt_template.json").read_text(encoding="utf-8")).values():
        printed = layer["just_for_display"]["quantization_info"].replace("nan", "None").replace("inf", "None")
        for tensor, one in ast.literal_eval(printed).items():
            try:
                low, high = (np.ravel(ast.literal_eval(one[key]))[0] for key in ("fmin", "fmax"))
                found[tensor] = (np.float32(low), np.float32(high))
            except (ValueError, SyntaxError, TypeError, KeyError):
                continue
    return found


def with_ranges(graph: Graph, ranges: Mapping[str, tuple[np.float32, np.float32]]) -> Graph:
    """Return the graph with the ranges of tensors by name."""
    result = graph.copy()
    for number, tensor in enumerate(graph.tensors):
        if tensor.name in ranges:
            low, high = (np.asarray([limit], np.float32) for limit in ranges[tensor.name])
            result.tensors[number] = replace(tensor, range=Range(low, high))
    return result


def compare_tensors(graph: Graph, dump: Path) -> tuple[list[Difference], int]:
    """Return each tensor of the dump that differs or has no counterpart, and how many there are."""
    with np.load(dump / "tensors.npz") as file:
        golden = {name: file[name] for name in file.files}
    with np.load(dump / "samples.npz") as file:
        samples = {name: file[name] for name in file.files}
    inputs = []
    for number in graph.inputs:
        tensor = graph.tensors[number]
        values = samples[tensor.name.rpartition("_")[0]].reshape(-1, *tensor.shape)
        is_whole = tensor.quantization is None
        inputs.append(values.astype(tensor.dtype.storage) if is_whole else AIPU.encode(values, tensor))
    computed = {*graph.inputs, *(t for node in graph.nodes for t in node.outputs)}
    where = {graph.tensors[t].name: t for t in sorted(computed) if graph.tensors[t].name in golden}
    found = Engine(graph).run(inputs, list(where.values()))
    lines = [Difference(name, "", f"tensor {name} has no counterpart") for name in golden if name not in where]
    for name, number in where.items():
        wanted, have = golden[name].astype(np.int64), np.asarray(found[number]).astype(np.int64)
        have = (
            have.reshape(wanted.shape)
            if have.size == wanted.size
            else np.broadcast_to(have.reshape(wanted.shape[1:]), wanted.shape)
        )
        wrong = have - wanted
        if wrong.any():
            words = f"tensor {name}: {np.count_nonzero(wrong)} of {wrong.size} by up to {np.abs(wrong).max()}"
            lines.append(Difference(name, "", words))
    return lines, len(golden)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
