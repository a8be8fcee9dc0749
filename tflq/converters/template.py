"""A target's settings for every layer as a file to edit: `convert --write-template` writes it, `--template` reads it.

JSON. "settings" hold for the whole graph and "inputs" are the ranges of its inputs; each of "layers" has the complete
settings of one operator of the model and the ranges of what it writes, [minimum, maximum]. A layer left out, a key left
out and a range left out keep what the model and "settings" say. "just_for_display" is not read.

Source of the idea: Compass Optimizer, MODEL_opt_template.json (whitepaper ACN-AWP-1002A, 6.2 and 6.3).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.converters.calibration.ranges import computed_tensors, range_of, ranges_from_quantization, stated_range
from tflq.converters.settings import Setting, Settings, Value
from tflq.errors import FormatError
from tflq.files import read_bytes
from tflq.graph import Graph, Tensor
from tflq.quoting import Json, json_text

VERSION = 1
_MARK = "tflq_template"
_KEYS = {_MARK, "target", "settings", "inputs", "layers"}
_LAYER_KEYS = {"index", "operator", "name", "settings", "ranges", "just_for_display"}

Figures = Mapping[str, Mapping[str, float]]
"""Name of a model's tensor -> figures to show beside its layer."""


@dataclass(frozen=True)
class LayerTemplate:
    """One layer of a template.

    Attributes:
        index: of the operator in the model.
        operator: its name; empty where the file does not say.
        name: its own name; empty where the file does not say.
        values: key -> value.
        ranges: tensor -> minimum and maximum.
    """

    index: int
    operator: str
    name: str
    values: Mapping[str, Value]
    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Template:
    """What a file says.

    Attributes:
        path: of the file, for messages.
        target: that it is for.
        values: key -> value for the whole graph.
        inputs: graph input -> minimum and maximum.
        layers: those that the file lists.
    """

    path: str
    target: str
    values: Mapping[str, Value]
    inputs: Mapping[str, tuple[float, float]]
    layers: tuple[LayerTemplate, ...]

    @property
    def assignments(self) -> tuple[str, ...]:
        """`key=value` for the whole graph, as `parse_settings` takes them."""
        return tuple(f"{key}={_text(value)}" for key, value in self.values.items())

    @property
    def rules(self) -> tuple[str, ...]:
        """`INDEX:key=value,...` for layers whose values are not those of the whole graph."""
        found = []
        for layer in self.layers:
            own = [f"{k}={_text(v)}" for k, v in layer.values.items() if self.values.get(k) != v]
            if own:
                found.append(f"{layer.index}:{','.join(own)}")
        return tuple(found)


def template_bytes(target: str, known: Sequence[Setting], settings: Settings, graph: Graph, figures: Figures) -> bytes:
    """Return the content of a template.

    Args:
        target: name.
        known: the target's keys.
        settings: complete.
        graph: the model's, with the ranges that the target quantized it by.
        figures: to show.
    """
    ranged = ranges_from_quantization(graph)
    changeable = [s.key for s in known if s.per_layer]
    layers: list[Json] = []
    for index, (node, values) in enumerate(zip(graph.nodes, settings.of_layers(graph), strict=True)):
        outputs = [ranged.tensors[t] for t in node.outputs]
        layers.append(
            {
                "index": index,
                "operator": node.operator,
                "name": node.name,
                "settings": {key: values[key] for key in changeable},
                "ranges": _ranges(outputs),
                "just_for_display": {t.name: _finite(figures[t.name]) for t in outputs if t.name in figures},
            }
        )
    inputs = _ranges([ranged.tensors[t] for t in graph.inputs])
    content: Json = {
        _MARK: VERSION,
        "target": target,
        "settings": dict(settings.values),
        "inputs": inputs,
        "layers": layers,
    }
    return (json_text(content, allow_nan=False) + "\n").encode()


def read_template(path: str | os.PathLike[str]) -> Template:
    """Read a template.

    Raises:
        InputError: the file cannot be read.
        FormatError: it is no JSON, or has other keys or types than stated above; the message names the place.
    """
    try:
        content = json.loads(bytes(read_bytes(path)))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is no template: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or content.get(_MARK) != VERSION:
        raise FormatError(
            f"{path}: is no template: it needs '{_MARK}': {VERSION}; `tflq convert --write-template` writes one"
        )
    where = str(path)
    _refuse_unknown(content, _KEYS, where)
    layers = content.get("layers", [])
    if not isinstance(layers, list) or not isinstance(content.get("target"), str):
        raise FormatError(f"{path}: 'layers' must be a list and 'target' the name of a target")
    return Template(
        where,
        content["target"],
        _values(content.get("settings", {}), f"{where}: settings"),
        _limits(content.get("inputs", {}), f"{where}: inputs"),
        tuple(_layer(layer, f"{where}: layers[{i}]") for i, layer in enumerate(layers)),
    )


