"""Files at the root that people and services read first: lengths, versions, links to what exists."""

from __future__ import annotations

import re

import pytest

import tflq
from tests.support.tracked import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: it comes with tflq[docs]")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_readme_is_short():
    text = read("README.md")
    assert len(text.splitlines()) <= 120
    assert text.count("<img ") == 1
    assert {"scripts/demo", "scripts/test"} <= set(text.split())


def test_citation_names_the_version():
    assert yaml.safe_load(read("CITATION.cff"))["version"] == tflq.__version__


def test_the_changelog_keeps_its_form():
    text = read("CHANGELOG.md")
    headings = re.findall(r"^### (.*)", text, re.MULTILINE)
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Integers"}
    versions = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert versions[0] == "Unreleased" or versions[0].startswith(f"[{tflq.__version__}]")


@pytest.mark.parametrize("name", ["wrong_result", "refused_model"])
def test_issue_forms_request_the_model_as_text(name):
    form = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}.yml"))
    required = {part["id"] for part in form["body"] if part.get("validations", {}).get("required")}
    assert {"inspect", "graph"} <= required


def test_the_action_runs_a_baseline():
    action = yaml.safe_load(read("action.yml"))
    assert "tflq verify" in action["runs"]["steps"][-1]["run"]
    assert action["inputs"]["baseline"]["required"] is True


def test_workflow_and_hooks_run_scripts_that_exist():
    workflow, hooks = yaml.safe_load(read(".github/workflows/ci.yml")), yaml.safe_load(read(".pre-commit-config.yaml"))
    commands = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    commands += [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    named = {name for command in commands for name in re.findall(r"(?:^|\s)((?:\.ci|scripts)/\w+)", command)}
    assert {".ci/run", "scripts/test", "scripts/words"} <= named
    assert [name for name in named if not (ROOT / name).is_file()] == []
