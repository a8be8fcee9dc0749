"""ai-edge-quantizer against target tflite: every constant, scale, zero point and operator of what both write.

    scripts/peer ai-edge-quantizer [--networks 17] [--seed 1] [--json FILE] [--recipes NAME,FILE.json,...]
                                   [--files MODEL.tflite ...] [--samples 4]

The package is in a virtual environment of its own, TFLQ_PEERS/ai_edge_quantizer/venv, with ai-edge-quantizer 0.10.0.
Networks are Keras' (keras_networks.py, and dense layers wide enough for blocks), converted as float; or files are
named, of which both sides take the float network as tflq writes it. Recipes are all that have a name. Static ones take
the ranges that the package's calibrator found: how those come about is another question (docs/tflite_target.md). Where
nothing differs, LiteRT runs tflq's file, and every tensor of integers is compared with tflq's own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from peers.campaign import Row, Verdict, parser, report
from tflq.analysis.known_differences import rows_of
from tflq.analysis.oracle import Oracle
from tflq.converters.calibration import parse_ranges, with_ranges
from tflq.converters.settings import parse_settings
from tflq.converters.settled import dequantized, settled_graph
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.converters.tflite_quantiser import TFLITE
from tflq.converters.tflite_quantiser.recipes.files import NAMED, recipe_of
from tflq.converters.tflite_quantiser.recipes.plan import LARGER
from tflq.converters.tflite_quantiser.recipes.rules import GPTQ, NO_QUANTIZE, OSCAR, Rule, Widths
from tflq.errors import TflqError
from tflq.graph import ABSENT, Affine, Array, Blockwise, DType, Graph, Model, Signature
from tflq.interpreter import Engine


def main(arguments: Sequence[str]) -> int:
    options = parser(__doc__, networks=17)
    options.add_argument(
        "--recipes", default=",".join(NAMED), help="names and files, with commas (all that have a name)"
    )
    options.add_argument("--files", type=Path, nargs="*", default=[], help="models in place of drawn networks")
    options.add_argument("--table", action="store_true", help="print a table of recipes by networks, too")
    options.add_argument("--samples", type=int, default=4, help="that calibrate (4)")
    args = options.parse_args(list(arguments))
    with tempfile.TemporaryDirectory() as folder, Oracle() as oracle:
        drawn = _drawn(args.networks, args.seed, Path(folder))
        networks = _in_float(args.files, Path(folder)) if args.files else drawn
        judge = Judge(_started(), oracle, Path(folder), args.recipes.split(","))
        rows: list[Row] = []
        found = chain.from_iterable(judge.rows(name, path, args) for name, path in networks)
        status = report(_kept(found, rows), args.json)
    if args.table:
        print("\n".join(_table(rows)))
    return status


def _kept(rows: Iterable[Row], into: list[Row]) -> Iterator[Row]:
    for row in rows:
        into.append(row)
        yield row


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a row for each recipe in Markdown: checks that differ, of how many, for each network."""
    networks = list(dict.fromkeys(row.network for row in rows))
    yield f"| recipe | {' | '.join(networks)} |"
    yield "|---" * (len(networks) + 1) + "|"
    for recipe in dict.fromkeys(row.scheme for row in rows):
        cells = []
        for row in (row for row in rows if row.scheme == recipe):
            found = f"0 of {row.checks}"
            named = {Verdict.EQUAL: found, Verdict.KNOWN: f"{found}; {row.words.partition(':')[0]}"}
            cells.append(named.get(row.verdict, row.verdict.value))
        yield f"| `{recipe}` | {' | '.join(cells)} |"


