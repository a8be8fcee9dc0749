"""Calls of the package ai-edge-quantizer: the rule of a node, and the quantized file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from tflq.converters.tflite_quantizer.recipes.rules import ANY, NO_QUANTIZE, Rule
from tflq.converters.tflite_quantizer.recipes.statistics import Statistics
from tflq.errors import MissingExtraError, OptionError, UnsupportedError

_RAISED = (ValueError, RuntimeError, LookupError, TypeError, AttributeError, AssertionError)
_NO_RANGE = ("tensor_name_to_qsv", "tensor qsv is None", "(QSVs) are required", "min and max must be provided")


class MissingRangeError(UnsupportedError):
    """The package needs a range that is missing."""


@dataclass(frozen=True)
class ChosenRule:
    """The rule that the package applies to a node.

    Attributes:
        algorithm: Name of the algorithm.
        config: Rule's `op_config`, as the package saves it.
    """

    algorithm: str
    config: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The target's type: int8, int16x8, hybrid or weights."""
        activations = self.config.get("activation_tensor_config")
        if activations is not None:
            return "int16x8" if activations["num_bits"] == 16 else "int8"
        return "hybrid" if self.config["compute_precision"] == "INTEGER" else "weights"

    @property
    def weight_bits(self) -> int:
        """Width of the weights."""
        return int(self.config["weight_tensor_config"]["num_bits"])

    @property
    def saved(self) -> Rule:
        """The rule without regex and operation."""
        return {"algorithm_key": self.algorithm, "op_config": dict(self.config)}


class Package:
    """Access to ai-edge-quantizer, with its errors as tflq's.

    Args:
        recipe: Name or path of the recipe, for messages.

    Raises:
        MissingExtraError: The package is not installed.
    """

    def __init__(self, recipe: str) -> None:
        self._recipe = recipe
        self._generator = _module("params_generator")
        self._modifier = _module("model_modifier")
        self._files = _module("utils.tfl_flatbuffer_utils")
        self._manager = _module("recipe_manager").RecipeManager()
        self._rules: list[Rule] = []

    def load(self, rules: Sequence[Rule]) -> None:
        """Load rules; rules of an earlier call are removed.

        Raises:
            OptionError: A rule that the package does not know, or for one operator without a kernel.
        """
        self._rules = list(rules)
        try:
            self._manager.load_quantization_recipe(self._rules)
        except _RAISED as error:
            raise OptionError(f"recipe={self._recipe}: ai-edge-quantizer: {_message(error)}") from None

    def choose(self, operation: str, scope: str) -> ChosenRule | None:
        """Return the rule for a node; None if no rule applies, or one that leaves the node in float.

        Args:
            operation: The package's name of the operator.
            scope: Text in which the package searches a rule's regex.
        """
        return _choose(self._manager, operation, scope)

    def why_float(self, operation: str, scope: str) -> str:
        """Return why a node stays in float; empty if the last matching rule requests it, or no rule matches."""
        matching = [r for r in self._rules if r["operation"] in (ANY, operation) and re.search(str(r["regex"]), scope)]
        if not matching or matching[-1]["algorithm_key"] == NO_QUANTIZE:
            return ""
        return f"ai-edge-quantizer's policy has no {operation} for this recipe"

    def allows(self, rule: Rule, operation: str) -> bool:
        """Return whether the package's policy allows a rule for an operator."""
        manager = _module("recipe_manager").RecipeManager()
        manager.load_quantization_recipe([{**rule, "regex": "", "operation": ANY}])
        return _choose(manager, operation, "") is not None

    def quantize(self, content: bytes, statistics: Mapping[str, Statistics]) -> bytes:
        """Return the quantized file of a float .tflite.

        The package's own `Quantizer.quantize` does the same, and also loads the file into LiteRT, to report statistics
        that are empty.

        Args:
            content: File with a signature of all inputs and outputs.
            statistics: Statistics of activations by the tensor's name.

        Raises:
            MissingRangeError: An activation without a range.
            UnsupportedError: Constants that an algorithm does not take.
        """
        known = {name: dict(values) for name, values in statistics.items()}
        try:
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                model = self._files.read_model(memoryview(content))
                params = self._generator.ParamsGenerator(model).generate_quantization_parameters(
                    self._manager, known, enable_progress_bar=False
                )
                return bytes(self._modifier.ModelModifier(model).modify_model(params, enable_progress_bar=False))
        except _RAISED as error:
            message = f"recipe={self._recipe}: ai-edge-quantizer: {_message(error)}"
            if any(words in message for words in _NO_RANGE):
                raise MissingRangeError(message) from None
            raise UnsupportedError(
                f"{message}; leave such layers out by a rule, or by --layer NAME:type=float"
            ) from None


def _choose(manager: Any, operation: str, scope: str) -> ChosenRule | None:  # noqa: ANN401 - the package's class
    algorithm, config = manager.get_quantization_configs(operation, scope)
    name = str(getattr(algorithm, "value", algorithm))
    return None if name == NO_QUANTIZE else ChosenRule(name, config.to_dict())


def _module(name: str) -> ModuleType:
    try:
        return import_module(f"ai_edge_quantizer.{name}")
    except ImportError:
        raise MissingExtraError("recipes need ai-edge-quantizer: pip install 'tflq[recipes]'") from None


def _message(error: Exception) -> str:
    text = f"missing {error}" if isinstance(error, KeyError) else str(error)
    return " ".join(text.split()).rstrip(".") or type(error).__name__
