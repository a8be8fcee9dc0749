"""What the set of differing elements says by itself: channels permuted, doubled, dead, too high or too low."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.analysis.diagnosis.hypothesis import Prediction
from tflq.analysis.diagnosis.suspect import Suspect
from tflq.units import listed


def permuted(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] = r[..., p(c)]: channels hold those of others."""
    if s.got.ndim < 3 or not s.wrong_channels:
        return
    g, r = (np.ascontiguousarray(a.reshape(-1, a.shape[-1]).T) for a in (s.got, s.sound))
    known: dict[bytes, list[int]] = {}
    for c in range(len(r)):
        known.setdefault(r[c].tobytes(), []).append(c)
    source = {c: known.get(g[c].tobytes()) for c in s.wrong_channels}
    found = {c: e[0] for c, e in source.items() if e is not None and len(np.unique(g[c])) > 1}
    if not found:
        return
    made = s.sound.copy()
    for c, e in found.items():
        made[..., c] = s.sound[..., e]
    pairs = ", ".join(f"{c} holds {e}" for c, e in list(found.items())[:6])
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    is_swap = len(found) == 2 and all(found.get(e) == c for c, e in found.items())
    is_permutation = set(found) == set(found.values())
    if is_swap:
        words = f"channels {listed(list(found))} are exchanged"
    elif is_permutation:
        words = f"channels are permuted: {pairs}{more}"
    else:
        words = f"channels hold copies of others: {pairs}{more}"
    yield Prediction(words, made)


def dead(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] is constant: channels that are dead."""
    if not s.wrong_channels or len(s.got) * s.got[0].size // s.got.shape[-1] < 2:
        return
    g = s.got.reshape(-1, s.got.shape[-1])
    made, found = s.sound.copy(), []
    for c in s.wrong_channels:
        if (g[:, c] == g[0, c]).all():
            found.append(c)
            made[..., c] = g[0, c]
    if found:
        values = sorted({g[0, c].item() for c in found})
        value = f"constant {values[0]}" if len(values) == 1 else "constant, each with its own value"
        yield Prediction(f"{_are(found)} {value}", made)


def offset(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] = saturate(r[..., c] + d): channels are too high or too low by one number."""
    if s.got.dtype.kind not in "iu" or s.got.dtype.itemsize > 2 or not s.wrong_channels:
        return
    kind = np.iinfo(s.got.dtype.name)
    made, found = s.sound.astype(np.int64), {}
    difference = s.got.astype(np.int64) - made
    for c in s.wrong_channels:
        inner = difference[..., c][s.wrong[..., c]]
        d = int(inner[np.argmax(np.abs(inner))])
        found[c] = d
        made[..., c] = np.clip(s.sound[..., c].astype(np.int64) + d, kind.min, kind.max)
    amounts = sorted(set(found.values()))
    if len(amounts) == 1:
        side = "high" if amounts[0] > 0 else "low"
        where = "all channels are" if len(found) == s.got.shape[-1] else _are(list(found))
        yield Prediction(f"{where} {abs(amounts[0])} too {side}", made.astype(s.got.dtype))


def _are(channels: list[int]) -> str:
    several = len(channels) > 1
    return f"channel{'s' * several} {listed(channels)} {'are' if several else 'is'}"
