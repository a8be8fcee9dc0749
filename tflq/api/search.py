"""`tflq.search`: settings of a model's layers for a required quality, by two strategies (docs/guides/search.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from tflq.api.backward import BackwardOptions, BackwardResult, backward
from tflq.api.options import Progress, SampleSource, TargetOptions, is_random, replace_options, silent
from tflq.api.read_model import ModelSource, name_of
from tflq.api.result import Result, paired_report
from tflq.api.run_record import record_call
from tflq.api.target import merge_settings
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

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import BackwardKeywords, SearchKeywords


@dataclass(frozen=True)
class SearchOptions(TrialOptions):
    """Options of the strategy that finds the cheapest mixed precision, with the fields of `TrialOptions`.

    Attributes:
        at_least: Accuracy in percent to keep, or value of another metric; it needs labels.
        at_most: Value of a metric to keep that is better if lower.
        min_sqnr: Signal-to-quantization-noise ratio of the outputs to keep, in dB, relative to the unchanged model.
        slack: Largest additional noise of a smaller setting, in dB above the first accepted setting; with inf only the
            accuracy decides. Not used if settings are recovered: then all trials together relate accuracy to the ratio.
        recover: True to recover every setting with the samples of the search (docs/guides/recover.md), and search
            without recovery, too, for comparison.
        objective: Quantity to minimize: bytes of the layers, or cycles or energy of the network as estimated by
            `tflq estimate`.
        verify: Range of other samples to try the setting on, too.
    """

    at_least: float | None = None
    at_most: float | None = None
    min_sqnr: float | None = None
    slack: float = 3.0
    recover: bool = False
    objective: str = "bytes"
    verify: Span | None = None

    def check(self) -> None:
        """Refuse options that do not define a search.

        Raises:
            UsageError: An unknown objective, no requirement, an accuracy without labels, a bound on the wrong side of
                the metric, samples to verify on that the search uses.
            OptionError, InputError: As for `find_metric`.
        """
        if self.objective not in OBJECTIVES:
            raise UsageError(f"objective '{self.objective}': allowed are {', '.join(OBJECTIVES)}")
        if any(value is not None and math.isnan(value) for value in (self.at_least, self.at_most, self.min_sqnr)):
            raise UsageError("--at-least, --at-most and --min-sqnr must be numbers; nan is not a number")
        self._check_score()
        if self.verify is None:
            return
        if self.span is None:
            raise UsageError("--verify needs samples that the search does not use; restrict the search with --take")
        if self.verify.start < self.span.stop and self.span.start < self.verify.stop:
            raise UsageError(f"--verify {self.verify} and --take {self.span} overlap; choose other samples")

    @property
    def score(self) -> float | None:
        """Bound of the metric, at least or at most; None without one."""
        return self.at_most if self.at_least is None else self.at_least

    def _check_score(self) -> None:
        if self.score is None and self.min_sqnr is None:
            raise UsageError("the requirement is missing; add --at-least PERCENT, --min-sqnr DB, or both")
        if self.score is not None and not self.is_labeled:
            raise UsageError("--at-least needs labels; name them with --data or --labels, or use --min-sqnr")
        metric = self.resolve_metric()
        metric.require(self.at_least, self.at_most)
        if self.metric is not None and self.score is None:
            bound = "--at-most" if metric.is_lower_better else "--at-least"
            raise UsageError(f"--metric {self.metric}: the bound is missing; set it with {bound}")


@dataclass(frozen=True)
class SearchResult(Result):
    """The cheapest accepted setting.

    Attributes:
        model: Name of the model in reports.
        search: All trials, and the selected setting.
        problem: Problem that was searched.
        span: Range of the samples of the search; None for all.
        verified: Result of the selected setting on other samples; None without them.
        beside: Paired comparisons of the selected setting on the same samples; empty without labels.
        plain: Search without recovery; None if `search` is without recovery.
        floating: Result of the float model on the samples of `verified`, or else of the search; None without labels.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="search.target"),
        Column("samples", "samples", get="search.samples"),
        Column("required", get=lambda r: _requirement_report(r.search.requirement)),
        Column("", "required", get=lambda r: requirement_text(r.search.requirement)),
        Column("objective", "made small", get="search.objective.name"),
        Column("slack_db", get="search.slack_db"),
        Column("least_sqnr_db", get="search.least_sqnr_db"),
        Column("counted", "counted", get="search.plan.counted"),
        Column("fixed_bytes", get="search.plan.fixed_bytes"),
        Column("chosen", get=lambda r: _point(r.search, r.search.chosen)),
        Column("best", get=lambda r: _point(r.search, r.search.best)),
        Column("verified", get=lambda r: r.verified and result_report(r.verified)),
        Column("float", get=lambda r: r.floating and result_report(r.floating)),
        Column("required_within_interval", get="is_within_interval"),
        Column("paired", get=lambda r: [paired_report(b.pair, b.what) | {"bits": b.point.bits} for b in r.beside]),
        Column("recovered", "each setting recovered", get=lambda r: r.plain is not None),
        Column("without_recovery", get=lambda r: r.plain and _front(r.plain)),
        Column("evaluated", get="search.evaluated"),
        Column("known", get="search.known"),
    )

    MAIN = "points"

    model: str
    search: PrecisionSearch
    problem: Problem
    span: Span | None
    verified: TrialResult | None
    beside: tuple[Beside, ...] = ()
    plain: PrecisionSearch | None = None
    floating: TrialResult | None = None

    @property
    def is_kept(self) -> bool:
        """Whether a setting meets the requirement, and other samples confirm it."""
        kept = self.verified is None or self.search.requirement.holds(self.verified)
        return self.search.chosen is not None and kept

    @property
    def is_within_interval(self) -> bool | None:
        """Whether the required accuracy is in the 95 % interval of the setting; None without a setting."""
        chosen = self.search.chosen
        return None if chosen is None else is_required_accuracy_within(self.search.requirement, chosen.result)

    @property
    def layers(self) -> tuple[str, ...]:
        """The setting in the form of `TargetOptions.layers`; only the user's layers if there is no setting."""
        chosen = self.search.chosen
        return (*self.problem.rules, *(() if chosen is None else self.problem.layer_texts(chosen.bits)))

    @property
    def verdict(self) -> Verdict:
        """Figure of the setting against the requirement."""
        return search_verdict(self.search, self.verified)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"Precision of {self.model} for {self.search.target}"

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on the setting, its verification, the float model, and noise."""
        point, made_small = self.search.chosen or self.search.best, self.search.objective.name
        basis = [f"{made_small}: {point.cost.basis}"] if point is not None and made_small != "bytes" else []
        outcome = describe_outcome(self.search, self.verified, self.floating)
        return [*outcome, *noise_texts(self.search, self.beside), *basis, settings_text(self.search)]

    def tables(self) -> Sequence[Table]:
        """Return the setting and the points of a plot of cost against quality."""
        plain = [] if self.plain is None else [points_table(self.plain, "plain_points", "Without recovery")]
        return [setting_table(self.search), points_table(self.search), *plain]

    def write_settings(self, path: str | Path) -> None:
        """Write the setting for `TargetOptions.file` and --settings; no file is written without a setting.

        Raises:
            OutputError: The file cannot be written.
        """
        search = self.search
        if search.chosen is None:
            return
        about = {
            "size_bytes": search.chosen.size_bytes,
            **({} if search.objective.name == "bytes" else {search.objective.name: str(search.chosen.cost)}),
            "counted": search.plan.counted,
            "samples": str(self.span) if self.span else f"0:{search.samples}",
            "required": _requirement_report(self.search.requirement),
            "found": result_text(search.chosen.result, search.requirement.metric),
            "recovered": self.plain is not None,
            "verified": describe_verification(search, self.verified),
        }
        write_bytes(path, settings_bytes(SettingsFile(search.target, self.problem.assignments, self.layers), about))


@overload
def search(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = ...,
    options: SearchOptions = ...,
    *,
    progress: Progress = ...,
    **changes: Unpack[SearchKeywords],
) -> SearchResult: ...


@overload
def search(
    model: ModelSource,
    target: TargetOptions | str,
    samples: SampleSource = ...,
    *,
    options: BackwardOptions,
    progress: Progress = ...,
    **changes: Unpack[BackwardKeywords],
) -> BackwardResult: ...


@record_call
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

    The result depends on model, samples and options, not on the number of processes or machines.

    Args:
        model: Model to search.
        target: Target with selectable bits, and its settings.
        samples: Samples that judge a setting (default: 64 random ones, 32 for `BackwardOptions`); or labeled samples by
            `data`.
        options: `SearchOptions` for the cheapest setting, `BackwardOptions` for the last layer that needs more bits.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError, OptionError, InputError, FormatError, UnsupportedError: Options, samples or a model that do not fit.
    """
    samples, options = with_labels(samples, replace_options(options, changes))
    wanted = merge_settings(target, options.calibration)
    if isinstance(options, BackwardOptions):
        return backward(model, wanted, samples, options, progress)
    options.check()
    plain = None
    if options.recover and options.data is None and is_random(samples):
        raise UsageError(
            "--recover fits weights to samples similar to the device's input: name them with --data or --input"
        )
    subject = read_subject(
        model, wanted, samples, options, progress, options.span, options.verify, recovers=options.recover
    )
    if options.recover:
        subject = subject.with_recovery(options.span, RecoverySettings())
        unrecovered = replace(subject, recovering=None).problem(options.span)
        plain = _run_search(unrecovered, replace(options, recover=False), progress)
    problem = subject.problem(options.span)
    outcome = _run_search(problem, options, progress)
    verified, judging = None, problem
    if options.verify is not None and outcome.chosen is not None:
        judging = subject.problem(options.verify)
        verified = evaluate(judging, outcome.chosen.result.trial)
    beside, floating = beside_others(problem, outcome), float_result(judging, subject.model)
    return SearchResult(name_of(model), outcome, problem, options.span, verified, beside, plain, floating)


def _run_search(problem: Problem, options: SearchOptions, progress: Progress) -> PrecisionSearch:
    with open_evaluator(problem, options, progress) as evaluator:
        required = Requirement(options.score, options.min_sqnr, options.resolve_metric())
        return precision.search(evaluator, required, options.slack, objective_of(problem, options.objective))


def _requirement_report(requirement: Requirement) -> dict[str, Json]:
    """Return the requirement; accuracy_percent is the bound of a metric that is a share of correct predictions."""
    metric, score = requirement.metric, requirement.score
    report: dict[str, Json] = {
        "metric": metric.name,
        "accuracy_percent": score if metric.k else None,
        "sqnr_db": requirement.sqnr_db,
    }
    if not metric.k:
        report |= {"score": score, "is_lower_better": metric.is_lower_better}
    return report


def _front(search: PrecisionSearch) -> Json:
    """Return the chosen setting and every point of a search."""
    return {"chosen": _point(search, search.chosen), "points": [_point(search, point) for point in search.points]}


def _point(search: PrecisionSearch, point: Point | None) -> Json:
    return None if point is None else Table("", points_table(search).columns, [point]).records()[0]
