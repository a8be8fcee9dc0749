"""Differences between two results of a conversion, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from artifacts.worker import Result

DIED = "the worker process died"
"""Message of a conversion that ended the process. It is no result: two of them count as different."""


def list_differences(base: Result, ours: Result) -> Iterator[str]:
    """Yield a line for each different file and message, and one for the tensors."""
    for key in ("refused", "unrun"):
        before, after = base.get(key), ours.get(key)
        if before != after or before == DIED:
            yield f"{key}: {before or 'no'} -> {after or 'no'}"
    if "refused" in base or "refused" in ours:
        return
    before, after = base["files"], ours["files"]
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"{name}: is missing"
        elif name not in before:
            yield f"{name}: is new"
        elif before[name] != after[name]:
            yield f"{name}: bytes differ"
    yield from _compare_tensors(base.get("tensors"), ours.get("tensors"))


def _compare_tensors(before: dict[str, str] | None, after: dict[str, str] | None) -> Iterator[str]:
    if before is None or after is None:
        return
    differing = [name for name in {**after, **before} if before.get(name) != after.get(name)]
    if differing:
        name = differing[0]
        state = "has other values" if name in before and name in after else "is new" if name in after else "is missing"
        yield f"{len(differing)} of {len(before)} tensors differ; the first, '{name}', {state}"
