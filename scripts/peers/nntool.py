"""GAP9 against NNTool: every type, constant and tensor of random networks of the peer's generator.

    scripts/peer nntool [--networks 20] [--seed 1] [--jobs 1] [--json FILE] [--schemes ne16 ne16_w? sq8 ne16_16]
        [--folder FILES] [--dumps FOLDER] [--every] [--expressions]

A scheme is ne16 or sq8, then _w2 .. _w8 for the bits of the weights (_w?: drawn for each network), _16 for 16-bit
features, or _mixed: engine and bits of each filter are drawn, and handed over as nntool.py does. tflq runs with
numerics=nntool. --folder compares the .tflite files of a folder instead of drawing; --dumps keeps NNTool's answers and
uses those that lie there. --expressions draws networks of element-wise operators (expression_networks.py) and switches
NNTool's expression matcher on. NNTool is run as it is, in its own process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

from peers.campaign import Peer, Row, Verdict, find, parser, report
from peers.expression_networks import write
from peers.nntool_dump import Comparison, Dump, Scheme, converted
from tflq.converters.gap9.departures import departures_of, unread_operators
from tflq.converters.gap9.emit.nntool_script import graph_options, node_options
from tflq.converters.tflite import read_model
from tflq.errors import TflqError

SCHEMES = ("ne16", "ne16_w?", "sq8", "ne16_16", "ne16_mixed")
FILTERS = ("conv_2d", "depthwise_conv_2d", "fully_connected")


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--schemes", nargs="+", default=SCHEMES, help=" ".join(SCHEMES))
    options.add_argument("--folder", type=Path, help="of .tflite files, instead of drawn ones")
    options.add_argument("--dumps", type=Path, help="keep NNTool's answers here, and use those that are there")
    options.add_argument("--every", action="store_true", help="tell every difference, not the first alone")
    options.add_argument("--expressions", action="store_true", help="element-wise operators, with NNTool's matcher on")
    args = options.parse_args(list(arguments))
    peer = find("nntool")
    with tempfile.TemporaryDirectory() as scratch:
        dumps = args.dumps or Path(scratch, "dumps")
        dumps.mkdir(parents=True, exist_ok=True)
        models = sorted(args.folder.glob("*.tflite")) if args.folder else _drawn(peer, args, Path(scratch))
        return report(_rows(peer, models, dumps, args), args.json)


def _drawn(peer: Peer, args: argparse.Namespace, scratch: Path) -> list[Path]:
    folder = (args.dumps or scratch) / f"networks_{args.seed}_{args.networks}"
    if args.expressions:
        return write(args.seed, args.networks, folder)
    if not folder.is_dir():
        _run(
            [
                _environment(peer)["TENSORFLOW_PYTHON"],
                peer.scripts / "random_networks.py",
                args.seed,
                args.networks,
                folder,
            ]
        )
    return sorted(folder.glob("*.tflite"))


def _environment(peer: Peer) -> dict[str, str]:
    """What the peer's env.sh exports."""
    lines = (peer.target / "env.sh").read_text(encoding="utf-8").splitlines()
    pairs = [line.removeprefix("export ").partition("=") for line in lines if line.startswith("export ")]
    return {name: value for name, _, value in pairs}


def _run(command: Sequence[object], **environment: str) -> int:
    done = subprocess.run(
        [str(c) for c in command], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{command[1]}: {done.stderr[-2000:]}")
    return done.returncode


def _rows(peer: Peer, models: Sequence[Path], dumps: Path, args: argparse.Namespace) -> Iterator[Row]:
    pairs = [(model, _scheme(text, model, args.expressions)) for model in models for text in args.schemes]
    with ThreadPoolExecutor(args.jobs) as pool:
        yield from pool.map(lambda pair: _row(peer, pair[0], pair[1], dumps, args.every), pairs)


def _scheme(text: str, model: Path, expressions: bool) -> Scheme:
    settings = ("numerics=nntool", *("expressions=true",) * expressions)
    if text.endswith("_mixed"):
        return replace(Scheme(text.partition("_")[0], settings=settings), layers=_drawn_layers(model))
    return Scheme.of(text.replace("?", str(Random(model.stem).randint(2, 7))), *settings)


def _drawn_layers(model: Path) -> tuple[str, ...]:
    """Settings of the filters of a network: some on SQ8, some with fewer bits."""
    random, rules = Random(model.stem), []
    for index, node in enumerate(read_model(model).main.nodes):
        draw = random.random() if node.operator in FILTERS else 1.0
        if draw < 0.25:
            rules.append(f"{index}:use_ne16=false")
        elif draw < 0.6 and node.operator != "depthwise_conv_2d":
            rules.append(f"{index}:weight_bits={random.randint(2, 7)}")
    return tuple(rules)


def _handed_over(model: Path, scheme: Scheme) -> list[str]:
    """What nntool.py would set for single nodes, as options of the peer's script."""
    try:
        graph = converted(model, scheme)[1]
    except TflqError:
        return []
    found = node_options(graph, graph_options(graph, f"gap9-{scheme.engine}"))
    return [f"{node}:{key}={json.dumps(value)}" for node, keys in found.items() for key, value in keys.items()]


def _row(peer: Peer, model: Path, scheme: Scheme, dumps: Path, every: bool) -> Row:
    prefix = dumps / f"{model.stem}.{scheme}"
    if Dump.file(prefix) is None:
        environment = _environment(peer)
        worker = [Path(__file__).with_name("nntool_worker.py"), peer.scripts]
        script = worker if "expressions=true" in scheme.settings else [peer.scripts / "quantise_and_dump.py"]
        command = [environment["NNTOOL_PYTHON"], *script, model, "-o", prefix]
        widths = ["--scheme", scheme.engine, "--weight-bits", scheme.weight_bits, "--feature-bits", scheme.feature_bits]
        single = [o for text in _handed_over(model, scheme) for o in ("--node-option", text)] if scheme.layers else []
        _run([*command, *widths, *single], PYTHONPATH=environment["NNTOOL_SOURCE"])
    return judged(model, scheme, Dump.read(prefix), every)


def judged(model: Path, scheme: Scheme, dump: Dump, every: bool = False) -> Row:
    """The verdict on one network: NNTool's answer beside tflq's."""
    try:
        ours = converted(model, scheme)
    except TflqError as error:
        verdict = Verdict.REFUSED_BY_BOTH if dump.failed else Verdict.REFUSED_BY_TFLQ
        return Row(
            model.stem, str(scheme), verdict, 0, f"{error}"[-200:] + (f" | {dump.failed[:90]}" if dump.failed else "")
        )
    if dump.failed:
        said = {**unread_operators(ours[0].main), **departures_of(ours[1])}
        warned = [text for text in said.values() if "fails" in text]
        verdict = Verdict.KNOWN if warned else Verdict.REFUSED_BY_PEER
        return Row(model.stem, str(scheme), verdict, 0, f"{dump.failed[:150]} {'warned: '.join(['', *warned[:1]])}")
    comparison = Comparison.of(dump, ours)
    found = comparison.differences
    if not found:
        return Row(model.stem, str(scheme), Verdict.EQUAL, comparison.checks)
    words = f"{len(found)} differ; " + "; ".join(found if every else found[:1])
    return Row(model.stem, str(scheme), Verdict.DIFFERS, comparison.checks, words)
