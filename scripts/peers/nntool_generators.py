"""The generators that quantization.json names, against those of the models that NNTool writes for AutoTiler.

    scripts/peer nntool-generators --autotiler GAP_SDK/tools/autotiler_v3 [--networks 20] [--seed 1] [--folder FILES]
        [--schemes ne16 ne16_w? sq8 ne16_16] [--json FILE]

For each layer: name, all parameters, controls. Nodes that only move data are left out, and what NNTool types
differently (scripts/peer nntool tells those).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.campaign import Row, Verdict, find, parser, report
from peers.nntool import _drawn, _environment, _run, _scheme
from peers.nntool_dump import Scheme, converted
from tflq.converters.gap9.emit.generators import Generator, generators_of
from tflq.errors import TflqError
from tflq.graph import Graph

_CONTROL = r'CNN_SetGenCtrl\(&(\w+), "(\w+)", AT_OPT_VAL\((-?\d+)\)\);'
_CALL = re.compile(rf'{_CONTROL}|// generator for (\S+)|^ *(\w+)\("S\d+_[^"]*",?\s*([^;]*)\);', re.M | re.S)
_MOVES = re.compile("Permute|Concat|Transpose|Copy|Split|Repeat")


@dataclass(frozen=True)
class Call:
    """A call of NNTool's model: generator, its parameters behind Name and Ctrl, what its Ctrl sets."""

    name: str
    parameters: tuple[str, ...]
    controls: Mapping[str, int]


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__)
    options.add_argument("--autotiler", type=Path, required=True, help="gap_sdk's tools/autotiler_v3")
    options.add_argument("--schemes", nargs="+", default=("ne16", "ne16_w?", "sq8", "ne16_16"))
    options.add_argument("--folder", type=Path, help="of .tflite files, instead of drawn ones")
    args = options.parse_args(list(arguments))
    args.dumps, args.expressions = None, False
    peer = find("nntool")
    environment = _environment(peer)
    source = environment["NNTOOL_SOURCE"]
    variables = {"PYTHONPATH": source, "NNTOOL_PATH": source, "GAP_SDK_HOME": source}
    variables["TILER_CNN_KERNEL_PATH_SQ8"] = str(args.autotiler / "CNN_Libraries_SQ8")
    with tempfile.TemporaryDirectory() as scratch:
        models = sorted(args.folder.glob("*.tflite")) if args.folder else _drawn(peer, args, Path(scratch))

        def rows() -> Iterator[Row]:
            output = Path(scratch, "Model.c")
            for model in models:
                for text in args.schemes:
                    scheme = _scheme(text, model, False)
                    worker = [Path(__file__).with_name("nntool_model_worker.py"), peer.scripts, model, output]
                    sizes = [scheme.engine, scheme.weight_bits, scheme.feature_bits]
                    _run([environment["NNTOOL_PYTHON"], *worker, *sizes], **variables)
                    yield judged(model, scheme, output.read_text(encoding="utf-8"))

        return report(rows(), args.json)


def calls_of(text: str) -> dict[str, Call]:
    """Return node -> call of a model's text."""
    controls: dict[str, dict[str, int]] = {}
    found, node = {}, ""
    for control, key, value, called, name, parameters in _CALL.findall(text.partition("#define GRAPH")[0]):
        if control:
            controls.setdefault(control, {})[key] = int(value)
        elif called:
            node = called
        else:
            words = [word.strip() for word in parameters.split(",")]
            control = next((word[1:] for word in words if word.startswith("&gen_ctrl")), "")
            found[node] = Call(name, tuple(w for w in words if not w.startswith("&")), controls.get(control, {}))
    return found


def judged(model: Path, scheme: Scheme, text: str) -> Row:
    """The verdict on one network."""
    row = (model.stem, str(scheme))
    try:
        graph = converted(model, scheme)[1]
    except TflqError as error:
        return Row(
            *row, Verdict.REFUSED_BY_BOTH if "// failed" in text else Verdict.REFUSED_BY_TFLQ, 0, str(error)[:150]
        )
    if "// failed" in text:
        silent = [why for why in generators_of(graph).values() if isinstance(why, str) and "no code" in why]
        return Row(*row, Verdict.REFUSED_BY_BOTH if silent else Verdict.REFUSED_BY_PEER, 0, text.strip()[:150])
    ours, theirs = _by_unit(graph), {n: c for n, c in calls_of(text).items() if not _MOVES.search(c.name)}
    names = {re.sub(r"_trans(_in\d)?_qin", "_qin", node): node for node in theirs}
    differ = [n for n in sorted({*ours, *names}) if not _same(ours.get(n), theirs.get(names.get(n, "")))]
    words = (
        f"{len(differ)} differ; {differ[0]}: {ours.get(differ[0])} {theirs.get(names.get(differ[0], ''))}"
        if differ
        else ""
    )
    return Row(*row, Verdict.DIFFERS if differ else Verdict.EQUAL, len(theirs), words)


def _by_unit(graph: Graph) -> dict[str, Generator]:
    units = {node.name: node.attributes.text("fusion", "") or node.name.removesuffix("_merged") for node in graph.nodes}
    return {units[name]: g for name, g in generators_of(graph).items() if isinstance(g, Generator)}


def _same(ours: Generator | None, theirs: Call | None) -> bool:
    if ours is None or theirs is None or ours.name != theirs.name or dict(ours.controls) != dict(theirs.controls):
        return False
    a, b = [str(v) for v in ours.parameters.values()], list(theirs.parameters)
    b = b[len(b) - len(a) :]  # without the 0 for no Ctrl
    if ours.name == "CNN_GlobalPoolAct_SQ8":
        a[1:3], b[1:3] = ([str(int(x[1]) * int(x[2]))] for x in (a, b))
    return a == b
