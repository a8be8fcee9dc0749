"""What the live Compass tools make of single layers and small networks, recorded for tests/converters/aipu.

    scripts/peer compass-recorded [--kind KIND] [--only WORDS] [--mode LETTERS] [--float] [--write] [--work DIR]
                                  [--jobs N]

The Parser and Optimizer (peers/compass) run the layers of tests/converters/aipu/single_layers.py and the networks of
networks.py beside it, each in one of seven modes in turn, and the layers of drawn_layers.py, each in its own mode;
--only takes networks with the words in their names, --kind one kind of network, --float only the Parser and networks.
A row of each case states whether tflq's float IR, quantized IR and tensors equal the tools'. --write stores equal cases
in tests/data/aipu_layers.json.xz and keeps all other cases. Files in --work are not made again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.compass import environment, ranges_of
from tests.converters.aipu import test_recorded
from tests.converters.aipu.drawn_layers import MODE_OF
from tests.converters.aipu.networks import NETWORKS, built
from tests.converters.aipu.recording import (
    CALIBRATED,
    FAST,
    MODES,
    UNIFIED,
    digest_of_files,
    digest_of_tensor,
    read_recorded,
    settings_of,
    write_recorded,
)
from tests.converters.aipu.single_layers import LAYERS
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.tool_config import config_text
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import write_model
from tflq.errors import TflqError
from tflq.schemas.aipu import read_network, write_network

ROOT = Path(__file__).resolve().parent.parent.parent
Case = dict[str, Any]
IN_TURN = MODES[:7]


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--only", default="", help="cases whose names hold these words (all)")
    options.add_argument("--kind", choices=("layers", "networks", "drawn"), help="those of one kind (all)")
    options.add_argument("--mode", default="", help="modes whose names hold these letters (all)")
    options.add_argument("--float", action="store_true", help="run the Parser only")
    options.add_argument("--write", action="store_true", help="record what is equal")
    options.add_argument("--work", type=Path, help="folder that keeps the tools' files")
    chosen = options.parse_args(arguments)
    peer = find("compass")
    with tempfile.TemporaryDirectory() as scratch:
        kinds = ["networks"] if chosen.float else [chosen.kind] if chosen.kind else ["layers", "networks", "drawn"]
        plan = [
            {**case, "float": chosen.float}
            for case in _plan(chosen.work or Path(scratch))
            if chosen.only in case["name"] and chosen.mode in case["mode"] and case["kind"] in kinds
        ]
        _run(peer, plan, chosen.work or Path(scratch), chosen.jobs)
        return report(_rows(plan, chosen.write), chosen.json)


def _plan(work: Path) -> list[Case]:
    names = [("layers", name) for name in LAYERS] + [("networks", name) for name in NETWORKS]
    modes = [(kind, name, IN_TURN[k % len(IN_TURN)]) for k, (kind, name) in enumerate(names)]
    modes += [("drawn", name, mode) for name, mode in MODE_OF.items()]
    joined = [name for name in NETWORKS if {"concatenation", "pack"} & {n.operator for n in built(name)[0].nodes}]
    modes += [("networks", name, mode) for name in joined for mode in UNIFIED]
    modes += [("drawn", f"softmax {k}", mode) for k, mode in enumerate(FAST)]
    return [
        {
            "kind": kind,
            "name": name,
            "folder": str(work / f"{kind}_{zlib.crc32(name.encode()):08x}"),
            "mode": mode,
            "settings": _of_compass(mode),
            "calibrated": CALIBRATED,
        }
        for kind, name, mode in modes
    ]


def _of_compass(mode: str) -> dict[str, str]:
    """The mode as keys of the tool's configuration."""
    lines = config_text(parse_settings(AIPU.settings, settings_of(mode)), "layer").splitlines()[1:]
    found = dict(line.split(" = ", 1) for line in lines)
    others = (
        "graph",
        "bin",
        "model_name",
        "output_dir",
        "calibration_strategy_for_activation",
        "calibration_batch_size",
    )
    found = {key: value for key, value in found.items() if key not in others}
    fast = mode.partition("_f")[2]
    return {**found, "enable_pass_tune_op_softmax": f"[1,{fast}][0]"} if fast else found


