"""Rules for layers of the Compass IR, beside those for operators of the .tflite (docs/targets/aipu.md#tuning-accuracy).

Their patterns begin with `IR `: `IR 9-13` is a range of layers in the order of the IR, inputs counted; `IR Softmax` a
type, or the method of an Activation; `IR {regex}` a name that the expression matches from its start.

Source: Compass Optimizer, config/cfg_fields.py, PerNodeFieldDict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tflq.converters.aipu.operators import LAYERS
from tflq.converters.aipu.options import LayerOptions, options_of
from tflq.converters.aipu.origin import Origin
from tflq.converters.aipu.tool_config import RULE
from tflq.converters.settings import LayerRule, Settings, Value
from tflq.errors import OptionError
from tflq.graph import Graph


def apart(settings: Settings) -> tuple[Settings, tuple[LayerRule, ...]]:
    """Return the settings for operators of the model, and the rules for layers of the Compass IR."""
    of_layers = tuple(rule for rule in settings.rules if rule.pattern.startswith(RULE))
    return replace(settings, rules=tuple(rule for rule in settings.rules if rule not in of_layers)), of_layers


def with_ir_rules(
    layers: Graph,
    values: Mapping[str, Mapping[str, Value]],
    whole: Mapping[str, Value],
    rules: Sequence[LayerRule],
) -> dict[str, LayerOptions]:
    """Return the options of each layer of the IR, its Input layers too.

    Args:
        layers: the graph of Compass's layers.
        values: of layers by name, as their operators have them.
        whole: of the others.
        rules: for layers of the IR, later ones win.

    Raises:
        OptionError: a rule that matches no layer.
    """
    assert isinstance(layers.extra, Origin)
    kinds = {n.name: {LAYERS[n.operator].type.lower(), n.attributes.text("method", "").lower()} for n in layers.nodes}
    unused, options = set(range(len(rules))), dict[str, LayerOptions]()
    for index, name in enumerate(layers.extra.order):
        found = dict(values.get(name, whole))
        for number, rule in enumerate(rules):
            if _names(rule.pattern.removeprefix(RULE), index, name, kinds.get(name, {"input"})):
                found.update(rule.values)
                unused.discard(number)
        options[name] = options_of(found)
    if unused:
        pattern = rules[min(unused)].pattern
        raise OptionError(f"layer pattern '{pattern}' matches none of the {len(layers.extra.order)} layers of the IR")
    return options


def _names(pattern: str, index: int, name: str, kinds: Collection[str]) -> bool:
    """Whether a pattern means a layer.

    Raises:
        OptionError: no regular expression.
    """
    if pattern.startswith("{"):
        try:
            return re.match(pattern[1:-1], name) is not None
        except re.error as error:
            raise OptionError(f"layer pattern '{RULE}{pattern}': is no regular expression: {error}") from None
    first, dash, last = pattern.partition("-")
    if first.isdecimal() and (last.isdecimal() or not dash):
        return int(first) <= index <= int(last or first)
    return pattern.lower() in kinds
