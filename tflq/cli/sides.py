"""How commands name what they compare: a model, a model under an arithmetic or target, or a tensor dump."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tflq.cli.calibration_options import CalibrationChoice, calibrated
from tflq.cli.common import read_model
from tflq.cli.target_options import choose_target

if TYPE_CHECKING:
    from tflq.analysis.compare import Dump, Running
    from tflq.analysis.executions import Execution
    from tflq.analysis.inputs import Samples
    from tflq.graph import Model

SIDE_HELP = (
    "MODEL.tflite, MODEL.tflite@float, MODEL.tflite@TARGET (@tflite is what a model alone means), or a tensor dump "
    "(.npz, .npy, .bin). A second one without a model (@float, @gap9-ne16) takes the first one's."
)
_ARITHMETICS = ("tflite", "float")
_DUMPS = (".npz", ".npy", ".bin")


@dataclass(frozen=True)
class Named:
    """A side as the command line names it.

    Attributes:
        text: as it was given.
        path: of the model or dump; empty where the first side's model is meant.
        what: "tflite", "float" or a target; empty for a dump.
        tensor: the tensor that an .npy holds.
    """

    text: str
    path: str
    what: str
    tensor: str | None = None

    @property
    def is_dump(self) -> bool:
        """Whether it is a file of tensors."""
        return not self.what

    @property
    def is_target(self) -> bool:
        """Whether it is a model under a target."""
        return not self.is_dump and self.what not in _ARITHMETICS


@dataclass(frozen=True)
class Choices:
    """The options that say how targets quantise."""

    assignments: tuple[str, ...]
    layers: tuple[str, ...]
    calibration: CalibrationChoice
    real: bool


def parse_side(text: str, may_lack_model: bool = False) -> Named:
    """Take a side apart.

    Raises:
        UsageError: no model where one is needed, or an unknown arithmetic or target.
    """
    path, tensor = text, None
    if not os.path.exists(text):
        name, _, file = text.rpartition("=")
        if name and file.lower().endswith(_DUMPS):
            path, tensor = file, name
    if path.lower().endswith(_DUMPS):
        return Named(text, path, "", tensor)
    if os.path.exists(text) or "@" not in text:
        return Named(text, text, "tflite")
    path, _, what = text.rpartition("@")
    from tflq.converters.targets import target_names

    if what not in (*_ARITHMETICS, *target_names()):
        raise click.UsageError(
            f"'{text}': '@{what}' is unknown; there are {', '.join((*_ARITHMETICS, *target_names()))}"
        )
    if not path and not may_lack_model:
        raise click.UsageError(f"'{text}' names no model; write MODEL.tflite@{what}")
    return Named(text, path, what)


def open_dump(named: Named, map_path: str | None) -> Dump:
    """Read a dump."""
    from tflq.analysis.compare import read_dump

    return read_dump(named.path, named.tensor, map_path)


def execution_of(named: Named, model: Model, choices: Choices) -> Execution:
    """Make a model ready to run as its side says."""
    from tflq.analysis.executions import as_is, for_target, in_float

    if named.is_target:
        ranged = calibrated(model, choices.calibration, choices.real)
        return for_target(ranged.main, *choose_target(named.what, choices.assignments, choices.layers))
    return (in_float if named.what == "float" else as_is)(model, "independent")


def running(named: Named, model: Model, samples: Samples, samples_of: Model, choices: Choices) -> Running:
    """Make a side out of a model.

    Args:
        named: the side.
        model: its model.
        samples: in the encoding of `samples_of`.
        samples_of: the model that the samples were made for.
        choices: options of targets.
    """
    from tflq.analysis.compare import ConvertedSamples, Running

    own = samples if model is samples_of else ConvertedSamples(samples, samples_of.main, model.main)
    return Running(execution_of(named, model, choices), own, named.text)


def model_of(named: Named, first: Model | None = None) -> Model:
    """Read the model of a side, or take the first side's."""
    if named.path:
        return read_model(named.path)
    if first is None:
        raise click.UsageError(f"'{named.text}' takes the model of the first side, which is a dump; name a model")
    return first
