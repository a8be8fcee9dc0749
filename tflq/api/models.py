"""`tflq.models` and `tflq.fetch_models`: the MLPerf Tiny reference models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.api.options import Progress, silent
from tflq.api.result import TableResult, picked
from tflq.benchmarks.fetch import Outcome, fetch
from tflq.benchmarks.reference_models import BASE_URL, COMMIT, REFERENCE_MODELS, ReferenceModel, reference_models
from tflq.quoting import Json


@dataclass(frozen=True)
class ModelsResult(TableResult):
    """The reference models.

    Attributes:
        models: with task, size and checksum.
    """

    models: tuple[ReferenceModel, ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each model."""
        return [picked(model, "name", "task", "size_bytes", "sha256") for model in self.models]

    def report(self) -> Mapping[str, Json]:
        """Return the commit that they are of, and the rows."""
        return {"commit": COMMIT, "models": self.rows()}


@dataclass(frozen=True)
class FetchedModels(TableResult):
    """Models that are in a folder now.

    Attributes:
        folder: where.
        outcomes: each with how it came there.
    """

    folder: Path
    outcomes: tuple[tuple[ReferenceModel, Outcome], ...]

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return path, outcome, size and checksum of each."""
        return [
            {"path": str(self.folder / model.name), "outcome": outcome, **picked(model, "size_bytes", "sha256")}
            for model, outcome in self.outcomes
        ]

    def report(self) -> Mapping[str, Json]:
        """Return the rows."""
        return {"models": self.rows()}


def models() -> ModelsResult:
    """Return the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""
    return ModelsResult(tuple(REFERENCE_MODELS))


def fetch_models(
    *names: str, folder: str | Path = "models", base_url: str | None = None, progress: Progress = silent
) -> FetchedModels:
    """Put reference models into a folder.

    A file that is there already is kept if its checksum is right, and refused if it is wrong. Where the environment
    variable TFLQ_DATA names a folder with right copies (in it, or in its "models"), they are used, not the network.

    Args:
        *names: which; all where none is named.
        folder: it is made where it is missing.
        base_url: another place with the same folders: a mirror.
        progress: shows how many bytes have come.

    Raises:
        OptionError: an unknown name.
        FormatError: a wrong checksum.
        InputError, OutputError: the server cannot be reached, or the folder not be written.
    """
    chosen = reference_models(names)
    with progress("fetch", sum(model.size_bytes for model in chosen)) as advance:
        outcomes = [(model, fetch(model, Path(folder), base_url or BASE_URL, advance)) for model in chosen]
    return FetchedModels(Path(folder), tuple(outcomes))
