"""The sample axis: how arrays of several ranks meet when each has one leading axis that the model does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tflq.graph import Array


def align(*arrays: Array) -> tuple[Array, ...]:
    """Insert axes of length 1 after the sample axis until all ranks are equal.

    [S, C] next to [1, H, W, C] becomes [S, 1, 1, C]: the model's own shapes then broadcast as numpy's do.

    Args:
        arrays: each [S or 1, *shape].

    Returns:
        The arrays, views of the arguments, all of the same rank.
    """
    rank = max(a.ndim for a in arrays)
    return tuple(a.reshape(a.shape[:1] + (1,) * (rank - a.ndim) + a.shape[1:]) for a in arrays)


def with_rank(array: Array, rank: int) -> Array:
    """Remove axes of length 1 after the sample axis until `rank` axes are left: the inverse of `align`.

    [S, 1, 1, C] with rank 1 becomes [S, C].
    """
    return array.reshape(array.shape[:1] + array.shape[array.ndim - rank :])


def each_sample(x: Array, weights: Array, bias: Array | None) -> Iterator[tuple[Array, Array, Array | None]]:
    """Yield the operands [S or 1, *shape] of a layer for each sample, each as [1, *shape]."""

    def own(array: Array, s: int) -> Array:
        return array if len(array) == 1 else array[s : s + 1]

    for s in range(max(len(x), len(weights), 1 if bias is None else len(bias))):
        yield own(x, s), own(weights, s), None if bias is None else own(bias, s)


def run_each(run: Callable[..., tuple[Array, ...]], *arrays: Array | None) -> tuple[Array, ...]:
    """Run a kernel's function sample by sample, on operands [S or 1, *shape] that it takes as [1, *shape] only."""
    count = max(len(array) for array in arrays if array is not None)
    own = (tuple(None if a is None else a[s % len(a)][None] for a in arrays) for s in range(count))
    return tuple(np.concatenate(parts) for parts in zip(*(run(*one) for one in own), strict=True))


def join_vectors_and_rest(vectors: Array, rest: Array, size: int) -> Array:
    """Return elements of `vectors` as far as they fill whole vectors of a sample, then elements of `rest`.

    Args:
        vectors: Array T[S, *shape] with n elements a sample; the first size * floor(n / size) are used.
        rest: Array T[S, *shape].
        size: Elements of a vector.
    """
    samples, count = len(rest), rest[0].size if len(rest) else 0
    is_vector = np.arange(count) < count // size * size
    flat = np.where(is_vector, vectors.reshape(samples, -1), rest.reshape(samples, -1))
    return np.asarray(flat).reshape(rest.shape)
