"""Settings of targets: typed `key=value` pairs for a whole graph, and overrides for single layers.

A target declares them as the fields of a frozen dataclass; what users ask for comes back as such records:

    @dataclass(frozen=True)
    class Options:
        weight_bits: int = key(8, "bits of weights", minimum=2, maximum=8)

    SETTINGS = settings_of(Options)
    options = read_options(Options, graph, settings)  # options.whole, options.layers["CONV_2D_0_1"]

`settings_file.py` reads and writes settings as a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from tflq.errors import OptionError
from tflq.graph import Graph
from tflq.graph.layer_names import matches_layer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Value = bool | int | float | str
Record = TypeVar("Record", bound="DataclassInstance")
V = TypeVar("V", bound=bool | int | float | str)

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


@dataclass(frozen=True)
class Setting:
    """One key that a target knows; the type of its default is its type.

    Attributes:
        key: as the user writes it.
        default: value where nothing is said; true or false, a whole number, a number, or a word.
        help: one line: what it changes.
        choices: the values that are allowed; empty where `minimum` and `maximum` say it.
        minimum: smallest number.
        maximum: largest number.
        per_layer: whether a layer can override it.
    """

    key: str
    default: Value
    help: str
    choices: tuple[Value, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    per_layer: bool = True

    @property
    def allowed(self) -> str:
        """The allowed values in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if self.choices:
            return ", ".join(str(c) for c in self.choices)
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        kind = {int: "a whole number", float: "a number", str: "a word"}[type(self.default)]
        stated = " and ".join(f"{name} {bound}" for name, bound in bounds.items() if bound is not None)
        return f"{kind}, {stated}" if stated else kind

    def parse(self, text: str) -> Value:
        """Return the value that a text stands for.

        Raises:
            OptionError: another type, or outside the limits.
        """
        value = self._read(text.strip())
        low = self.minimum is not None and not isinstance(value, (bool, str)) and value < self.minimum
        high = self.maximum is not None and not isinstance(value, (bool, str)) and value > self.maximum
        if low or high or (self.choices and value not in self.choices):
            raise self._refused(text)
        return value

    def _read(self, text: str) -> Value:
        if isinstance(self.default, bool):
            if text.lower() in _TRUE + _FALSE:
                return text.lower() in _TRUE
            raise self._refused(text)
        try:
            return type(self.default)(text)
        except ValueError:
            raise self._refused(text) from None

    def _refused(self, text: str) -> OptionError:
        return OptionError(f"{self.key}={text}: allowed is {self.allowed}")


@dataclass(frozen=True)
class LayerRule:
    """Values for the layers that a pattern names.

    Attributes:
        pattern: an operator's index ("3") or a range of them ("3-7", both included), a name or a glob of names
            ("CONV_2D_0_*"), or an operator ("conv_2d").
        values: key -> value.
    """

    pattern: str
    values: Mapping[str, Value]

    def matches(self, index: int, name: str, operator: str) -> bool:
        """Whether the rule is for this layer; case counts in names only."""
        return matches_layer(self.pattern, index, name, operator)


@dataclass(frozen=True)
class Settings:
    """What the user asked of a target; complete: every key of the target has a value.

    Attributes:
        values: key -> value for the whole graph.
        rules: overrides in the order given; later ones win.
    """

    values: Mapping[str, Value]
    rules: tuple[LayerRule, ...] = field(default=())

    def names(self, graph: Graph, index: int, keys: Iterable[str]) -> bool:
        """Return whether a rule of the user gives one of these keys to a node."""
        node, wanted = graph.nodes[index], set(keys)
        matching = (rule for rule in self.rules if rule.matches(index, node.name, node.operator))
        return any(wanted & rule.values.keys() for rule in matching)

    def of_layers(self, graph: Graph) -> tuple[Mapping[str, Value], ...]:
        """Return the complete values of each node.

        Raises:
            OptionError: a rule that matches no node.
        """
        unused = set(range(len(self.rules)))
        layers = []
        for index, node in enumerate(graph.nodes):
            values = dict(self.values)
            for number, rule in enumerate(self.rules):
                if rule.matches(index, node.name, node.operator):
                    values.update(rule.values)
                    unused.discard(number)
            layers.append(values)
        if unused:
            pattern = self.rules[min(unused)].pattern
            names = ", ".join(node.name for node in graph.nodes[:3])
            raise OptionError(
                f"layer pattern '{pattern}' matches no operator; give an index 0..{len(graph.nodes) - 1}, a range "
                f"such as 0-2, a name such as {names}, a glob of names, or an operator such as "
                f"{graph.nodes[0].operator}"
                if graph.nodes
                else f"layer pattern '{pattern}' matches no operator: the graph has none"
            )
        return tuple(layers)