def _started() -> subprocess.Popen[str]:
    peers = os.environ.get("TFLQ_PEERS", "")
    python = Path(peers, "ai_edge_quantizer", "venv", "bin", "python")
    if not peers or not python.is_file():
        print(f"TFLQ_PEERS: {peers or 'not set'}: has no ai_edge_quantizer/venv; make it with python -m venv, and "
              "install ai-edge-quantizer==0.10.0 there", file=sys.stderr)  # fmt: skip
        raise SystemExit(2)
    worker = Path(__file__).with_name("ai_edge_quantizer_worker.py")
    return subprocess.Popen([python, worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)  # fmt: skip


def _in_float(files: Sequence[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    for path in files:
        written = folder / path.name
        model = dequantized(read_model(path))
        if not model.signatures:  # without one the package does not calibrate
            tensors = model.main.tensors
            names = ({tensors[t].name: t for t in ends} for ends in (model.main.inputs, model.main.outputs))
            model = replace(model, signatures=[Signature("serving_default", 0, *names)])
        written.write_bytes(model_to_bytes(model))
        yield path.stem, written


def _drawn(count: int, seed: int, folder: Path) -> Iterator[tuple[str, Path]]:
    from peers.keras_networks import FAMILIES, converted, draw, keras, wide  # needs tensorflow

    families = (wide, *FAMILIES)
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        keras().utils.clear_session()
        family = families[index % len(families)]
        path = folder / f"{family.__name__}_{seed}_{index}.tflite"
        path.write_bytes(converted(draw(rng, family), rng, False))
        yield path.stem, path


@dataclass
class Judge:
    """Both quantisers, and TFLite.

    Attributes:
        worker: the package's process.
        oracle: TFLite.
        folder: for files.
        recipes: names and files.
    """

    worker: subprocess.Popen[str]
    oracle: Oracle
    folder: Path
    recipes: Sequence[str]

    def rows(self, name: str, path: Path, args: object) -> Iterator[Row]:
        """Yield a row for each recipe."""
        model = read_model(path)
        seed, count = int(getattr(args, "seed")), int(getattr(args, "samples"))  # noqa: B009
        samples = _samples(model.main, np.random.default_rng([seed, 99]), count)
        named: dict[str, Any] = {model.main.tensors[t].name: x for t, x in samples.items()}
        np.savez(self.folder / "samples.npz", **named)
        for recipe in self.recipes:
            yield self._row(name, path, recipe, model, list(samples.values()))

    def _row(self, name: str, path: Path, recipe: str, model: Model, samples: list[Array]) -> Row:
        rules = recipe_of(recipe)
        needs = any(rule.config.activations is not None or rule.algorithm in (GPTQ, OSCAR) for rule in rules)
        error = self._ask(path, recipe, rules, needs)
        try:
            found, notes = self._ours(model, recipe, needs and error is None)
        except TflqError as refusal:
            verdict = Verdict.REFUSED_BY_TFLQ if error is None else Verdict.REFUSED_BY_BOTH
            return Row(name, recipe, verdict, 0, f"{str(refusal)[:120]}; peer: {str(error)[:100]}")
        if error is not None:
            return Row(name, recipe, Verdict.REFUSED_BY_PEER, 0, error[:160])
        theirs = model_from_bytes((self.folder / "theirs.tflite").read_bytes(), "theirs")
        compared = Comparison(settled_graph(model_from_bytes(found).main), settled_graph(theirs.main), notes)
        if compared.words:
            return Row(name, recipe, Verdict.DIFFERS, compared.checks, compared.words)
        row = self._run(Row(name, recipe, Verdict.EQUAL, compared.checks), found, samples)
        if notes and row.verdict is Verdict.EQUAL:
            return replace(
                row, verdict=Verdict.KNOWN, words=f"{len(notes)} layer{'s' * (len(notes) > 1)} apart: {LARGER}"
            )
        return row

    def _ask(self, path: Path, recipe: str, rules: Sequence[Rule], needs: bool) -> str | None:
        job = {
            "model": str(path), "recipe": Path(recipe).name, "rules": [as_saved(rule) for rule in rules],
            "samples": str(self.folder / "samples.npz") if needs else None,
            "out": str(self.folder / "theirs.tflite"), "calibration": str(self.folder / "calibration.json"),
        }  # fmt: skip
        sent, answered = cast("IO[str]", self.worker.stdin), cast("IO[str]", self.worker.stdout)
        sent.write(json.dumps(job) + "\n")
        sent.flush()
        answer: str | None = json.loads(answered.readline())["error"]
        return answer

    def _ours(self, model: Model, recipe: str, is_calibrated: bool) -> tuple[bytes, set[str]]:
        graph = settled_graph(model.main)
        if is_calibrated:
            file = self.folder / "calibration.json"
            graph = with_ranges(graph, parse_ranges(file.read_text("utf-8"), file.name), file.name)
        quantised = TFLITE.quantise(graph, parse_settings(TFLITE.settings, [f"recipe={recipe}"]))
        (content,) = TFLITE.emit(quantised, model).values()
        noted = (node for node in quantised.nodes if node.attributes.text("engine_reason", "") == LARGER)
        return content, {quantised.tensors[node.outputs[0]].name for node in noted}

    def _run(self, row: Row, content: bytes, samples: list[Array]) -> Row:
        """Run tflq's file in TFLite and in tflq; a tensor of integers that differs is a difference."""
        graph = model_from_bytes(content).main
        inputs = [
            TFLITE.encode(x, graph.tensors[t]) if isinstance(graph.tensors[t].quantisation, Affine) else x
            for x, t in zip(samples, graph.inputs, strict=True)
        ]
        computed = [t for node in graph.nodes for t in node.outputs]
        try:
            ours, theirs = Engine(graph).run(inputs, computed), self.oracle.run(content, inputs).tensors
        except TflqError as error:
            return Row(row.network, row.scheme, Verdict.EQUAL, row.checks, f"not run: {str(error)[:120]}")
        for t in computed:
            tensor = graph.tensors[t]
            if t not in theirs or tensor.dtype.is_floating:
                continue
            if not np.array_equal(ours[t], theirs[t]):
                node = next(n for n in graph.nodes if t in n.outputs)
                known = any(rows_of(node.operator, label) for label in ("int8", "int16"))  # docs/operators.md
                words = f"runs differently at '{tensor.name}', {node.operator}"
                return Row(row.network, row.scheme, Verdict.KNOWN if known else Verdict.DIFFERS, row.checks, words)
        return row


def _samples(graph: Graph, rng: np.random.Generator, count: int) -> dict[int, Array]:
    found: dict[int, Array] = {}
    for t in graph.inputs:
        tensor = graph.tensors[t]
        shape = (count, *tensor.shape)
        if tensor.dtype is DType.FLOAT32:
            found[t] = rng.standard_normal(shape).astype(np.float32)
        else:
            found[t] = rng.integers(0, 2, shape).astype(tensor.dtype.storage)
    return found


def as_saved(rule: Rule) -> dict[str, object]:
    """Return a rule as the package saves it."""
    config = rule.config
    saved: dict[str, object] = {"regex": rule.regex, "operation": rule.operation, "algorithm_key": rule.algorithm}
    if rule.algorithm != NO_QUANTIZE:
        parts = {"activation_tensor_config": config.activations, "weight_tensor_config": config.weights}
        saved["op_config"] = {
            **{name: _saved_widths(widths) for name, widths in parts.items() if widths is not None},
            "compute_precision": "INTEGER" if config.is_integer else "FLOAT",
            "explicit_dequantize": not config.is_integer,
            "min_weight_elements": config.least_elements,
        }
    return saved


def _saved_widths(widths: Widths) -> dict[str, object]:
    saved: dict[str, object] = {"num_bits": widths.bits, "symmetric": widths.symmetric, "dtype": widths.dtype,
                                "granularity": widths.granularity}  # fmt: skip
    return {**saved, "algorithm_params": {"max_hadamard_size": widths.most_rotated}} if widths.most_rotated else saved


class Comparison:
    """Two graphs from their outputs up: operators, attributes, types, quantisations and constants.

    Args:
        ours: one.
        theirs: the other.
        apart: tensors whose layers have weights and bias of their own on purpose.

    Attributes:
        checks: tensors and nodes compared.
        words: what differs first; empty where nothing does.
    """

    def __init__(self, ours: Graph, theirs: Graph, apart: Collection[str] = ()) -> None:
        self._sides, self._apart = (ours, theirs), apart
        self._made = tuple({t: node for node in graph.nodes for t in node.outputs} for graph in self._sides)
        self._seen: set[tuple[int, int]] = set()
        self.checks, self.words = 0, ""
        if len(ours.outputs) != len(theirs.outputs):
            self.words = "another number of outputs"
        for pair in zip(ours.outputs, theirs.outputs, strict=False):
            self._tensors(*pair)

    def _tensors(self, first: int, second: int) -> None:
        waiting = [(first, second)]
        while waiting and not self.words:
            a, b = waiting.pop()
            if (a, b) in self._seen:
                continue
            self._seen.add((a, b))
            self.checks += 1
            self.words = self._differ(a, b)
            nodes = [made.get(t) for made, t in zip(self._made, (a, b), strict=True)]
            if self.words or nodes[0] is None or nodes[1] is None:
                continue
            one, two = nodes[0], nodes[1]
            is_apart = self._sides[0].tensors[a].name in self._apart
            missing = max(len(one.inputs), len(two.inputs))
            pairs = zip(*(((*n.inputs, *[ABSENT] * missing)[:missing]) for n in (one, two)), strict=True)
            for x, y in pairs:
                if (x == ABSENT) != (y == ABSENT):
                    self.words = f"{one.name}: an input is there on one side only"
                elif x != ABSENT and not (is_apart and self._sides[0].tensors[x].is_constant):
                    waiting.append((x, y))

    def _differ(self, a: int, b: int) -> str:
        x, y = (graph.tensors[t] for graph, t in zip(self._sides, (a, b), strict=True))
        here = f"'{x.name}'"
        if x.dtype is not y.dtype:
            return f"{here}: {x.dtype.value}, there {y.dtype.value}"
        words = self._quantisations(a, b)
        if words:
            return f"{here}: {words}"
        if (x.data is None) != (y.data is None):
            return f"{here}: constant on one side only"
        if x.data is not None and y.data is not None:
            same = x.data.shape == y.data.shape and x.data.tobytes() == y.data.tobytes()
            return "" if same else f"{here}: {np.count_nonzero(x.data != y.data)} of {x.data.size} values differ"
        one, two = (made.get(t) for made, t in zip(self._made, (a, b), strict=True))
        if one is None or two is None:
            return "" if one is two else f"{here}: an input of the graph on one side only"
        if one.operator != two.operator:
            return f"{here}: {one.operator}, there {two.operator}"
        mine = {k: v for k, v in one.attributes.items() if k not in ("engine", "engine_reason")}
        return "" if mine == dict(two.attributes.items()) else f"{here}: {mine}, there {dict(two.attributes.items())}"

    def _quantisations(self, a: int, b: int) -> str:
        x, y = (graph.tensors[t].quantisation for graph, t in zip(self._sides, (a, b), strict=True))
        if isinstance(x, Affine) and isinstance(y, Affine):
            for what, p, q in (("scale", x.scale, y.scale), ("zero point", x.zero_point, y.zero_point)):
                if not np.array_equal(p, q):
                    return f"{what} {p.ravel()[:2]}, there {q.ravel()[:2]} ({p.size}, {q.size})"
            return "" if x.axis == y.axis or x.scale.size == 1 else f"axis {x.axis}, there {y.axis}"
        if isinstance(x, Blockwise) and isinstance(y, Blockwise):
            if x.block_size != y.block_size:
                return f"blocks of {x.block_size}, there {y.block_size}"
            held = (self._sides[0].tensors[x.scales].data, self._sides[1].tensors[y.scales].data)
            return "" if np.array_equal(np.asarray(held[0]), np.asarray(held[1])) else "scales of blocks differ"
        return "" if x is None and y is None else f"{type(x).__name__}, there {type(y).__name__}"
