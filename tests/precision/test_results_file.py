"""Results that are kept: what comes back, what an interruption may leave, what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tflq.errors import FormatError, OutputError
from tflq.precision.results_file import ResultsFile
from tflq.precision.trial import Floating, Result, Trial

RESULTS = [
    Result(Trial((8, 4)), 500, 448, 16.441943),
    Result(Trial((8, 4), Floating.OTHERS, 1), 500, None, math.inf),
    Result(Trial((2, 8)), 500, None, 3.0, score=0.1),
    Result(Trial((2, 2)), 500, None, math.nan, 'operator 3 "conv" is refused; ü'),
]


def written(path: Path) -> Path:
    kept = ResultsFile(path, "one")
    for result in RESULTS:
        kept.add(result)
    ResultsFile(path, "two").add(Result(Trial((8, 4)), 5, 1, 2.0))
    return path


def test_results_come_back(tmp_path: Path) -> None:
    kept = ResultsFile(written(tmp_path / "r"), "one")
    for result in RESULTS:
        assert repr(kept.find(result.trial)) == repr(result)
    assert kept.find(Trial((8, 8))) is None


def test_another_problem_has_its_own(tmp_path: Path) -> None:
    kept = ResultsFile(written(tmp_path / "r"), "two")
    assert kept.find(Trial((8, 4))) == Result(Trial((8, 4)), 5, 1, 2.0)
    assert kept.find(Trial((2, 2))) is None


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_a_line_that_was_cut_off_counts_for_nothing_and_harms_nothing(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path / "r")
    path.write_bytes(path.read_bytes()[:-cut])
    assert ResultsFile(path, "two").find(Trial((8, 4))) is None
    ResultsFile(path, "two").add(Result(Trial((8, 4)), 5, 1, 2.0))
    assert path.read_bytes() == written(tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(
    "line", ["{}", "x", "[1]", '{"problem": 1, "trial": 1, "samples": "a", "right": 1, "sqnr_db": 1, "refused": ""}']
)
def test_other_lines_are_refused_by_number(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "r")
    path.write_text(path.read_text() + f"{line}\n")
    with pytest.raises(FormatError, match=r"r: line 6: is no result of a search; name another file"):
        ResultsFile(path, "one")


def test_what_cannot_be_read_or_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be read"):
        ResultsFile(tmp_path, "one")
    with pytest.raises(OutputError, match="cannot be written"):
        ResultsFile(tmp_path / "missing" / "r", "one").add(RESULTS[0])


def test_without_a_file_nothing_is_kept() -> None:
    kept = ResultsFile(None, "one")
    kept.add(RESULTS[0])
    assert kept.find(RESULTS[0].trial) == RESULTS[0]
