"""What `--target all` says of scores over random samples: one answer to all of them, and near ties."""

from __future__ import annotations

import numpy as np

from tflq.benchmarks.all_targets import artifacts_of_chance, describe_single_class


def test_one_class_for_all_random_samples() -> None:
    theirs = np.tile([0.1, 0.9, 0.0], (40, 1))
    theirs[0] = [0.9, 0.1, 0.0]
    words = "no score: the model returns class 1 for 39 of 40 random samples; name samples of its task"
    assert describe_single_class(theirs) == (words,)
    theirs[1:3] = [0.9, 0.1, 0.0]
    assert describe_single_class(theirs) == ()


def test_near_ties_are_counted_among_those_that_differ() -> None:
    theirs = np.array([[0.50, 0.49], [0.9, 0.1], [0.1, 0.9], [0.48, 0.50], [0.0, 1.0]])
    ours = np.array([[0.49, 0.50], [0.1, 0.9], [0.1, 0.9], [0.48, 0.50], [0.0, 1.0]])
    (words,) = artifacts_of_chance(ours, theirs)
    assert words.startswith("random samples: 1 of 2 that differ are near ties of the model")


def test_clear_answers_are_no_artifact() -> None:
    theirs = np.array([[0.9, 0.1], [0.1, 0.9], [0.2, 0.8]])
    assert artifacts_of_chance(theirs[::-1], theirs) == ()
    assert artifacts_of_chance(np.ones((3, 1)), np.ones((3, 1))) == ()
