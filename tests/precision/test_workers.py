"""Processes and dask workers give what this process gives; what goes wrong is one line."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest

from tests.support.digits_problem import evaluator, problem
from tflq.errors import MissingExtraError, OptionError, TflqError
from tflq.precision import workers
from tflq.precision.evaluate import evaluate
from tflq.precision.problem import Problem
from tflq.precision.search import PrecisionSearch, search
from tflq.precision.trial import Requirement, Trial
from tflq.precision.workers import open_workers

RULES = ("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8", "8:weight_bits=8")


def tiny() -> Problem:
    return problem(20, rules=RULES, widths=(3, 5))


def searched(of: Problem, jobs: int = 1, scheduler: str | None = None) -> PrecisionSearch:
    with open_workers(of, jobs, scheduler) as run:
        return search(evaluator(of, run), Requirement(accuracy_percent=90.0))


def test_processes_find_the_same() -> None:
    of = tiny()
    assert searched(of, jobs=2) == searched(of)


@pytest.fixture
def cluster() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=2, **options) as found:
        yield found.scheduler_address


def test_a_cluster_of_two_workers_finds_the_same(cluster: str) -> None:
    of = tiny()
    assert searched(of, scheduler=cluster) == searched(of)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed (extra cluster)")
    monkeypatch.setattr(workers, "_CONNECT_SECONDS", 1)
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        with (
            pytest.raises(OptionError, match=rf"scheduler {address}: does not answer"),
            open_workers(tiny(), 1, address),
        ):
            pass


def test_without_distributed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: object, **others: object) -> object:
        if name == "distributed":
            raise ImportError(name)
        return original(name, *arguments, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'tflq\[cluster\]'"), open_workers(tiny(), 1, "tcp://x:1"):
        pass


def test_a_worker_of_another_version_takes_no_part() -> None:
    with pytest.raises(OptionError, match=r"this worker has tflq .*, the search runs tflq 0\.0\.0"):
        evaluate(replace(tiny(), version="0.0.0"), Trial((5, 5)))


def test_a_worker_that_dies_is_one_line() -> None:
    with pytest.raises(TflqError, match="a worker ended before its trial did"), workers._workers_may_die():
        raise BrokenProcessPool


def test_a_setting_that_the_target_refuses_is_a_result() -> None:
    of = tiny()
    broken = replace(of, rules=(*of.rules, "9:weight_bits=8", "no_such_layer:weight_bits=8"))
    found = evaluate(broken, Trial((5, 5)))
    assert "no_such_layer" in found.refused
    assert found.right is None
    assert not Requirement(accuracy_percent=0.0).holds(found)
