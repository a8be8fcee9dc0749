"""The golden files of GAP9: what the vendor's tool computed, node by node."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.support.data import data_path
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.graph import Array, Graph, Model, Node
from tflq.interpreter import Engine, lower

CASES = [
    (model, scheme)
    for model in ("concat", "pool", "kws_ref_model", "eltwise", "mloss")
    for scheme in ("ne16", "sq8", *(["ne16_all"] if model == "kws_ref_model" else []))
]


@dataclass(frozen=True)
class GoldenNode:
    """One node of a golden file.

    Attributes:
        name: <TFLITE_OP>_<subgraph>_<index>, with suffixes.
        operator: the vendor's name.
        fields: the whole entry.
        outer: the fusion that holds it, or itself.
    """

    name: str
    operator: str
    fields: dict[str, Any]
    outer: dict[str, Any]

    @property
    def tensor_key(self) -> str:
        """Key of its output in the .npz."""
        if self.outer is self.fields:
            return f"tensor/{self.name}"
        return f"tensor/{self.outer['name']}//{self.name}"


@dataclass(frozen=True)
class Golden:
    """One golden file beside what tflq makes of the same model.

    Attributes:
        entries: the JSON.
        arrays: the .npz.
        model: the .tflite.
        graph: tflq's graph, lowered.
        values: every computed tensor of it.
    """

    entries: dict[str, Any]
    arrays: dict[str, Array]
    model: Model
    graph: Graph
    values: dict[int, Array]

    def nodes(self) -> Iterator[GoldenNode]:
        """Yield the nodes that compute, those inside fusions instead of the fusions."""
        for outer in self.entries["nodes"]:
            if outer["op"] not in ("constant", "input", "output"):
                for fields in outer.get("internal") or [outer]:
                    yield GoldenNode(fields["name"], fields["op"], fields, outer)

    def ours(self, name: str) -> Node:
        """Return tflq's node of the same name."""
        return next(n for n in self.graph.nodes if n.name == name)

    def constant_type(self, name: str) -> dict[str, Any]:
        """Return the type of a constant."""
        found = next(e for e in self.entries["nodes"] if e["name"] == name)
        return dict(found["quant"]["out_qs"][0])


def quantized(model: Model, target: str, sets: Sequence[str] = (), layers: Sequence[str] = ()) -> Graph:
    """Return a model's main graph for a target."""
    found = find_target(target)
    return found.quantize(model.main, parse_settings(found.settings, sets, layers))


def encoded(model: Model, graph: Graph, codes: Array, target: str = "gap9-sq8") -> Array:
    """Return quantized values of the model's input [S, *shape] in the encoding of a target's graph."""
    source, wanted = model.main.tensors[model.main.inputs[0]], graph.tensors[graph.inputs[0]]
    real = (codes.astype(np.float64) - source.affine.zero_point[0]) * np.float64(source.affine.scale[0])
    return find_target(target).encode(real, wanted)


@cache
def golden(name: str, scheme: str) -> Golden:
    """Read a golden file and run the model as tflq quantizes it."""
    folder = data_path("golden", "gap9")
    path = data_path("models", f"{name}.tflite") if name == "kws_ref_model" else folder / f"{name}.tflite"
    entries = json.loads((folder / f"{name}.{scheme}.json").read_text(encoding="utf-8"))
    with np.load(folder / f"{name}.{scheme}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    model = read_model(path)
    target = "gap9-sq8" if scheme == "sq8" else "gap9-ne16"
    layers = ["0:use_ne16=false"] if (name, scheme) == ("kws_ref_model", "ne16") else []
    graph = lower(quantized(model, target, layers=layers), "gap9")
    shape = model.main.tensors[model.main.inputs[0]].shape
    codes = encoded(model, graph, arrays["input"].reshape(-1, *shape), target)
    keep = [*graph.inputs, *(t for node in graph.nodes for t in node.outputs)]
    return Golden(entries, arrays, model, graph, Engine(graph).run([codes], keep))