def _run(peer: Peer, plan: list[Case], work: Path, jobs: int) -> None:
    for case in plan:
        folder = Path(case["folder"])
        (folder / "ir").mkdir(parents=True, exist_ok=True)
        samples = test_recorded.samples_of(case["kind"], case["name"])
        arrays: dict[str, Any] = {f"in{k}": x for k, x in enumerate(samples)}
        np.savez(folder / "samples.npz", **arrays)
        if case["kind"] == "networks":
            case["model"] = str(folder / "model.tflite")
            write_model(built(case["name"])[0], case["model"])
        else:
            case["text"] = str(folder / "ir" / "layer.txt")
        text, binary = write_network(test_recorded.float_network(case["kind"], case["name"]))
        known = test_recorded.RECORDED["networks"].get(case["name"], {}).get("float")
        if case["kind"] != "networks" or known == digest_of_files(text.encode(), binary):
            written = folder / "ir" / ("model.txt" if case["kind"] == "networks" else "layer.txt")
            written.write_text(text, encoding="utf-8")
            written.with_suffix(".bin").write_bytes(binary)
    variables = environment(peer)
    variables["PYTHONPATH"] += f":{peer.scripts}"
    worker = Path(__file__).with_name("compass_recorded_worker.py")
    python = peer.target / "venv" / "bin" / "python"
    running = []
    for part in range(jobs):
        listed = work / f"plan{part}.json"
        listed.write_text(json.dumps(plan[part::jobs]), encoding="utf-8")
        command = [str(python), str(worker), str(listed)]
        quiet = subprocess.DEVNULL
        running.append(subprocess.Popen(command, env=variables, stdout=quiet, stderr=quiet))
    for process in running:
        process.wait()


def _rows(plan: list[Case], write: bool) -> Iterator[Row]:
    recorded = read_recorded()
    found: Case = {"layers": {}, "networks": {}, "drawn": {}}
    test_recorded.RECORDED = found
    for case in plan:
        kind, name, mode, folder = case["kind"], case["name"], case["mode"], Path(case["folder"]) / case["mode"]
        if not (folder.parent / "ir" / "model.txt" if case["float"] else folder / "tensors.npz").exists():
            yield Row(name, mode, Verdict.REFUSED_BY_PEER)
            continue
        found[kind][name] = _recorded(case, folder)
        try:
            if kind == "networks":
                test_recorded.test_the_float_ir_is_the_parsers(name)
            if not case["float"]:
                test_recorded.test_the_quantized_ir_and_every_value_are_the_optimizers(kind, name, mode)
        except TflqError as error:
            yield Row(name, mode, Verdict.REFUSED_BY_TFLQ, words=str(error)[:160])
        except AssertionError as error:
            yield Row(name, mode, Verdict.DIFFERS, words=str(error)[:160])
        except Exception as error:  # a layer that is no valid one of its kind must not end the others
            yield Row(name, mode, Verdict.DIFFERS, words=f"{type(error).__name__}: {error}"[:160])
        else:
            made = found[kind][name]["modes"]
            yield Row(name, mode, Verdict.EQUAL, len(made[mode]["tensors"]) if mode in made else 0)
            kept = recorded.setdefault(kind, {}).setdefault(name, {"modes": {}})
            found[kind][name]["modes"] = {**kept["modes"], **found[kind][name]["modes"]}
            recorded[kind][name] = found[kind][name]
    if write:
        write_recorded(recorded)


def _recorded(case: Case, folder: Path) -> Case:
    result: Case = {"modes": {} if case["float"] else {case["mode"]: _quantized(case, folder)}}
    if case["kind"] == "networks":
        ir = Path(case["folder"]) / "ir" / "model.txt"
        text, binary = write_network(read_network(ir.read_text(encoding="utf-8"), ir.with_suffix(".bin").read_bytes()))
        result["float"] = digest_of_files(text.encode(), binary)
    return result


def _quantized(case: Case, folder: Path) -> Case:
    stem = "model" if case["kind"] == "networks" else "layer"
    for template in folder.glob("*_opt_template.json"):
        template.rename(folder / "model_opt_template.json")
    with np.load(folder / "tensors.npz") as file:
        digests = {name: digest_of_tensor(file[name]) for name in file.files}
    calibrated = json.loads((folder / "ranges.json").read_text(encoding="utf-8"))
    files = [(folder / f"{stem}_o.{end}").read_bytes() for end in ("txt", "bin")]
    ranges = _begun_below_zero(case, _finite(ranges_of(folder)))
    return {"file": digest_of_files(*files), "tensors": digests, "ranges": ranges, "calibrated": _finite(calibrated)}


def _begun_below_zero(case: Case, ranges: dict[str, list[float]]) -> dict[str, list[float]]:
    """Let ranges of inputs that were below 0 in the calibration begin there, as aipu/ranges.py does."""
    graph = test_recorded.float_graph(case["kind"], case["name"])
    for t, samples in zip(graph.inputs, test_recorded.samples_of(case["kind"], case["name"]), strict=True):
        low, high = ranges.get(graph.tensors[t].name, (-1.0, 0.0))
        if samples[:CALIBRATED].min() < 0 <= low:
            ranges[graph.tensors[t].name] = [-float(np.finfo(np.float32).tiny), high]
    return ranges


def _finite(ranges: Case) -> dict[str, list[float]]:
    return {
        name: [float(f"{np.float32(limit):.9g}") for limit in pair]
        for name, pair in ranges.items()
        if np.isfinite(pair).all()
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
