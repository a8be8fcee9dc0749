"""`tflq.targets`: the targets and their settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflq.api.result import Result
from tflq.converters.settings import Setting
from tflq.converters.targets import Target, find_target, target_names
from tflq.report import Column, Table, Verdict, identifier, keys


@dataclass(frozen=True)
class TargetsResult(Result):
    """Targets.

    Attributes:
        targets: Targets, in the order of their names.
    """

    targets: tuple[Target, ...]

    @property
    def verdict(self) -> Verdict:
        """Number of targets."""
        return Verdict("", len(self.targets), "target" + "s" * (len(self.targets) != 1))

    def tables(self) -> Sequence[Table]:
        """Return the targets, and the settings of each."""
        settings = (Table("", _SETTINGS, t.settings, f"{t.name}: {t.summary}") for t in self.targets)
        return [Table("targets", _TARGETS, self.targets, terminal="never"), *settings]


def _default(setting: Setting) -> str:
    return str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)


_SETTINGS = (
    identifier("key", "key"),
    Column("default", "default", text=_default),
    Column("help", "effect"),
    Column("", "allowed", get="allowed", rank=1),
    Column("", "holds for", get=lambda s: "" if s.per_layer else "whole graph", rank=2),
    *keys("choices", "minimum", "maximum", "per_layer"),
)
_TARGETS = (
    identifier("name", "target"),
    Column("summary", "summary"),
    *keys("arithmetic"),
    Column("settings", get=lambda target: Table("", _SETTINGS, target.settings).records()),
)


def targets(*names: str) -> TargetsResult:
    """Return targets with the keys of their settings.

    Args:
        *names: Names of the targets (default: all).

    Raises:
        OptionError: An unknown target.
    """
    return TargetsResult(tuple(find_target(name) for name in names or target_names()))