def parse_settings(known: Sequence[Setting], assignments: Iterable[str] = (), layers: Iterable[str] = ()) -> Settings:
    """Read `key=value` texts and `PATTERN:key=value` texts.

    Args:
        known: the target's keys.
        assignments: for the whole graph.
        layers: for single layers; several pairs for one pattern are separated by commas.

    Raises:
        OptionError: a text of another form, an unknown key, or a value outside its limits.
    """
    table = {setting.key: setting for setting in known}
    values = {setting.key: setting.default for setting in known}
    for text in assignments:
        values.update([_pair(text, table)])
    return Settings(values, tuple(_rule(text, table) for text in layers))


def _rule(text: str, table: Mapping[str, Setting]) -> LayerRule:
    pattern, colon, pairs = text.partition(":")
    if not colon or not pattern.strip():
        raise OptionError(f"layer '{text}': allowed is PATTERN:key=value, such as 0:use_ne16=false")
    values = dict(_pair(pair, table) for pair in pairs.split(","))
    fixed = [key for key in values if not table[key].per_layer]
    if fixed:
        raise OptionError(f"layer '{text}': {fixed[0]} holds for the whole graph; use --set {fixed[0]}=...")
    return LayerRule(pattern.strip(), values)


def _pair(text: str, table: Mapping[str, Setting]) -> tuple[str, Value]:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals:
        raise OptionError(f"'{text}': allowed is key=value; keys are {', '.join(table)}")
    if key not in table:
        raise OptionError(f"unknown key '{key}'; known are {', '.join(table)}")
    return key, table[key].parse(value)


@dataclass(frozen=True)
class Options(Generic[Record]):
    """What was requested of a target, as records of its own type.

    Attributes:
        whole: of the graph.
        layers: name of a node -> of that node.
    """

    whole: Record
    layers: Mapping[str, Record]

    def of(self, name: str) -> Record:
        """Return those of a node, or of the graph where a node of that name is not the user's."""
        return self.layers.get(name, self.whole)


def key(
    default: V,
    help: str,  # noqa: A002  # as in Setting
    choices: tuple[V, ...] = (),
    minimum: int | None = None,
    maximum: int | None = None,
    *,
    per_layer: bool = True,
    name: str = "",
) -> V:
    """Declare a field of an options record as a key; `name` where the user writes another word than the field's."""
    setting = Setting(name, default, help, choices, minimum, maximum, per_layer)
    return field(default=default, metadata={"setting": setting})


def settings_of(record: type[DataclassInstance], **defaults: Value) -> tuple[Setting, ...]:
    """Return the keys that a record declares; `defaults` replaces those of single ones."""
    declared = (replace(f.metadata["setting"], key=_key_of(f)) for f in fields(record) if "setting" in f.metadata)
    return tuple(replace(setting, default=defaults.get(setting.key, setting.default)) for setting in declared)


def read_options(record: type[Record], graph: Graph, settings: Settings) -> Options[Record]:
    """Return the settings of a graph and of each of its nodes as records.

    Raises:
        OptionError: a layer pattern that matches nothing.
    """
    names = {f.name: _key_of(f) for f in fields(record) if "setting" in f.metadata}
    make = cast("Callable[..., Record]", record)

    def read(values: Mapping[str, Value]) -> Record:
        return make(**{name: values[found] for name, found in names.items()})

    layers = zip(graph.nodes, settings.of_layers(graph), strict=True)
    return Options(read(settings.values), {node.name: read(values) for node, values in layers})


def _key_of(declared: Field[object]) -> str:
    found: Setting = declared.metadata["setting"]
    return found.key or declared.name


@dataclass(frozen=True)
class SettingsFile:
    """Content of a file of settings.

    Attributes:
        target: Name of the target.
        assignments: `key=value` for the whole graph.
        layers: `PATTERN:key=value,...` for single layers; later rules win.
        calibration: Options of the calibration, in files of a vendor's tool only: strategy, batch_size, momentum,
            bins, samples.
        ignored: Lines of the file that have no effect here, in files of a vendor's tool only.
    """

    target: str
    assignments: tuple[str, ...]
    layers: tuple[str, ...]
    calibration: Mapping[str, Value] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
