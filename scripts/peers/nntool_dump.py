"""What NNTool dumped for one network, and tflq's graph compared with it node by node."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tflq.converters.gap9.emit.hardware import constants_of
from tflq.converters.gap9.operators import FILTERS
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.graph import Affine, Array, Graph, Model, Node
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.gap9.rounding import taken_for

Fields = dict[str, Any]
LAYOUT_ONLY = re.compile(r"_reshape(_\d+)?$|_batch$|_trans(_(in|out))?_?\d*$")
"""Names of nodes that only move data, which tflq need not have."""


@dataclass(frozen=True)
class Scheme:
    """How a network is quantized: "ne16", "sq8", "ne16_w4", "ne16_16", "ne16_mixed" with settings of single layers."""

    engine: str
    weight_bits: int = 8
    feature_bits: int = 8
    settings: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()

    @staticmethod
    def of(text: str, *settings: str) -> Scheme:
        engine, _, variant = text.partition("_")
        bits = int(variant[1:]) if variant.startswith("w") else 8
        return Scheme(engine, bits, 16 if variant == "16" else 8, settings)

    def __str__(self) -> str:
        ends = (
            "_mixed" * bool(self.layers)
            + f"_w{self.weight_bits}" * (self.weight_bits != 8)
            + f"_{self.feature_bits}" * (self.feature_bits != 8)
        )
        return f"{self.engine}{ends}"


@dataclass(frozen=True)
class Dump:
    """NNTool's answer.

    Attributes:
        fields: the JSON: its `nodes` in order of execution.
        arrays: the .npz; empty where NNTool failed.
    """

    fields: Fields
    arrays: Mapping[str, Array]

    @staticmethod
    def file(prefix: Path) -> Path | None:
        """PREFIX.json, or PREFIX.json.gz as golden folders store it."""
        return next((p for p in (Path(f"{prefix}.json"), Path(f"{prefix}.json.gz")) if p.exists()), None)

    @staticmethod
    def read(prefix: Path) -> Dump:
        path = Dump.file(prefix)
        assert path is not None, prefix
        data = path.read_bytes()
        fields = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
        if "failed" in fields:
            return Dump(fields, {})
        with np.load(f"{prefix}.npz") as arrays:
            return Dump(fields, dict(arrays))

    @property
    def failed(self) -> str:
        """NNTool's message where it failed, else ""."""
        return " ".join(str(self.fields.get("failed", "")).split())

    def inputs(self) -> list[Array]:
        """The samples in the file's own quantized values, one array an input."""
        count = int(self.fields["n_inputs"])
        return [self.arrays[f"input#{i}" if i else "input"] for i in range(count)]


def converted(model: Path, scheme: Scheme) -> tuple[Model, Graph]:
    """The model, and its lowered graph for the scheme."""
    target = find_target(f"gap9-{scheme.engine}")
    sets = [f"weight_bits={scheme.weight_bits}"] * (scheme.weight_bits != 8)
    sets += [f"feature_bits={scheme.feature_bits}"] * (scheme.feature_bits != 8) + list(scheme.settings)
    source = read_model(model)
    settings = parse_settings(target.settings, sets, scheme.layers)
    return source, lower(target.quantize(settled_graph(source.main), settings), target.arithmetic)


def _same(a: ArrayLike, b: ArrayLike) -> bool:
    x, y = np.ravel(np.asarray(a)), np.ravel(np.asarray(b))
    fits = x.size == y.size or 1 in (x.size, y.size)
    return bool(fits and x.size and y.size and np.all(x == y))


def _same_type(a: Affine, b: Fields, absolute: float = 0, relative: float = 1e-6) -> bool:
    x, y = np.ravel(a.scale).astype(np.float64), np.ravel(b["scale"]).astype(np.float64)
    close = (x.size == y.size or 1 in (x.size, y.size)) and bool(
        np.all(np.abs(x - y) <= absolute + relative * np.abs(y))
    )
    return close and _same(a.zero_point, b["zero_point"]) and (a.bits, a.signed) == (b["bits"], b["signed"])


def _text(a: Affine) -> str:
    return f"{'int' if a.signed else 'uint'}{a.bits} S={np.ravel(a.scale)[0]:.7g} Z={np.ravel(a.zero_point)[0]}"


def _vendor_text(b: Fields) -> str:
    kind = f"{'int' if b['signed'] else 'uint'}{b['bits']}"
    return f"{kind} S={np.ravel(b['scale'])[0]:.7g} Z={np.ravel(b['zero_point'])[0]}"


def as_read(real: Array, shape: tuple[int, ...]) -> Array:
    """Return [S, N, H, W, C] as NNTool reads it.

    Where its graph takes an input in another order of axes, the peer's script puts the file's values there as they are.
    Of orders that give one shape it is the file's, then channels first.
    """
    _, n, *image = real.shape
    axes = tuple(range(len(image)))
    orders = (axes, (*axes[-1:], *axes[:-1]), *permutations(axes))
    order = next((order for order in orders if tuple(image[a] for a in order) == shape), axes)
    moved: Array = real.reshape(-1, n, *(image[a] for a in order))
    return np.transpose(moved, (0, 1, *(2 + int(a) for a in np.argsort(order))))


