"""`scripts/corpus`: a share of the files that the world and Keras' converter wrote, and how failures are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from world.corpus import Outcome, judge

from tests.support.data import data_files, data_path
from tflq.api.demo import demo_model_path
from tflq.oracle import Oracle, OracleAborted, OracleRun

SHARE = [*data_files("cases", "world")[::12], *data_files("cases", "keras", pattern="*int8*.tflite")[::9]]


@pytest.mark.parametrize("path", SHARE or [None], ids=[path.stem for path in SHARE] or ["no data"])
def test_what_tflite_runs_is_equal(path: Path | None, oracle: Oracle) -> None:
    found = judge(path or data_path("cases", "world"), oracle, 1)
    assert not found.outcome.is_failure, found


def test_outcomes(tmp_path: Path, oracle: Oracle) -> None:
    content = demo_model_path().read_bytes()
    files = {"good": content, "behind": content + b"x" * 9, "cut": content[:-1], "text": b"no model", "empty": b""}
    found = {}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        found[name] = judge(tmp_path / name, oracle, 1).outcome
    assert found == {
        "good": Outcome.EQUAL,
        "behind": Outcome.EQUAL,
        "cut": Outcome.REFUSED_BY_BOTH,
        "text": Outcome.REFUSED_BY_BOTH,
        "empty": Outcome.REFUSED_BY_BOTH,
    }


class _EndsLater(Oracle):
    """TFLite that survives the first run and ends in all others, as one that writes beyond a tensor may."""

    runs = 0

    def run(self, *arguments: Any, **options: Any) -> OracleRun:
        self.runs += 1
        if self.runs > 1:
            raise OracleAborted("TFLite ended with SIGABRT")
        return super().run(*arguments, **options)


def test_a_later_end_of_tflite_is_its_answer(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(demo_model_path().read_bytes())
    with _EndsLater() as oracle:
        found = judge(tmp_path / "model", oracle, 1)
    assert (found.outcome, found.words) == (Outcome.RUNS_ALONE, "TFLite ended with SIGABRT")
