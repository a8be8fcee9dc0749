"""Ports for tests: the virtual device on a pseudo-terminal, and boards that are silent or talk nonsense."""

from __future__ import annotations

import os
import pty
import select
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflq.benchmarks.device import Device
from tflq.benchmarks.serial_port import PseudoTerminal


@contextmanager
def device_port(device: Device) -> Iterator[str]:
    """Serve a virtual device and yield its port."""
    terminal = PseudoTerminal()
    thread = threading.Thread(target=terminal.serve, args=(device,))
    thread.start()
    try:
        yield terminal.path
    finally:
        terminal.stop()
        thread.join()
        terminal.close()


@contextmanager
def board_port(answer: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the port of a board that answers each read with `answer(bytes read)`."""
    board, host = pty.openpty()
    tty.setraw(host)
    end, stop = os.pipe()

    def serve() -> None:
        while True:
            ready, _, _ = select.select([board, end], [], [])
            if end in ready:
                return
            os.write(board, answer(os.read(board, 4096)))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield os.ttyname(host)
    finally:
        os.write(stop, b"x")
        thread.join()
        for descriptor in (board, host, end, stop):
            os.close(descriptor)
