"""A recipe: rules of a regular expression over the names that a node writes, an operator, an algorithm and widths.

Source: ai-edge-quantizer 0.10 (Apache-2.0), recipe_manager.py and qtyping.py: which of several rules counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tflq.errors import OptionError

ANY = "*"
NO_QUANTIZE = "no_quantize"
MIN_MAX = "min_max_uniform_quantize"
FLOAT_CASTING = "float_casting"
OCTAV = "OCTAV"
MSE = "MSE"
GPTQ = "GPTQ"
OSCAR = "OSCAR"
HADAMARD = "DECOMPOSED_HADAMARD_ROTATION"

TENSORWISE = "TENSORWISE"
CHANNELWISE = "CHANNELWISE"
BLOCKS = {f"BLOCKWISE_{size}": size for size in (32, 64, 128, 256)}


@dataclass(frozen=True)
class Widths:
    """How tensors of one kind are quantised.

    Attributes:
        bits: of a quantized value.
        symmetric: whether the zero point is 0.
        granularity: one scale a tensor, a channel or a block: TENSORWISE, CHANNELWISE, BLOCKWISE_32 and so on.
        dtype: INT, UINT or FLOAT.
        most_rotated: largest size of a Hadamard matrix; 0 for no limit.
    """

    bits: int
    symmetric: bool = True
    granularity: str = TENSORWISE
    dtype: str = "INT"
    most_rotated: int = 0

    @property
    def block_size(self) -> int:
        """Elements that share a scale; 0 where there are no blocks."""
        return BLOCKS.get(self.granularity, 0)


@dataclass(frozen=True)
class Config:
    """What a rule does to a node.

    Attributes:
        activations: how its inputs and outputs are quantised; None leaves them float32.
        weights: how its constant weights are quantised.
        is_integer: whether it computes with integers; its weights become float32 by a DEQUANTIZE where it does not.
        least_elements: weights of fewer elements stay float32.
    """

    activations: Widths | None = None
    weights: Widths | None = None
    is_integer: bool = False
    least_elements: int = 0

    @property
    def kind(self) -> str:
        """The target's word for it: int8, int16x8, hybrid or weights."""
        if self.activations is not None:
            return "int16x8" if self.activations.bits == 16 else "int8"
        return "hybrid" if self.is_integer else "weights"


@dataclass(frozen=True)
class Rule:
    """One entry of a recipe.

    Attributes:
        regex: searched in the scope of a node: the names of the tensors that it writes, a ";" behind each.
        operation: ai-edge-quantizer's name of an operator, or "*".
        algorithm: its name of what finds scales and quantized values.
        config: the widths.
    """

    regex: str
    operation: str
    algorithm: str
    config: Config = Config()


def in_order(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules as they are asked.

    Rules of one expression stand together where the first of them stood. "*" replaces all of its expression before it,
    a rule for an operator the one of the same expression and operator.

    Raises:
        OptionError: something that is no regular expression.
    """
    scopes: dict[str, list[Rule]] = {}
    for rule in rules:
        try:
            re.compile(rule.regex)
        except re.error as error:
            raise OptionError(f"recipe: '{rule.regex}' is no regular expression: {error}") from None
        known = scopes.setdefault(rule.regex, [])
        if rule.operation == ANY:
            known[:] = [rule]
            continue
        places = [i for i, other in enumerate(known) if other.operation == rule.operation]
        if places:
            known[places[0]] = rule
        else:
            known.append(rule)
    return [rule for known in scopes.values() for rule in known]


def matching(rules: Sequence[Rule], operation: str, scope: str) -> list[Rule]:
    """Return the ordered rules that are for a node; the last one that can be carried out counts."""
    return [rule for rule in rules if rule.operation in (ANY, operation) and re.search(rule.regex, scope)]


def scope_of(names: Iterable[str]) -> str:
    """Return what expressions are searched in: the names that are not empty, a ";" behind each, 10000 characters."""
    return "".join(f"{name};" for name in names if name)[:10000]
