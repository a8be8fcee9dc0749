"""`tflq.demo`: a tour on the model inside the package (NOTICE names the source of its images)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from tflq.api.conversion import compared_report
from tflq.api.inspect import inspect
from tflq.api.options import TargetOptions
from tflq.api.read_model import read_model
from tflq.api.result import Result, select_attributes
from tflq.api.target import choose_target
from tflq.api.verify import VerifyResult, verify
from tflq.benchmarks.accuracy import Accuracy, LabeledSamples, measure
from tflq.converters.targets import target_names
from tflq.diagnosis.similarity import largest_output_change
from tflq.emit.written import EmittedDifference, check_emitted
from tflq.errors import MissingExtraError
from tflq.graph import Graph, Model
from tflq.parallel.executions import Execution, as_is, for_target, in_float
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, number
from tflq.sampling import GivenSamples
from tflq.sampling.files import read_npz
from tflq.units import size

DIGITS = 10


def demo_model_path() -> Path:
    """Return the path of digits.tflite: an int8 convolutional network for 8 x 8 images of digits."""
    return Path(str(files("tflq") / "data" / "digits.tflite"))


def demo_samples(graph: Graph) -> LabeledSamples:
    """Return the 360 test images, none of which the model was trained on, in the encoding of the model's input."""
    arrays = read_npz(str(files("tflq") / "data" / "digits_test.npz"))
    tensor = graph.tensors[graph.inputs[0]]
    images = arrays["images"].reshape(-1, *tensor.shape)
    return LabeledSamples(GivenSamples([images]), arrays["labels"].astype(np.int64), DIGITS)


@dataclass(frozen=True)
class DemoRow:
    """Figures of the unchanged model, of floating point, or of a target.

    Attributes:
        accuracy: Accuracy over the test images.
        change: Largest change of an output, relative to the unchanged model.
        emitted: Difference between the target's .tflite in TFLite and the target; None without a target, or the reason
            why it was not compared.
    """

    accuracy: Accuracy
    change: float
    emitted: EmittedDifference | str | None = None


@dataclass(frozen=True)
class Demo(Result):
    """A small model that reads handwritten digits, and results of tflq on it; each part is computed on first access.

    Attributes:
        path: Path of the model.
        model: Model as read from its file.
        data: Test images, none of which the model was trained on.
    """

    FACTS = (
        Column("model", get=lambda r: str(r.path)),
        Column("tflite", get=lambda r: _tflite_report(r.verified)),
    )

    path: Path
    model: Model
    data: LabeledSamples

    @cached_property
    def verified(self) -> VerifyResult | str:
        """Comparison of every tensor of every image with TFLite, or how to install TFLite."""
        try:
            return verify(self.path, self.data.samples)
        except MissingExtraError as error:
            return str(error)

    @cached_property
    def measured(self) -> tuple[DemoRow, ...]:
        """Rows of the unchanged model, of floating point, and of each target."""
        reference, floating = as_is(self.model), in_float(self.model)
        rows = [
            DemoRow(measure(reference, self.data), 0.0),
            DemoRow(measure(floating, self.data), largest_output_change(floating, reference, self.data.samples)),
        ]
        return (*rows, *(self._for_target(name, reference) for name in target_names()))

    @property
    def verdict(self) -> Verdict:
        """Number of elements that differ from TFLite."""
        verified = self.verified
        return Verdict("", None, f"not compared: {verified}") if isinstance(verified, str) else verified.verdict

    @property
    def notes(self) -> Sequence[str]:
        """The model and its samples."""
        (facts,) = inspect(self.model).graphs
        return [
            "The model: a small convolutional network that reads handwritten digits.",
            f"  {self.path.name}: {size(self.path.stat().st_size)}, {len(facts.operators)} operators, "
            f"{facts.macs:,} MACs",
            f"  {self.data.samples.count} test images of 8 x 8 pixels, none of them used in training",
        ]

    def tables(self) -> Sequence[Table]:
        """Return the accuracy of the unchanged model, in floating point, and for each target."""
        return [Table("rows", _ROWS, self.measured, "The same model for each target", _NOTES)]

    def _for_target(self, name: str, reference: Execution) -> DemoRow:
        target, settings = choose_target(name, TargetOptions(name))
        execution = for_target(self.model.main, target, settings)
        change = largest_output_change(execution, reference, self.data.samples)
        emitted: EmittedDifference | str | None
        try:
            emitted = check_emitted(execution, target.emit(execution.graph, self.model), self.data.samples)
        except MissingExtraError as error:
            emitted = str(error)
        return DemoRow(measure(execution, self.data), change, emitted)


def _tflite_report(result: VerifyResult | str) -> Json:
    if isinstance(result, str):
        return result
    total, head = result.verification.total, select_attributes(result.verification, "samples")
    return {"oracle": str(result.verification.identity), **head, **select_attributes(total, "elements", "differing")}


def _emitted_text(row: DemoRow) -> str:
    if row.emitted is None:
        return ""
    return "not compared" if isinstance(row.emitted, str) else f"at most {row.emitted.output.largest_lsb:.1f} LSB"


_NOTES = (
    "largest change: of any probability, relative to the unchanged model.",
    "LSB: one step of the output's scale, between the target's own integers and TFLite.",
)
_ROWS = (
    identifier("name", "as", "accuracy.name"),
    number("right", "right", "accuracy.right"),
    number("samples", "of", "accuracy.total"),
    number("accuracy_percent", "accuracy", "accuracy.percent", ".1f", "%", bar=True),
    number("largest_change", "largest change", "change", ".4f"),
    Column("emitted_tflite", "its .tflite in TFLite", get=lambda row: compared_report(row.emitted), text=_emitted_text),
)


def demo() -> Demo:
    """Return the model inside the package with its test images."""
    path = demo_model_path()
    model = read_model(path)
    return Demo(path, model, demo_samples(model.main))
