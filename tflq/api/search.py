"""`tflq.search`: settings of a model's layers that keep a quality, by one of two strategies (docs/guides/search.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from tflq.api.backward import BackwardOptions, BackwardResult, backward
from tflq.api.options import Progress, SampleSource, TargetOptions, changed, is_random, silent
from tflq.api.read_model import ModelSource, name_of
from tflq.api.result import Result, paired_report
from tflq.api.run_record import recorded
from tflq.api.target import complete
from tflq.api.trials import Span, TrialOptions, open_evaluator, read_subject, with_labels
from tflq.converters.settings import SettingsFile
from tflq.converters.settings_file import settings_bytes
from tflq.errors import UsageError
from tflq.files import write_bytes
from tflq.precision import search as precision
from tflq.precision.evaluate import evaluate, float_result
from tflq.precision.objective import OBJECTIVES as OBJECTIVES
from tflq.precision.objective import objective_of
from tflq.precision.problem import Problem
from tflq.precision.recover import RecoverySettings
from tflq.precision.search import Beside, Point, PrecisionSearch, beside_others, is_required_accuracy_within
from tflq.precision.trial import Requirement
from tflq.precision.trial import Result as TrialResult
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict
from tflq.report.precision import (
    describe_outcome,
    describe_verification,
    noise_texts,
    points_table,
    requirement_text,
    result_report,
    result_text,
    search_verdict,
    setting_table,
    settings_text,
)


@dataclass(frozen=True)
class SearchOptions(TrialOptions):
    """The strategy that finds the cheapest mixed precision, with the fields of `TrialOptions`.

    Attributes:
        at_least: accuracy in percent to keep, or another `metric`; it needs `data`.
        at_most: the same for a metric of which less is better.
        min_sqnr: signal-to-noise ratio of the outputs to keep, in dB.
        slack: how much noisier than the first setting found a smaller one may be, in dB; inf lets the accuracy alone
            decide.
        recover: recover every setting, with the samples that judge it; and search without that, too, to compare.
        objective: what to make small: "bytes", or "cycles" or "energy" as the target's estimate says.
        verify: try the setting on these other samples, too.
    """

    at_least: float | None = None
    at_most: float | None = None
    min_sqnr: float | None = None
    slack: float = 3.0
    recover: bool = False
    objective: str = "bytes"
    verify: Span | None = None

    def check(self) -> None:
        """Refuse what cannot be searched.

        Raises:
            UsageError: an unknown objective, nothing to keep, accuracy without labels, a bound of the metric's worse
                side, samples to verify on that the search uses.
            OptionError, InputError: as `find_metric`.
        """
        if self.objective not in OBJECTIVES:
            raise UsageError(f"objective '{self.objective}': allowed are {', '.join(OBJECTIVES)}")
        if any(value is not None and math.isnan(value) for value in (self.at_least, self.at_most, self.min_sqnr)):
            raise UsageError("--at-least, --at-most and --min-sqnr are numbers; nan is none")
        self._check_score()
        if self.verify is None:
            return
        if self.span is None:
            raise UsageError("--verify needs samples that the search does not use: say which those are with --take")
        if self.verify.start < self.span.stop and self.span.start < self.verify.stop:
            raise UsageError(f"--verify {self.verify} and --take {self.span} overlap; verify on other samples")

    @property
    def score(self) -> float | None:
        """What the metric has to be, at least or at most; None where it does not count."""
        return self.at_most if self.at_least is None else self.at_least

    def _check_score(self) -> None:
        if self.score is None and self.min_sqnr is None:
            raise UsageError("say what to keep: --at-least PERCENT, --min-sqnr DB, or both")
        if self.score is not None and not self.is_labeled:
            raise UsageError("--at-least needs labels: name them with --data or --labels, or use --min-sqnr")
        metric = self.found_metric()
        metric.require(self.at_least, self.at_most)
        if self.metric is not None and self.score is None:
            bound = "--at-most" if metric.is_lower_better else "--at-least"
            raise UsageError(f"--metric {self.metric}: say what it has to be, with {bound}")


@dataclass(frozen=True)
class SearchResult(Result):
    """The cheapest setting that was found.

    Attributes:
        model: how reports call it.
        found: every setting that was tried, and the chosen one.
        problem: what was searched.
        span: of the samples that decided; None for all.
        verified: the chosen setting on other samples; None where it was not tried.
        beside: the chosen setting beside others on the same samples; nothing without labels.
        plain: what a search without recovery finds; None where `found` is without.
        floating: Result of the float model on the samples of `verified`, or else of the search; None without labels.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="found.target"),
        Column("samples", "samples", get="found.samples"),
        Column("required", get=lambda r: _required(r.found.requirement)),
        Column("", "required", get=lambda r: requirement_text(r.found.requirement)),
        Column("objective", "made small", get="found.objective.name"),
        Column("slack_db", get="found.slack_db"),
        Column("least_sqnr_db", get="found.least_sqnr_db"),
        Column("counted", "counted", get="found.plan.counted"),
        Column("fixed_bytes", get="found.plan.fixed_bytes"),
        Column("chosen", get=lambda r: _point(r.found, r.found.chosen)),
        Column("best", get=lambda r: _point(r.found, r.found.best)),
        Column("verified", get=lambda r: r.verified and result_report(r.verified)),
        Column("float", get=lambda r: r.floating and result_report(r.floating)),
        Column("required_within_interval", get="is_within_interval"),
        Column("paired", get=lambda r: [paired_report(b.pair, b.what) | {"bits": b.point.bits} for b in r.beside]),
        Column("recovered", "each setting recovered", get=lambda r: r.plain is not None),
        Column("without_recovery", get=lambda r: r.plain and _front(r.plain)),
        Column("evaluated", get="found.evaluated"),
        Column("known", get="found.known"),
    )

    MAIN = "points"

    model: str
    found: PrecisionSearch
    problem: Problem
    span: Span | None
    verified: TrialResult | None
    beside: tuple[Beside, ...] = ()
    plain: PrecisionSearch | None = None
    floating: TrialResult | None = None

    @property
    def is_kept(self) -> bool:
        """Whether a setting keeps what is required, and other samples confirm it."""
        kept = self.verified is None or self.found.requirement.holds(self.verified)
        return self.found.chosen is not None and kept

    @property
    def is_within_interval(self) -> bool | None:
        """Whether the required accuracy is in the 95 % interval of the setting; None without a setting."""
        chosen = self.found.chosen
        return None if chosen is None else is_required_accuracy_within(self.found.requirement, chosen.result)

    @property
    def layers(self) -> tuple[str, ...]:
        """The setting, as `TargetOptions.layers` takes it; the user's alone where none was found."""
        chosen = self.found.chosen
        return (*self.problem.rules, *(() if chosen is None else self.problem.layer_texts(chosen.bits)))

    @property
    def verdict(self) -> Verdict:
        """Figure of the setting against the requirement."""
        return search_verdict(self.found, self.verified)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"Precision of {self.model} for {self.found.target}"

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on the setting, its verification, the float model, and noise."""
        point, made_small = self.found.chosen or self.found.best, self.found.objective.name
        basis = [f"{made_small}: {point.cost.basis}"] if point is not None and made_small != "bytes" else []
        outcome = describe_outcome(self.found, self.verified, self.floating)
        return [*outcome, *noise_texts(self.found, self.beside), *basis, settings_text(self.found)]

    def tables(self) -> Sequence[Table]:
        """Return the setting and the points of a plot of cost against quality."""
        plain = [] if self.plain is None else [points_table(self.plain, "plain_points", "Without recovery")]
        return [setting_table(self.found), points_table(self.found), *plain]

    def write_settings(self, path: str | Path) -> None:
        """Write the setting for `TargetOptions.file` and --settings; nothing where none was found.

        Raises:
            OutputError: the file cannot be written.
        """
        found = self.found
        if found.chosen is None:
            return
        about = {
            "size_bytes": found.chosen.size_bytes,
            **({} if found.objective.name == "bytes" else {found.objective.name: str(found.chosen.cost)}),
            "counted": found.plan.counted,
            "samples": str(self.span) if self.span else f"0:{found.samples}",
            "required": _required(self.found.requirement),
            "found": result_text(found.chosen.result, found.requirement.metric),
            "recovered": self.plain is not None,
            "verified": describe_verification(found, self.verified),
        }
        write_bytes(path, settings_bytes(SettingsFile(found.target, self.problem.assignments, self.layers), about))


@overload
def search(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = ...,
    options: SearchOptions = ...,
    *,
    progress: Progress = ...,
    **changes: object,
) -> SearchResult: ...


@overload
def search(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = ...,
    *,
    options: BackwardOptions,
    progress: Progress = ...,
    **changes: object,
) -> BackwardResult: ...


@recorded
def search(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = None,
    options: SearchOptions | BackwardOptions = SearchOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> SearchResult | BackwardResult:
    """Find a setting of a model's layers that keeps a quality; the kind of options is the strategy.

    The answer depends on model, samples and options, not on the number of processes or machines.

    Args:
        model: to search.
        target: one with a choice of bits, and its settings.
        samples: that judge, 64 random ones where none are named (32 for `BackwardOptions`); or labeled ones by `data`.
        options: `SearchOptions` for the cheapest setting, `BackwardOptions` for the last layer that needs more bits.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError, OptionError, InputError, FormatError, UnsupportedError: options, samples or a model that do not fit.
    """
    samples, options = with_labels(samples, changed(options, changes))
    wanted = complete(target, options.calibration)
    if isinstance(options, BackwardOptions):
        return backward(model, wanted, samples, options, progress)
    options.check()
    plain = None
    if options.recover and options.data is None and is_random(samples):
        raise UsageError(
            "--recover fits weights to samples like those that the device will see: give --data or --input"
        )
    subject = read_subject(
        model, wanted, samples, options, progress, options.span, options.verify, recovers=options.recover
    )
    if options.recover:
        subject = subject.recovered(options.span, RecoverySettings())
        unrecovered = replace(subject, recovering=None).problem(options.span)
        plain = _found(unrecovered, replace(options, recover=False), progress)
    problem = subject.problem(options.span)
    found = _found(problem, options, progress)
    verified, judging = None, problem
    if options.verify is not None and found.chosen is not None:
        judging = subject.problem(options.verify)
        verified = evaluate(judging, found.chosen.result.trial)
    beside, floating = beside_others(problem, found), float_result(judging, subject.model)
    return SearchResult(name_of(model), found, problem, options.span, verified, beside, plain, floating)


def _found(problem: Problem, options: SearchOptions, progress: Progress) -> PrecisionSearch:
    with open_evaluator(problem, options, progress) as evaluator:
        asked = Requirement(options.score, options.min_sqnr, options.found_metric())
        return precision.search(evaluator, asked, options.slack, objective_of(problem, options.objective))


def _required(requirement: Requirement) -> dict[str, Json]:
    """Return what is required; accuracy_percent is the score of a metric that is a share of right answers."""
    metric, score = requirement.metric, requirement.score
    found: dict[str, Json] = {
        "metric": metric.name,
        "accuracy_percent": score if metric.k else None,
        "sqnr_db": requirement.sqnr_db,
    }
    if not metric.k:
        found |= {"score": score, "is_lower_better": metric.is_lower_better}
    return found


def _front(found: PrecisionSearch) -> Json:
    """Return the chosen setting and every point of a search."""
    return {"chosen": _point(found, found.chosen), "points": [_point(found, point) for point in found.points]}


def _point(found: PrecisionSearch, point: Point | None) -> Json:
    return None if point is None else Table("", points_table(found).columns, [point]).records()[0]
