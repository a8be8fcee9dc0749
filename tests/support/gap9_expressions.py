"""The golden files of NNTool's expressions, each beside what tflq makes of the same model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.data import data_path
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.graph import Array, Graph, Node, Range
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.expressions.kernel import ExpressionParams
from tflq.interpreter.kernels.gap9.expressions.steps import run_steps
from tflq.interpreter.samples import align

Fields = dict[str, Any]


def folder() -> Path:
    """The folder of the golden files."""
    return data_path("cases", "gap9_expressions")


@dataclass
class Counted:
    """What was compared.

    Attributes:
        elements: of tensors.
        inner: integers of operations within expressions.
        differences: what differs, in words.
    """

    elements: int = 0
    inner: int = 0
    differences: list[str] = field(default_factory=list)

    def check(self, what: str, ours: Array, theirs: Array, is_first: bool) -> None:
        """Compare arrays; channels first where the dump has them so."""
        wide = np.broadcast_to(ours, (len(theirs), *ours.shape[1:])) if ours.shape[:1] == (1,) else ours
        a, b = wide.reshape(-1).astype(np.int64), theirs.reshape(-1).astype(np.int64)
        moved = is_first and np.array_equal(np.sort(a), np.sort(b))
        if a.size != b.size or not (moved or np.array_equal(a, b)):
            self.differences.append(what)


@dataclass(frozen=True)
class Case:
    """One dump.

    Attributes:
        entries: its JSON.
        arrays: its .npz.
        graph: tflq's, lowered.
        values: of every tensor of it.
        departures: what the target warns of.
    """

    entries: Fields
    arrays: Mapping[str, Array]
    graph: Graph
    values: Mapping[int, Array]
    departures: Mapping[str, str]

    @staticmethod
    def of(name: str, numerics: str) -> Case:
        """Quantize the model of a dump with the expression matcher on, and run it on the dump's samples."""
        entries = json.loads((folder() / f"{name}.json").read_text(encoding="utf-8"))
        with np.load(folder() / f"{name}.npz") as file:
            arrays = dict(file)
        network, kind, scheme = name.split(".")
        graph = read_model(folder() / f"{network}.{kind}.tflite").main
        if kind == "float":
            graph = with_ranges_of(graph, entries)
        target = find_target(f"gap9-{scheme}")
        settings = parse_settings(target.settings, ["expressions=true", f"numerics={numerics}"], [])
        lowered = lower(target.quantize(graph, settings), "gap9")
        feeds = [
            target.encode(arrays[f"x{i}"].reshape(-1, *lowered.tensors[t].shape), lowered.tensors[t])
            for i, t in enumerate(lowered.inputs)
        ]
        values = dict(Engine(lowered).run(feeds, [*lowered.inputs, *(t for n in lowered.nodes for t in n.outputs)]))
        values |= {t: x.data[None] for t, x in enumerate(lowered.tensors) if x.data is not None}
        return Case(entries, arrays, lowered, values, target.departures(lowered))

    def compared(self) -> Counted:
        """Compare every type, tensor and inner integer."""
        counted = Counted()
        is_first = not self.entries["options"].get("hwc", True)
        for key, fields, tensors in self._places():
            for k, t in enumerate(tensors):
                theirs = self.arrays[f"tensor/{key}#{k}" if k else f"tensor/{key}"]
                counted.elements += theirs.size
                counted.check(f"{key} {k}", self.values[t], theirs, is_first)
                if not self._same_type(t, fields["quant"]["out_qs"][k]):
                    counted.differences.append(f"{key} {k}: type")
            if "expression" in fields:
                self._inner(counted, key, fields, is_first)
        return counted

    def _places(self) -> Iterator[tuple[str, Fields, tuple[int, ...]]]:
        nodes = {node.name: node for node in self.graph.nodes}
        for outer in self.entries["nodes"]:
            if outer["op"] == "input":
                yield outer["name"], outer, (self.graph.inputs[int(outer["name"].rpartition("_")[2]) - 1],)
            for fields in outer.get("internal") or [outer]:
                node = nodes.get(fields["name"])
                key = fields["name"] if fields is outer else f"{outer['name']}//{fields['name']}"
                if node is not None:
                    yield key, fields, node.outputs
                else:
                    assert "Expression" not in fields["op"], key

    def _same_type(self, t: int, theirs: Fields | None) -> bool:
        if theirs is None:
            return True
        ours = self.graph.tensors[t].affine
        near = abs(ours.scale[0] - theirs["scale"][0]) <= 1e-6 * theirs["scale"][0]
        same = (int(ours.zero_point[0]), ours.bits, ours.signed)
        return bool(near and same == (theirs["zero_point"][0], theirs["bits"], theirs["signed"]))

    def _inner(self, counted: Counted, key: str, fields: Fields, is_first: bool) -> None:
        node = next(n for n in self.graph.nodes if n.name == fields["name"])
        theirs = [
            (f"{key}/{assigned['variable']}/{k} {symbol['class']}", self.arrays[place])
            for assigned in fields["expression"]["assignments"]
            for k, symbol in enumerate(assigned["symbols"])
            if symbol["class"] != "Cast" and (place := f"symbol/{key}/{assigned['variable']}/{k}") in self.arrays
        ]
        ours = list(self._written_out(node))
        if len(ours) != len(theirs):
            counted.differences.append(f"{key}: {len(ours)} operations, NNTool has {len(theirs)}")
        for mine, (what, expected) in zip(ours, theirs, strict=False):
            counted.inner += expected.size
            counted.check(what, mine, expected, is_first)

    def _written_out(self, node: Node) -> Iterator[Array]:
        """The results of all operations as NNTool writes them: trees, operands first, what is shared before all."""
        params = node.params
        assert isinstance(params, ExpressionParams)
        found = run_steps(params.steps, align(*(self.values[t] for t in node.inputs)))

        def tree(place: int, stop: set[int]) -> Iterator[Array]:
            if params.steps[place].operation in ("input", "constant"):
                return
            for operand in params.steps[place].operands:
                if operand not in stop:
                    yield from tree(operand, stop)
            yield found[place]

        shared = set(params.shared)
        for place in params.shared:
            yield from tree(place, shared - {place})
        for place in params.results:
            yield from tree(place, shared)


