"""`tflq.demo`: everything once, on the model inside the package (NOTICE names the source of its images)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from tflq.api.convert import compared_report
from tflq.api.options import TargetOptions
from tflq.api.read_model import read_model
from tflq.api.result import TableResult, picked
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
from tflq.sampling import GivenSamples
from tflq.sampling.files import read_npz

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
    """What the model does as it is, in floating point, or for a target.

    Attributes:
        accuracy: over the test images.
        change: largest change of an output against the model as it is.
        emitted: the target's .tflite in TFLite; None for what is no target, or why it was not compared.
    """

    accuracy: Accuracy
    change: float
    emitted: EmittedDifference | str | None = None


@dataclass(frozen=True)
class Demo(TableResult):
    """A small model that reads handwritten digits, and what tflq says of it; each part runs when it is asked for.

    Attributes:
        path: of the model.
        model: as it was read.
        data: test images, none of which the model was trained on.
    """

    path: Path
    model: Model
    data: LabeledSamples

    @cached_property
    def verified(self) -> VerifyResult | str:
        """Every tensor of every image against TFLite, or how to install it."""
        try:
            return verify(self.path, self.data.samples)
        except MissingExtraError as error:
            return str(error)

    @cached_property
    def measured(self) -> tuple[DemoRow, ...]:
        """The model as it is, in floating point, and for each target."""
        reference, floating = as_is(self.model), in_float(self.model)
        rows = [
            DemoRow(measure(reference, self.data), 0.0),
            DemoRow(measure(floating, self.data), largest_output_change(floating, reference, self.data.samples)),
        ]
        return (*rows, *(self._for_target(name, reference) for name in target_names()))

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return `measured` as rows."""
        return [
            {
                "name": row.accuracy.name,
                "right": row.accuracy.right,
                "samples": row.accuracy.total,
                "accuracy_percent": row.accuracy.percent,
                "largest_change": row.change,
                "emitted_tflite": compared_report(row.emitted),
            }
            for row in self.measured
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the comparison with TFLite and the rows."""
        found = self.verified
        compared: Json = found if isinstance(found, str) else None
        if not isinstance(found, str):
            total = found.verdict.total
            head: dict[str, Json] = {"oracle": str(found.verdict.identity), "samples": found.verdict.samples}
            compared = {**head, **picked(total, "elements", "differing")}
        return {"model": str(self.path), "tflite": compared, "rows": self.rows()}

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


def demo() -> Demo:
    """Return the model inside the package with its test images."""
    path = demo_model_path()
    model = read_model(path)
    return Demo(path, model, demo_samples(model.main))