@dataclass
class Comparison:
    """NNTool's nodes in order of execution, each beside tflq's; a node of a fusion counts by itself.

    Attributes:
        checks: how many types, constants and tensors were compared.
        differences: of those that differ, layer, what, and both sides.
    """

    dump: Dump
    graph: Graph
    values: Mapping[int, Array]
    constants: Mapping[str, Array]
    checks: int = 0
    differences: list[str] = field(default_factory=list)

    @staticmethod
    def of(dump: Dump, ours: tuple[Model, Graph]) -> Comparison:
        """Run tflq on the dump's samples and compare everything."""
        model, graph = ours
        target = find_target("gap9-ne16")
        names = [node["name"] for node in dump.fields["nodes"] if node["op"] == "input"]
        feeds = []
        for source, wanted, codes, name in zip(model.main.inputs, graph.inputs, dump.inputs(), names, strict=True):
            real: Array = np.asarray(codes, np.float64).reshape(-1, *graph.tensors[wanted].shape)
            tensor = model.main.tensors[source]
            if not tensor.dtype.is_floating:
                real = (real - tensor.affine.zero_point[0]) * np.float64(tensor.affine.scale[0])
            real = as_read(real, dump.arrays[f"tensor/{name}"].shape[1:])
            feeds.append(target.encode(real, graph.tensors[wanted]))
        keep = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
        result = Comparison(dump, graph, Engine(graph).run(feeds, keep), constants_of(graph))
        result._walk()
        return result

    def _check(self, good: bool, layer: str, what: str, note: str = "") -> None:
        self.checks += 1
        if not good:
            self.differences.append(f"{layer}, {what}: {note}")

    def _walk(self) -> None:
        nodes = self.dump.fields["nodes"]
        for index, entry in zip(self.graph.inputs, (n for n in nodes if n["op"] == "input"), strict=True):
            self._check_type(entry["name"], "type", index, entry["quant"]["out_qs"][0])
        for outer in nodes:
            if outer["op"] not in ("constant", "input", "output"):
                members = outer.get("internal") if outer["op"] != "Expression" else None
                for inner in members or [outer]:
                    self._node(outer, inner)
        for i, index in enumerate(self.graph.outputs):
            self._check_tensor(f"graph output {i}", f"output_q#{i}" if i else "output_q", index)

    def _node(self, outer: Fields, inner: Fields) -> None:
        name, quant = inner["name"], inner.get("quant")
        node = self._ours(name)
        if node is None:
            if not LAYOUT_ONLY.search(name) and inner["op"] != "copy":
                self._check(False, name, "node", f"{inner['op']} absent in tflq")
            return
        if quant is None:
            return
        first = next((t for t in node.inputs if t >= 0 and self.graph.tensors[t].quantization is not None), None)
        if node.operator == "expression":
            self._read_types(outer, node, quant)
        elif node.operator == "quantize" and "outside_scale" in node.attributes:
            taken = taken_for(node, self.graph.tensors[node.inputs[0]].affine)
            self._check(_same_type(taken, quant["in_qs"][0]), name, "input type", _text(taken))
        elif quant["in_qs"] and quant["in_qs"][0] and first is not None:
            # Where NNTool types a filter for another input than the one of its fusion, M and N tell which.
            source = outer if "inside_scale" in node.attributes else inner
            self._check_type(name, "input type", first, source["quant"]["in_qs"][0], 1e-8, 1e-5)
        base = f"tensor/{name}" if outer is inner else f"tensor/{outer['name']}//{name}"
        outputs = self._in_their_order(node, quant, base) if node.operator == "expression" else node.outputs
        for k, (index, out) in enumerate(zip(outputs, quant["out_qs"], strict=False)):
            if out:
                self._check_type(name, f"output type {k}", index, out)
        if node.operator in FILTERS:
            self._filter_constants(outer, inner, node)
        else:
            self._other_constants(inner, node)
        for k, index in enumerate(outputs):
            self._check_tensor(name, f"{base}#{k}" if k else base, index)

    def _read_types(self, outer: Fields, node: Node, quant: Fields) -> None:
        """What an expression reads, in whatever order: NNTool's follows no rule that is known."""
        theirs = sorted(_vendor_text(q) for q in quant["in_qs"] if q)
        ours = sorted(_text(self.graph.tensors[t].affine) for t in node.inputs)
        self._check(theirs == ours, f"{outer['name']}, {node.name}", "input types", f"tflq {ours}, NNTool {theirs}")

    def _in_their_order(self, node: Node, quant: Fields, base: str) -> tuple[int, ...]:
        """The outputs of an expression as NNTool has them: its order differs from run to run."""
        left, found = list(node.outputs), []
        for k, out in enumerate(quant["out_qs"]):
            if not left:
                self._check(False, node.name, "outputs", f"NNTool has {len(quant['out_qs'])}")
                break
            values = self.dump.arrays[f"{base}#{k}" if k else base].reshape(-1)
            same = [
                t for t in left if _same_type(self.graph.tensors[t].affine, out) and self.values[t].size == values.size
            ]
            equal = [t for t in same if np.array_equal(self.values[t].reshape(-1), values)]
            equal = equal or [t for t in same if np.array_equal(np.sort(self.values[t], axis=None), np.sort(values))]
            found.append((equal or same or left)[0])
            left.remove(found[-1])
        return tuple(found)

    def _ours(self, name: str) -> Node | None:
        bare = re.sub(r"_trans(_in\d)?_qin", "_qin", name)
        joined = re.sub(r"_trans_in(\d)_qin\d$", r"_fusion_qin\1", name)
        merged = f"{bare[:-6]}_merged_split" if bare.endswith("_split") else f"{bare}_merged"
        return next((n for wanted in (name, bare, merged, joined) for n in self.graph.nodes if n.name == wanted), None)

    def _check_type(
        self, layer: str, what: str, index: int, expected: Fields, absolute: float = 0, relative: float = 1e-6
    ) -> None:
        """An input may differ from what its producer writes by what NNTool takes as equal: 1e-8 + 1e-5 S."""
        tensor = self.graph.tensors[index]
        if not isinstance(tensor.quantization, Affine):
            self._check(False, layer, what, "no type in tflq")
            return
        note = f"tflq {_text(tensor.affine)}, NNTool {_vendor_text(expected)}"
        self._check(_same_type(tensor.affine, expected, absolute, relative), layer, what, note)

    def _check_tensor(self, layer: str, key: str, index: int) -> None:
        if key not in self.dump.arrays or index not in self.values:
            return
        a, b = self.values[index], self.dump.arrays[key]
        if a.size != b.size:
            self._check(False, layer, "tensor", f"shapes {a.shape} {b.shape}")
            return
        d = np.abs(a.ravel().astype(np.int64) - b.ravel().astype(np.int64))
        # Channels first or last: where NNTool holds the same values in another order, the sorted ones agree.
        moved = np.array_equal(np.sort(a.reshape(len(a), -1)), np.sort(b.reshape(len(b), -1)))
        note = f"{np.count_nonzero(d)} of {d.size} elements, up to {d.max()} LSB"
        self._check(bool(moved or not d.any()), layer, "tensor", note)

    def _filter_constants(self, outer: Fields, inner: Fields, node: Node) -> None:
        name, quant = inner["name"], inner["quant"]["mul_biases_q"]
        weights, bias = outer["inputs"][1][0], outer["inputs"][2][0]
        self._check(_same(self.constants[f"{node.name}/multiplier"], quant["value"]), name, "M")
        self._check(_same(self.constants[f"{node.name}/shift"], quant["norm"]), name, "N")
        a, b = self.constants[f"{node.name}/weights"], self.dump.arrays[f"const/{weights}"]
        self._check(a.dtype == b.dtype and np.array_equal(a, b), name, "weights", f"{a.shape} {b.shape}")
        a, b = self.constants[f"{node.name}/bias"], self.dump.arrays[f"const/{bias}"]
        wrong = f"{np.count_nonzero(np.ravel(a) != np.ravel(b))} of {b.size}" if a.size == b.size else "sizes"
        self._check(_same(a, b), name, "bias", wrong)
        types = {n["name"]: n["quant"]["out_qs"][0] for n in self.dump.fields["nodes"] if n["op"] == "constant"}
        self._check(self.graph.tensors[node.inputs[1]].affine.bits == types[weights]["bits"], name, "weight bits")

    def _other_constants(self, inner: Fields, node: Node) -> None:
        name, quant = inner["name"], inner["quant"]
        params: object = node.params
        if inner["op"] in ("add", "sub"):
            self._check(getattr(params, "scaled", None) == quant["scaled_idx"], name, "scaled operand")
            if quant.get("add_bias_offset"):
                self._check(_same(getattr(params, "bias", ()), quant["add_bias_offset"]), name, "bias of Add")
        part: object = getattr(params, "average", params)
        for theirs, ours in (("scale_mul_biases_q", "mul_bias"), ("scale_in_mul_biases_q", "input_mul_bias")):
            found: object = getattr(part, ours, None)
            if quant.get(theirs) and found is not None:
                expected = quant[theirs]
                pair = getattr(found, "multiplier", ()), getattr(found, "shift", ())
                good = _same(pair[0], expected["value"]) and _same(pair[1], expected["norm"])
                self._check(good, name, "M, N", f"tflq {pair}, NNTool {expected['value']}, {expected['norm']}")
