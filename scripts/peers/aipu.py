"""Compass Parser and Optimizer on the networks of a zoo: float IR, quantized IR and every tensor, by kind.

    scripts/peer aipu --zoo PATH [--seed 1] [--seeds 3] [--kind K ...] [--form float|int8] [--work DIR] [--lines N]

PATH is the zoo's folder: its `make.py` draws every kind with each seed, and its .tflite files below a folder
`compass` are added. Of a folder without make.py all .tflite files are used. Calibration and samples are
NAME.calibration.npz (default: the samples) and NAME.samples.npz in the same folder, without the form in NAME.

Rows of a float file: `float` compares tflq's float IR with the Parser's in every field; `float to integers` compares
the quantized IR byte for byte and every tensor, from the .tflite with the ranges that the Optimizer calibrated. Rows of
an int8 file (Parser with `force_float_ir = true`, Optimizer with `in_ir`): `int8` compares the float IR; `int8 to
integers` compares the codes of the outputs end to end. No result of the tool is given to tflq then. tflq runs with
`parser_faults=true`; with --right it runs with the default, and a network that differs counts as known if `convert`
names a departure.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.compass import (
    MODES,
    USUAL,
    Difference,
    Mode,
    compare_tensors,
    environment,
    float_row,
    python_of,
    quantized_row,
    read_ir,
    row_of,
)
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.check import problems_of
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate, ranges_from_quantization
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import read_model
from tflq.errors import TflqError
from tflq.graph import Array, Graph, float_view
from tflq.interpreter import lower

FAULTS = "parser_faults"
_PRINTED = re.compile(r"np\.\w+\((-?[0-9.]+)\)")
"""A number as the Parser prints it with numpy 2; its own Optimizer does not read that."""

_ENDS_TO_ENDS = ("sym_pt_8", "asym_pc_8")
"""Modes of int8 files."""


@dataclass(frozen=True)
class File:
    """A .tflite of the zoo.

    Attributes:
        path: The file.
        source: Name of its folder, or seed.
        mode: Mode of the Optimizer.
    """

    path: Path
    source: str
    mode: Mode

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"{self.path.stem}@{self.source}"

    @property
    def is_int8(self) -> bool:
        """True if the file is quantized."""
        return self.path.stem.endswith("int8")

    def arrays(self, part: str) -> Path:
        """Return the file of `samples` or `calibration`; samples calibrate a file without the latter."""
        stem = re.sub(r"\.(float|int8)$", "", self.path.stem)
        names = [f"{self.path.stem}.{part}", f"{stem}.{part}", f"{self.path.stem}.samples", f"{stem}.samples"]
        return next(f for name in names if (f := self.path.with_name(f"{name}.npz")).exists())


def main(arguments: Sequence[str]) -> int:
    """Run the campaign; exit status 1 if a row differs without a name."""
    options = parser(__doc__)
    options.add_argument("--zoo", type=Path, required=True, help="folder of the zoo, or of .tflite files")
    options.add_argument("--seeds", type=int, default=3, help="number of seeds, from --seed on (default: 3)")
    options.add_argument("--kind", nargs="+", default=[], help="kinds to draw (default: all)")
    options.add_argument("--form", choices=("float", "int8"), help="only these files (default: both)")
    options.add_argument("--mode", action="append", choices=[mode.name for mode in MODES], help="modes of float files")
    options.add_argument("--work", type=Path, help="folder that keeps networks and the tool's results")
    options.add_argument("--lines", type=int, default=0, help="printed differences of each network (default: 0)")
    options.add_argument("--right", action="store_true", help="do not repeat the Parser's faults; named ones are known")
    options.add_argument("--float-ir-only", action="store_true", help="compare the float IRs only")
    chosen = options.parse_args(arguments)
    peer = find("compass")
    modes = [mode for mode in MODES if mode.name in chosen.mode] if chosen.mode else list(USUAL)
    with tempfile.TemporaryDirectory() as scratch:
        work = chosen.work or Path(scratch)
        _draw(peer, chosen.zoo, work, range(chosen.seed, chosen.seed + chosen.seeds), chosen.kind)
        files = list(_files(chosen.zoo, work, range(chosen.seed, chosen.seed + chosen.seeds), modes))
        files = [file for file in files if not chosen.form or file.is_int8 == (chosen.form == "int8")]
        files = [file for file in files if not chosen.kind or file.path.stem.split(".")[0] in chosen.kind]
        _run_tool(peer, work, files, quantizes=not chosen.float_ir_only)
        rows = (
            row for file in files for row in _rows(file, work, chosen.lines, not chosen.right, chosen.float_ir_only)
        )
        return report(rows, chosen.json)


def _draw(peer: Peer, zoo: Path, work: Path, seeds: Sequence[int], kinds: Sequence[str]) -> None:
    """Draw the kinds of a zoo with each seed, unless they are there."""
    if not (zoo / "make.py").exists():
        return
    for seed in seeds:
        folder = work / "drawn" / f"seed{seed}"
        if not folder.exists():
            selected = ["--kind", *kinds] if kinds else []
            command = [python_of(peer), zoo.resolve() / "make.py", folder, "--seed", seed, *selected]
            _call(peer, command)


def _files(zoo: Path, work: Path, seeds: Sequence[int], modes: Sequence[Mode]) -> Iterator[File]:
    """Yield the files; modes follow one another over the float files, two modes over the int8 files."""
    of_int8 = [mode for mode in MODES if mode.name in _ENDS_TO_ENDS]
    folders = sorted({path.parent for path in zoo.rglob("*.tflite") if path.parent.name == "compass"})
    folders = folders if (zoo / "make.py").exists() else sorted({path.parent for path in zoo.rglob("*.tflite")})
    folders += [folder for seed in seeds if (folder := work / "drawn" / f"seed{seed}").exists()]
    counts = {True: 0, False: 0}
    for folder in folders:
        source = folder.name if folder.name != "compass" else folder.parent.name
        for path in sorted(folder.glob("*.tflite")):
            is_int8 = path.stem.endswith("int8")
            cycle = of_int8 if is_int8 else modes
            yield File(path, source, cycle[counts[is_int8] % len(cycle)])
            counts[is_int8] += 1


def _folder(work: Path, file: File, part: str) -> Path:
    return work / "tool" / file.source / file.path.stem / part


def _run_tool(peer: Peer, work: Path, files: Sequence[File], quantizes: bool) -> None:
    """Parse all files, then quantize the parsed ones; earlier results stay."""
    work.mkdir(parents=True, exist_ok=True)
    jobs: list[Mapping[str, object]] = [
        {
            "model": str(file.path.resolve()),
            "folder": str(_folder(work, file, "ir").resolve()),
            "name": "model",
            "force_float": file.is_int8,
        }
        for file in files
    ]
    _run_jobs(peer, work, "parse", jobs)
    jobs = []
    for file in files:
        text = _folder(work, file, "ir") / "model.txt"
        if quantizes and text.exists():
            _repair(text)
            ranges = {"calibration_strategy_for_activation": "in_ir"} if file.is_int8 else {}
            jobs.append(
                {
                    "text": str(text.resolve()),
                    "folder": str(_folder(work, file, file.mode.name).resolve()),
                    "settings": {**file.mode.compass, **ranges},
                    "calibration": str(file.arrays("calibration").resolve()),
                    "samples": str(file.arrays("samples").resolve()),
                }
            )
    _run_jobs(peer, work, "quantize", jobs)


def _repair(text: Path) -> None:
    """Rewrite numbers that the Parser printed by repr, so that its Optimizer reads them."""
    printed = text.read_text(encoding="utf-8")
    repaired = _PRINTED.sub(r"\1", printed)
    if repaired != printed:
        text.write_text(repaired, encoding="utf-8")


def _run_jobs(peer: Peer, work: Path, name: str, jobs: Sequence[Mapping[str, object]]) -> None:
    path = work / f"{name}.json"
    path.write_text(json.dumps(jobs), encoding="utf-8")
    _call(
        peer, [python_of(peer), Path(__file__).with_name("aipu_worker.py"), name, path.resolve()], alone=name == "parse"
    )


def _call(peer: Peer, command: Sequence[object], alone: bool = False) -> None:
    """Run a command in the peer's environment; `alone` without the Optimizer, which has the Parser's package name."""
    variables = {**environment(peer), "COMPASS_SCRIPTS": str(peer.scripts)}
    variables = {**variables, "PYTHONPATH": ""} if alone else variables
    quiet = subprocess.DEVNULL
    subprocess.run([str(part) for part in command], env=variables, stdout=quiet, stderr=quiet, check=False)


def _rows(file: File, work: Path, lines: int, faults: bool, float_only: bool) -> Iterator[Row]:
    text = _folder(work, file, "ir") / "model.txt"
    scheme = "int8" if file.is_int8 else "float"
    graph = settled_graph(read_model(file.path).main)
    refusal = "; ".join(problems_of(float_view(ranges_from_quantization(graph))))
    if not text.exists() or refusal:
        both = Verdict.REFUSED_BY_BOTH if refusal else Verdict.REFUSED_BY_PEER
        yield Row(file.name, scheme, Verdict.REFUSED_BY_TFLQ if text.exists() else both, words=refusal[:160])
        return
    layers = translate(graph, "model", faults)
    assert isinstance(layers.extra, Origin)
    known = f"named by convert: {', '.join(layers.extra.departures)}" if layers.extra.departures else ""
    yield float_row(file.name, scheme, layers, read_ir(text), lines, known)
    if float_only:
        return
    dump = _folder(work, file, file.mode.name)
    if not (dump / "model_o.txt").exists() or not (dump / "tensors.npz").exists():
        yield Row(file.name, f"{scheme} to integers", Verdict.REFUSED_BY_PEER)
    elif file.is_int8:
        yield _end_to_end(file, graph, dump, lines, faults)
    else:
        yield quantized_row(file.name, f"{scheme} to integers", dump, layers, file.mode, lines)


def _end_to_end(file: File, graph: Graph, dump: Path, lines: int, faults: bool) -> Row:
    """Compare the output codes of an int8 file; tflq calibrates layers without a stated range."""
    scheme = "int8 to integers"
    settings = [*file.mode.settings, f"{FAULTS}={str(faults).lower()}"]
    try:
        samples = calibrate(graph, _arrays(file, graph, "calibration"), StatisticsOptions("mean", 1, keep_samples=100))
        lowered = lower(AIPU.quantize(samples, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)
    except TflqError as error:
        return Row(file.name, scheme, Verdict.REFUSED_BY_TFLQ, words=str(error)[:160])
    lost, checks = compare_tensors(lowered, dump)
    outputs = {lowered.tensors[t].name for t in lowered.outputs}
    wrong = [one for one in lost if one.name in outputs]
    named = ", ".join(name for name in AIPU.departures(lowered))
    if not wrong and lost:
        first = Difference(lost[0].name, "", f"inner tensors only, {lost[0].words}")
        return Row(file.name, scheme, Verdict.EQUAL, checks, first.words[:160])
    return row_of(file.name, scheme, wrong, checks, lines, f"named by convert: {named}" if named else "")


def _arrays(file: File, graph: Graph, part: str) -> list[Array]:
    """Return real samples for the inputs of a graph."""
    with np.load(file.arrays(part)) as file_arrays:
        tensors = [graph.tensors[t] for t in graph.inputs]
        arrays = [file_arrays[t.name if t.name in file_arrays.files else file_arrays.files[0]] for t in tensors]
    is_real = [t.quantization is not None or t.dtype.is_floating for t in tensors]
    return [
        x.reshape(-1, *t.shape).astype(np.float32 if real else t.dtype.storage)
        for x, t, real in zip(arrays, tensors, is_real, strict=True)
    ]