def with_template_ranges(graph: Graph, template: Template) -> Graph:
    """Return the graph with the template's ranges on its tensors.

    Raises:
        FormatError: the template is of another model: a layer, an operator, a name or a tensor that does not fit.
    """
    result = graph.copy()
    computed = set(computed_tensors(graph))
    names = {graph.tensors[t].name: t for t in graph.inputs}
    _apply(result, names, template.inputs, f"{template.path}: inputs", computed)
    for layer in template.layers:
        where = f"{template.path}: layer {layer.index}"
        if layer.index >= len(graph.nodes):
            raise FormatError(f"{where}: the model has operators 0..{len(graph.nodes) - 1}: it is another model")
        node = graph.nodes[layer.index]
        for stated, found in ((layer.operator, node.operator), (layer.name, node.name)):
            if stated and stated != found:
                raise FormatError(f"{where}: is '{stated}', in the model it is '{found}': it is another model")
        written = {graph.tensors[t].name: t for t in node.outputs}
        _apply(result, written, layer.ranges, where, computed)
    return result


def _apply(
    graph: Graph, names: Mapping[str, int], ranges: Mapping[str, tuple[float, float]], where: str, computed: set[int]
) -> None:
    for name, limits in ranges.items():
        if name not in names or names[name] not in computed:
            raise FormatError(f"{where}: has no tensor '{name}'; it has {', '.join(map(repr, names))}")
        t, given = names[name], range_of(*limits)
        stated = stated_range(graph.tensors[t])
        # What was not edited leaves the tensor as it is: its quantization says more than its range.
        if stated is None or (stated.minimum, stated.maximum) != (given.minimum, given.maximum):
            graph.tensors[t] = replace(graph.tensors[t], range=given)


def _ranges(tensors: Sequence[Tensor]) -> dict[str, Json]:
    return {
        t.name: [float(t.range.minimum.min()), float(t.range.maximum.max())]
        for t in tensors
        if t.range is not None and t.range.minimum.size
    }


def _finite(figures: Mapping[str, float]) -> dict[str, Json]:
    return {key: value if math.isfinite(value) else str(value) for key, value in figures.items()}


def _layer(content: object, where: str) -> LayerTemplate:
    if not isinstance(content, dict) or not _is_index(content.get("index")):
        raise FormatError(f"{where}: needs an 'index', the number of the operator")
    _refuse_unknown(content, _LAYER_KEYS, where)
    words = [content.get(key, "") for key in ("operator", "name")]
    if not all(isinstance(word, str) for word in words):
        raise FormatError(f"{where}: 'operator' and 'name' are words")
    values = _values(content.get("settings", {}), f"{where}.settings")
    return LayerTemplate(content["index"], words[0], words[1], values, _limits(content.get("ranges", {}), where))


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _values(content: object, where: str) -> dict[str, Value]:
    if not isinstance(content, dict) or not all(isinstance(v, (bool, int, float, str)) for v in content.values()):
        raise FormatError(f"{where}: allowed is {{key: value}} with numbers, words, true and false")
    return content


def _limits(content: object, where: str) -> dict[str, tuple[float, float]]:
    if not isinstance(content, dict):
        raise FormatError(f"{where}: ranges are {{tensor: [minimum, maximum]}}")
    found = {}
    for name, pair in content.items():
        numbers = [x for x in pair if _is_finite(x)] if isinstance(pair, list) else []
        if len(numbers) != 2 or len(pair) != 2 or numbers[0] > numbers[1]:
            raise FormatError(f"{where}: range of '{name}' is {pair}; allowed are two finite numbers that rise")
        found[name] = (float(numbers[0]), float(numbers[1]))
    return found


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _refuse_unknown(content: Mapping[str, object], known: set[str], where: str) -> None:
    unknown = sorted(content.keys() - known)
    if unknown:
        raise FormatError(f"{where}: unknown key '{unknown[0]}'; known are {', '.join(sorted(known))}")


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
