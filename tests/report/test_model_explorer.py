"""`compare --model-explorer` in Model Explorer's own server: what it draws has every tensor that is colored."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import tflq
from tests.support.faults import DIGITS

if importlib.util.find_spec("model_explorer") is None:
    pytest.skip("ai-edge-model-explorer is not installed: Model Explorer's server", allow_module_level=True)
_PATIENCE_S = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from model_explorer.cmdline import main; main()", str(DIGITS)]
    options = ["--no_open_in_browser", "--skip_health_check", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "server.log").open("w") as log:
        running = subprocess.Popen([*command, *options], stdout=log, stderr=log, env={**os.environ, "no_proxy": "*"})
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            running.kill()
            running.wait()


def asked(url: str, content: object = None) -> Any:
    """Ask the server, which may still be starting."""
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            with opener.open(request, timeout=_PATIENCE_S) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def test_the_server_draws_the_model_and_knows_every_tensor(server: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    tflq("compare", f"{DIGITS}@gap9-ne16", DIGITS, "-s", "weight_bits=4", "-n", "4", "--model-explorer", path)
    read = asked(f"{server}/api/v1/read_text_file?{urllib.parse.urlencode({'path': str(path)})}")
    data = json.loads(read["content"])["main"]["results"]
    command = {"cmdId": "convert", "extensionId": "builtin_tflite_flatbuffer", "modelPath": str(DIGITS), "settings": {}}
    drawn = asked(f"{server}/apipost/v1/send_command", {**command, "deleteAfterConversion": False})
    (graph,) = drawn["graphCollections"][0]["graphs"]
    assert graph["id"] == "main"
    outputs = {
        attribute["value"]
        for node in graph["nodes"]
        for output in node.get("outputsMetadata", [])
        for attribute in output["attrs"]
        if attribute["key"] == "tensor_name"
    }
    assert len(data) > 5
    assert set(data) <= outputs
