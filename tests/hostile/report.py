"""The table of outcomes of damaged files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.hostile.campaign import Trial

OUTCOMES = ("refused", "runs", "crash", "hang", "memory")


def table(trials: Sequence[Trial]) -> str:
    """Markdown: rows are what tflq did, columns what TFLite did; then how often both agree, and the failures."""
    pairs = Counter((t.ours.outcome, t.theirs.outcome) for t in trials)
    theirs = [o for o in OUTCOMES if any(pairs[ours, o] for ours in OUTCOMES)]
    lines = ["| tflq \\ TFLite | " + " | ".join([*theirs, "all"]) + " |", "|---" * (len(theirs) + 2) + "|"]
    for ours in OUTCOMES:
        counts = [pairs[ours, o] for o in theirs]
        lines.append("| " + " | ".join([ours, *map(str, [*counts, sum(counts)])]) + " |")
    totals = [sum(pairs[ours, o] for ours in OUTCOMES) for o in theirs]
    lines.append("| " + " | ".join(["all", *map(str, [*totals, sum(totals)])]) + " |")
    agreement = Counter(t.agreement for t in trials)
    unregistered = sum(t.ours.outcome == "runs" and t.theirs.outcome == "refused" and t.is_unregistered for t in trials)
    longest = max((t.ours.seconds for t in trials), default=0.0)
    lines += [
        "",
        f"Where both run: {agreement['same']} times the same bits, {agreement['differ']} times other ones.",
        f"tflq runs {unregistered} files of which TFLite lacks the registration of an operator or version.",
        f"The longest that tflq took: {longest:.1f} s.",
        f"Failures: {sum(bool(t.failure) for t in trials)}.",
    ]
    return "\n".join(lines)


def line(trial: Trial) -> str:
    """One failure."""
    words = trial.ours.words or trial.theirs.words
    return (
        f"{trial.failure or 'refused by tflq alone'}: {trial.model} seed {trial.seed} ({trial.mutation}): {words[:300]}"
    )
