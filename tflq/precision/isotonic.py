"""What accuracy a ratio of signal to noise is worth: the rising function nearest to what many settings gave."""

from __future__ import annotations

from collections.abc import Sequence


def rising(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the values of the function that never falls and has the least squared differences from the given ones.

    Neighbours that fall are pooled into their mean until none falls (the pool-adjacent-violators algorithm: Ayer and
    others, Annals of Mathematical Statistics 26, 1955).

    Args:
        pairs: (place, value); places may be equal, and then share a value.

    Returns:
        A value for each pair, in their order.
    """
    pools: list[tuple[float, list[int]]] = []
    for place in sorted({place for place, _ in pairs}):
        members = [i for i, (other, _) in enumerate(pairs) if other == place]
        total = sum(pairs[i][1] for i in members)
        while pools and pools[-1][0] / len(pools[-1][1]) >= total / len(members):
            more, others = pools.pop()
            members, total = others + members, more + total
        pools.append((total, members))
    found = [0.0] * len(pairs)
    for total, members in pools:
        for i in members:
            found[i] = total / len(members)
    return found
