"""The repository keeps its promises: one package in the wheel, links at the top, a light import, no private names."""

from __future__ import annotations

import configparser
import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tflq
from tests.support.tracked import LINK_MODE, ROOT, git, tracked_files

LINKS = ("converters", "interpreter", "schemas")

# The extras, and of the core dependencies those that only the command line needs.
NOT_IMPORTED = {
    *("tensorflow", "tflite_runtime", "tflite_micro", "ai_edge_litert", "keras", "jax", "torch"),
    *("onnx", "onnxruntime", "openvino", "jinja2", "pooch", "serial", "sklearn", "jsonschema", "pandas"),
    *("click", "rich"),
}

# Written so that no pattern matches its own source.
PRIVATE_NAMES = {
    "a path of one machine": rb"(?<![\w.])/(?:work|root|tmp|home/\w+)\b",
    "a folder outside the repository": rb"\.\./(?:shared|\.?library)\b|\.librar[y]/",
    "a package registry": rb"\b(?:pypi|pythonhosted|npmjs|debian|golang)\.(?:or[g]|co[m])\b",
    "a working session": rb"(?i)\b(?:this|earlier|previous|next|other|developer'?s?) sessio[n]s?\b",
}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Build the wheel of a copy of the tracked files, without network and without touching the work tree."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed: the wheel cannot be built without the network (tflq[test] has it)")
    folder = tmp_path_factory.mktemp("wheel")
    for file in tracked_files():
        target = folder / "source" / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file.path, target, follow_symlinks=False)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(folder), str(folder / "source")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_wheel_holds_one_package(wheel_names: list[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names} == {"tflq", f"tflq-{tflq.__version__}.dist-info"}


def test_wheel_holds_every_tracked_file_of_the_package(wheel_names: list[str]) -> None:
    tracked = {file.path for file in tracked_files() if file.path.startswith("tflq/")}
    assert {name for name in wheel_names if name.startswith("tflq/")} == tracked


def test_wheel_holds_data_and_licenses(wheel_names: list[str]) -> None:
    assert {"tflq/py.typed", "tflq/data/digits.tflite", "tflq/data/digits_test.npz"} <= set(wheel_names)
    assert {"LICENSE", "NOTICE"} <= {Path(name).name for name in wheel_names if ".dist-info/" in name}


@pytest.mark.parametrize("name", LINKS)
def test_top_level_name_is_a_committed_link(name: str) -> None:
    (file,) = (file for file in tracked_files() if file.path == name)
    assert file.mode == LINK_MODE
    assert git("cat-file", "blob", file.object_id) == f"tflq/{name}"
    assert (ROOT / "tflq" / name / "__init__.py").is_file()


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("statement", ["import {}", "from {} import registry", "import {}.tflite"])
def test_ruff_bans_the_bare_name(name: str, statement: str) -> None:
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed: it comes with tflq[lint]")
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--stdin-filename", "tflq/example.py", "-"]
    source = statement.format(name) + "\n"
    done = subprocess.run(command, cwd=ROOT, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert f"import tflq.{name}" in done.stdout


def test_ruff_reads_every_python_file() -> None:
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed: it comes with tflq[lint]")
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    read = {str(Path(line).relative_to(ROOT)) for line in done.stdout.splitlines()}
    ours = {file.path for file in tracked_files() if file.path.endswith(".py") and (ROOT / file.path).exists()}
    assert ours <= read


def test_import_loads_no_optional_package() -> None:
    program = "import sys, tflq; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "tflq" in loaded
    assert not loaded & NOT_IMPORTED


@pytest.mark.parametrize("what", PRIVATE_NAMES)
def test_no_tracked_file_names(what: str) -> None:
    pattern = re.compile(PRIVATE_NAMES[what])
    found = [
        f"{file.path}: {match.group().decode(errors='replace')}"
        for file in tracked_files()
        if file.mode != LINK_MODE
        for match in pattern.finditer((ROOT / file.path).read_bytes())
    ]
    assert not found


def extras() -> dict[str, set[str]]:
    """Return extra -> names of the packages that it installs, from setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    section = config["options.extras_require"]
    return {name: {re.split(r"[\[<>=;]", line)[0] for line in section[name].split("\n") if line} for name in section}


def test_the_table_of_extras_is_right() -> None:
    readme = (ROOT / "docs" / "guides" / "install.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", readme[readme.index("| extra |") :], re.MULTILINE))
    known = extras()
    assert set(rows) == set(known)
    for name in known.keys() - {"test"}:
        assert set(rows[name].split(", ")) == known[name], name
    users = set().union(*(known[name] for name in known.keys() - {"test", "lint", "pandas", "docs", "tflite-micro"}))
    assert users <= known["test"]
    added = rows["test"].removeprefix("these except pandas, and ").split(", ")
    assert known["test"] - users == set(added)


def test_the_first_installation_takes_a_model_to_every_target() -> None:
    """Packages of other extras cannot be imported."""
    readme = (ROOT / "docs" / "guides" / "install.md").read_text("utf-8")
    found = re.search(r"^pip install '\.\[([\w,]+)\]'", readme, re.MULTILINE)
    assert found is not None
    known, chosen = extras(), found.group(1).split(",")
    installed = set().union(*(known[name] for name in chosen))
    hidden = set().union(*known.values()) - installed - {"setuptools", "pytest"}
    modules = {"pillow": "PIL", "pyserial": "serial", "scikit-learn": "sklearn", "opencv-python-headless": "cv2"}
    names = sorted(modules.get(name, name.replace("-", "_")) for name in hidden)
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({names}));"
        "import tflq; from tflq.api.demo import demo_model_path;"
        "found = tflq.convert_all(demo_model_path(), samples=tflq.SampleOptions(count=2));"
        "print([(row.target, row.constraints) for row in found.targets if row.refused])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
