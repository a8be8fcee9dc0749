"""Two tiers of tests; loaded with `-p tests.support.tiers` (pyproject.toml).

The quick tier runs each test function on a sample of its parameter sets and with fewer drawn examples. It is the
default; --all, or naming tests by path, node id, -k, -m or --lf, runs everything (docs/guides/limits.md).

Sample: of n parameter sets of a function, the ceil(n / 64) with the smallest SHA-256 of their node id. The sample
depends neither on the order of the tests nor on the workers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import settings

SHARE = 64
"""One of so many parameter sets of a function is in the quick tier; at least one."""
EXPENSIVE = ("tensorflow",)
"""Words of node ids that the sample takes last: a process that imports tensorflow takes 3 s."""
EXAMPLES = 3
"""Examples that hypothesis draws for a test in the quick tier, at most."""

_SPREAD = "tests/parallel/test_spread.py::test_run_gives_the_same_bytes"
_CLUSTER = "tests/parallel/test_workers.py::test_a_cluster_of_two_workers_finds_the_same"
_ARTIFACTS = "tests/scripts/test_compare_artifacts.py::test_tensors_are_compared_and_a_revision_is_cached"
_DETECTOR = "tests/scripts/test_detector.py::test_everything_from_image_to_boxes_is_integer"
_FEATURES = "tests/sampling/test_described_data.py::test_samples_reach_a_quantized_input_as_its_codes"
_EXTENDING = "tests/extending/test_extending.py::test_convert_writes_its_files"
_PROCESSES = {
    "tests/cli/test_demo.py::test_commands_of_the_story_run": "tests/cli/test_demo.py::test_story",
    "tests/cli/test_verify.py::test_tensorflow_is_an_oracle_too": (
        "tests/oracle/test_oracle.py::test_identity_names_package_version_and_kernels"
    ),
    "tests/parallel/test_spread.py::test_verify_finds_the_same": _SPREAD,
    "tests/parallel/test_spread.py::test_bench_measures_the_same": _SPREAD,
    "tests/parallel/test_spread.py::test_compare_finds_the_same": _SPREAD,
    "tests/parallel/test_spread.py::test_a_cluster_gives_the_same_when_a_worker_is_killed": _CLUSTER,
    "tests/parallel/test_workers.py::test_a_worker_that_is_killed_loses_nothing": _SPREAD,
    "tests/parallel/test_workers.py::test_work_that_kills_every_worker_is_one_line": _CLUSTER,
    "tests/parallel/test_workers.py::test_processes_find_the_same": (
        "tests/cli/test_search_metric.py::test_fewer_errors_choose_what_more_right_answers_do"
    ),
    "tests/extending/test_extending.py::test_run_gives_every_tensor": _EXTENDING,
    "tests/extending/test_extending.py::test_bench_counts": _EXTENDING,
    "tests/extending/test_extending.py::test_compare_ranks_its_layers": _EXTENDING,
    "tests/extending/test_extending.py::test_export_writes_vectors": _EXTENDING,
    "tests/scripts/test_compare_artifacts.py::test_a_checkout_equals_itself": _ARTIFACTS,
    "tests/scripts/test_compare_artifacts.py::test_a_process_that_dies_is_a_difference": (
        "tests/scripts/test_compare_artifacts.py::test_the_death_of_a_process_is_not_cached"
    ),
    "tests/scripts/test_compare_artifacts.py::test_bytes_of_files_are_compared": _ARTIFACTS,
    "tests/scripts/test_compare_artifacts.py::test_names_of_files_are_compared": _ARTIFACTS,
    "tests/scripts/test_compare_artifacts.py::test_refusals_are_compared": _ARTIFACTS,
}
_TENSORFLOW = {
    "tests/interpreter/aipu/test_nms.py::test_the_same_boxes_stay": (
        "tests/interpreter/aipu/test_nms.py::test_classes_in_integers"
    ),
    "tests/interpreter/aipu/test_pyramid_levels.py::test_agrees_with_tensorflow_on_every_level": (
        "tests/interpreter/aipu/test_pyramid_levels.py::test_limits_of_the_levels"
    ),
    "tests/sampling/test_described_data.py::test_keyword_features_agree_with_tf_signal": _FEATURES,
    "tests/sampling/test_described_data.py::test_filter_bank_energies_agree_with_tf_signal": _FEATURES,
    "tests/scripts/test_detector_pieces.py::test_crops_are_tensorflows": _DETECTOR,
    "tests/scripts/test_detector_pieces.py::test_suppression_is_tensorflows": _DETECTOR,
    "tests/scripts/test_network.py::test_the_box_head_of_the_graph_is_the_trained_one": _DETECTOR,
    "tests/scripts/test_network.py::test_normalization_is_folded_into_the_weights": _DETECTOR,
}
FULL_ONLY = {
    **_PROCESSES,
    **_TENSORFLOW,
    "tests/support/test_judges.py::test_files_without_an_outside_judge_do_not_become_more": (
        "tests/support/test_judges.py::test_judges_are_told_by_the_code"
    ),
    "tests/converters/gap9/test_forms.py::test_so_many_are_taken": (
        "tests/converters/gap9/test_forms.py::test_near_what_the_model_computes"
    ),
    "tests/converters/nnie/test_forms.py::test_so_many_are_taken": (
        "tests/converters/nnie/test_forms.py::test_near_what_the_model_computes"
    ),
}
"""Functions of the full tier only, each expensive, with the function of the quick tier that covers the behavior."""

_is_quick = pytest.StashKey[bool]()
_left_out = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run all parameter sets with all their examples")
    parser.addoption("--quick", action="store_true", help="run the quick tier of the named tests")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "every: all parameter sets of this function are in the quick tier")
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[_is_quick] = not _names_tests(config) if workerinput is None else workerinput["quick"]
    config.stash[_left_out] = 0


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the tier to a worker of xdist, which does not see the arguments of the command line."""
    node.workerinput["quick"] = node.config.stash[_is_quick]


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Collect without garbage collection: no cycle of 30 000 tests ends before the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Draw the sample before pytest makes a test of each parameter set; it has no public way to drop some."""
    yield
    is_sampled = metafunc.definition.get_closest_marker("every") is None
    if metafunc.config.stash[_is_quick] and is_sampled and len(metafunc._calls) > 1:
        of_ids = {f"{metafunc.definition.nodeid}[{call.id}]": call for call in metafunc._calls}
        kept = draw_sample(list(of_ids))
        metafunc.config.stash[_left_out] += len(of_ids) - len(kept)
        metafunc._calls = [call for node_id, call in of_ids.items() if node_id in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.stash[_is_quick]:
        return
    count = len(items)
    items[:] = [item for item in items if item.nodeid.split("[")[0] not in FULL_ONLY]
    config.stash[_left_out] += count - len(items)
    for item in items:
        _draw_fewer_examples(getattr(item, "obj", None))


def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash[_left_out]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the number of tests that a worker left out; it is the same in each."""
    node.config.stash[_left_out] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write how many tests the quick tier left out, and how they run."""
    if config.stash[_is_quick]:
        terminalreporter.section("quick tier")
        terminalreporter.line(f"{config.stash[_left_out]:6d}  left out; scripts/test --all (pytest --all) runs all")


@pytest.fixture(scope="session")
def quick(pytestconfig: pytest.Config) -> bool:
    """Whether the quick tier runs: tests that draw in loops of their own draw fewer then."""
    return pytestconfig.stash[_is_quick]


def draw_sample(node_ids: Sequence[str]) -> set[str]:
    """Return the quick tier's sample of one function's node ids."""
    in_order = sorted(node_ids, key=_order)
    return set(in_order[: -(-len(node_ids) // SHARE)])


def _order(node_id: str) -> tuple[bool, bytes]:
    parameters = node_id.partition("[")[2]
    return any(word in parameters for word in EXPENSIVE), sha256(node_id.encode()).digest()


def _names_tests(config: pytest.Config) -> bool:
    """Whether the command line requests all tests, or names some without --quick."""
    if config.option.quick:
        return False
    chosen = ("all", "keyword", "markexpr", "lf", "failedfirst")
    is_named = config.args_source is pytest.Config.ArgsSource.ARGS
    return is_named or any(getattr(config.option, name, None) for name in chosen)


def _draw_fewer_examples(function: Any) -> None:
    """Lower the number of examples of a test of hypothesis, which has no public way to do so after the decorator."""
    if getattr(function, "is_hypothesis_test", False):
        stated = getattr(function, "_hypothesis_internal_use_settings", None) or settings()
        fewer = settings(stated, max_examples=min(stated.max_examples, EXAMPLES))
        function._hypothesis_internal_use_settings = fewer
