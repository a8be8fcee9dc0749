"""SKIP_GRAM: all groups of ngram_size words of the first string, with at most max_skip_size words left out in between.

With include_all_ngrams also shorter groups. Words end at white space; fewer than ngram_size of them give nothing.

Source: TFLite kernels/skip_gram.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type

PER_SAMPLE = True
_SPACES = b" \t\n\v\f\r"


@dataclass(frozen=True)
class SkipGram:
    """Which groups to list.

    Attributes:
        size: words of a group.
        skip: words left out between two neighbours, at most.
        shorter: whether smaller groups are listed too.
    """

    size: int
    skip: int
    shorter: bool


def lower(node: Node, operands: Operands) -> SkipGram:
    """Read the options.

    Raises:
        GraphError: a size below 1, or no string.
        UnsupportedError: other types than strings.
    """
    for tensor in (operands.input(0), operands.output()):
        require_type(tensor, (DType.STRING,))
    size = node.attributes.integer("ngram_size", 0)
    if size < 1 or not operands.input(0).size:
        raise GraphError(
            f"ngram_size is {size} and the input has {operands.input(0).size} strings; 1 or more are needed"
        )
    shorter = node.attributes.boolean("include_all_ngrams", False)
    return SkipGram(size, node.attributes.integer("max_skip_size", 0), shorter)


def run(params: SkipGram, x: Array) -> tuple[Array, ...]:
    """Run SKIP_GRAM: string[1, *shape] -> string[1, found]."""
    words = _words(bytes(x.reshape(-1)[0]))
    groups = list(_groups(params, words)) if len(words) >= params.size else []
    result = np.empty((1, len(groups)), object)
    result[0, :] = groups
    return (result,)


def _words(text: bytes) -> list[bytes]:
    words, begin = [], 0
    for i in range(1, len(text)):
        if text[i] in _SPACES:
            if i > begin and text[begin] not in _SPACES:
                words.append(text[begin:i])
            begin = i + 1
    return [*words, text[begin:]] if len(text) > begin else words


def _groups(params: SkipGram, words: list[bytes]) -> Iterator[bytes]:
    """Walk the places of the group's words: the deepest one moves on until its skip or the words end."""
    places, depth = [0] * params.size, 1
    while depth >= 0:
        if _may_advance(params, places, depth, len(words)):
            places[depth] += 1
            depth += 1
            if depth < params.size:
                places[depth] = places[depth - 1]
            continue
        if 0 < depth <= params.size and (params.shorter or depth == params.size):
            yield b" ".join(words[place] for place in places[:depth])
        depth -= 1


def _may_advance(params: SkipGram, places: list[int], depth: int, count: int) -> bool:
    if depth >= params.size or places[depth] + 1 >= count:
        return False
    return depth == 0 or places[depth] - places[depth - 1] <= params.skip
