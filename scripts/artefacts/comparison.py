"""Differences between two results of a conversion, one line each."""

from __future__ import annotations

from collections.abc import Iterator

from artefacts.worker import Result


def list_differences(base: Result, ours: Result) -> Iterator[str]:
    """Yield a line for each file, message, and the first tensor that differs."""
    for key in ("refused", "unrun"):
        before, after = base.get(key), ours.get(key)
        if before != after:
            yield f"{key}: {before or 'no'} -> {after or 'no'}"
    if "refused" in base or "refused" in ours:
        return
    before, after = base["files"], ours["files"]
    for name in sorted({*before, *after}):
        if name not in after:
            yield f"{name}: is no longer emitted"
        elif name not in before:
            yield f"{name}: is emitted now"
        elif before[name] != after[name]:
            yield f"{name}: bytes differ"
    yield from _tensor_differences(base.get("tensors"), ours.get("tensors"))


def _tensor_differences(before: dict[str, str] | None, after: dict[str, str] | None) -> Iterator[str]:
    if before is None or after is None:
        return
    differing = [name for name in {**after, **before} if before.get(name) != after.get(name)]
    if differing:
        first = differing[0]
        state = "is no longer computed" if first not in after else "is new" if first not in before else "has other values"
        yield f"{len(differing)} of {len(before)} tensors differ; the first, '{first}', {state}"
