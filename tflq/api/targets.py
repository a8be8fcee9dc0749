"""`tflq.targets`: which targets there are, and what can be set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.api.result import TableResult, picked
from tflq.converters.settings import Setting
from tflq.converters.targets import Target, find_target, target_names
from tflq.quoting import Json


@dataclass(frozen=True)
class TargetsResult(TableResult):
    """Targets.

    Attributes:
        targets: in the order of their names.
    """

    targets: tuple[Target, ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each setting of each target."""
        return [{"target": target.name, **_setting(setting)} for target in self.targets for setting in target.settings]

    def report(self) -> Mapping[str, Json]:
        """Return the targets with their settings."""
        return {"targets": [_target(target) for target in self.targets]}


def targets(*names: str) -> TargetsResult:
    """Return targets with the keys that settings take.

    Args:
        *names: which; all where none is named.

    Raises:
        OptionError: an unknown target.
    """
    return TargetsResult(tuple(find_target(name) for name in names or target_names()))


def _target(target: Target) -> Mapping[str, Json]:
    settings = [_setting(setting) for setting in target.settings]
    return {**picked(target, "name", "summary", "arithmetic"), "settings": settings}


def _setting(setting: Setting) -> Mapping[str, Json]:
    return picked(setting, "key", "default", "help", "choices", "minimum", "maximum", "per_layer")