def with_ranges_of(graph: Graph, entries: Fields) -> Graph:
    """The float graph with the ranges that NNTool measured."""
    found: dict[str, tuple[float, float]] = {}
    for outer in entries["nodes"]:
        for fields in outer.get("internal") or [outer]:
            written = next(iter(fields.get("quant", {}).get("out_qs") or ()), None)
            if written and written.get("min"):
                found[fields["name"]] = (written["min"][0], written["max"][0])
            found |= fields.get("expression", {}).get("ranges", {})
        if outer.get("range_out") and outer["range_out"][0]:
            members = [f["name"] for f in outer.get("internal", ())] or [outer["name"]]
            found[members[-1]] = outer["range_out"][0]
            found |= {name: outer["range_out"][0] for name in members if name not in found}
    result = graph.copy()
    for place, t in enumerate(graph.inputs):
        result.tensors[t] = replace(graph.tensors[t], range=_range(found[f"input_{place + 1}"]))
    for index, node in enumerate(graph.nodes):
        name = next((n for n in (f"{node.name}_activation", node.name, f"{node.name}_mul") if n in found), "")
        if not name:
            continue  # a conversion, which the tool removes
        ends = found[name]
        if node.operator == "squared_difference":
            low, high = found[f"{node.name}_sub1"]
            result.nodes[index] = with_attributes(node, difference_range=(low, high))
            ends = (-ends[1], -ends[0])
        result.tensors[node.outputs[0]] = replace(graph.tensors[node.outputs[0]], range=_range(ends))
    return result


def _range(ends: tuple[float, float]) -> Range:
    return Range(np.array([ends[0]], np.float32), np.array([ends[1]], np.float32))
