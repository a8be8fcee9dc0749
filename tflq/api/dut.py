"""`tflq.dut`: a virtual device under test on a pseudo-terminal, for MLCommons' runner and other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.api.options import CalibrationOptions, TargetOptions, replace_options
from tflq.api.read_model import ModelSource, read_model
from tflq.api.target import Arithmetic, choose_execution, merge_settings
from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.interface_board import InterfaceBoard
from tflq.benchmarks.serial_port import PseudoTerminal, create_link
from tflq.benchmarks.tasks import find_task
from tflq.errors import UsageError
from tflq.interpreter.runtimes import REFERENCE, RuntimeName

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import DutKeywords


@dataclass(frozen=True)
class DutOptions:
    """Options of a virtual device.

    Attributes:
        target: Target to quantize for (default: the unchanged model).
        arithmetic: Arithmetic to compute: tflite, the params of TFLite's reference kernels; float, the model's float
            view (default: the target's, or tflite without a target).
        runtime: Runtime to compute the integers of, without a target.
        calibration: Ranges for the target.
        time_us: Time of an inference in microseconds, which the device reports and waits for (default: the measured
            time).
        name: Name that the device reports (default: tflq and the arithmetic).
        streams: Folder of recordings for sww01; the device then emulates the device and the interface board that plays
            them, as the runner requests.
        link: Symbolic link to the port while the device runs, as a constant name.
    """

    target: TargetOptions | str | None = None
    arithmetic: Arithmetic | None = None
    runtime: RuntimeName = REFERENCE
    calibration: CalibrationOptions = CalibrationOptions()
    time_us: int | None = None
    name: str | None = None
    streams: Path | None = None
    link: Path | None = None


@dataclass(frozen=True)
class VirtualDevice:
    """A device that waits for a host.

    Attributes:
        port: Path of the port, which a host opens in the same way as a board's port.
        terminal: Pseudo-terminal on the device's end of the port.
        device: Device that executes the commands.
    """

    port: str
    terminal: PseudoTerminal
    device: Device

    def serve(self) -> None:
        """Execute commands until interrupted, or until the terminal is stopped from another thread."""
        self.terminal.serve(self.device)


@contextmanager
def dut(
    model: ModelSource, task: str, options: DutOptions = DutOptions(), **changes: Unpack[DutKeywords]
) -> Iterator[VirtualDevice]:
    """Yield a virtual device that runs a model under the serial protocol of MLPerf Tiny; its port is open in the block.

    Args:
        model: Model to run.
        task: Task of the model: kws01, vww01, ic01, ic02, ad01, sww01.
        options: Arithmetic, times and names.
        **changes: Fields of the options, by name.

    Raises:
        OptionError, UnsupportedError: A task, target or model that do not fit, or a system without pseudo-terminals.
    """
    options = replace_options(options, changes)
    target, chosen_task = merge_settings(options.target, options.calibration), find_task(task)
    arithmetic, runtime = options.arithmetic, options.runtime
    execution = choose_execution(read_model(model), target, options.calibration, arithmetic=arithmetic, runtime=runtime)
    inference = Inference(chosen_task, execution)
    inference.check()
    name = options.name or f"tflq {execution.name}"
    if options.streams is None:
        device = Device(inference, name, options.time_us)
    elif chosen_task.name != "sww01":
        raise UsageError(f"--streams needs task sww01; the task is {chosen_task.name}")
    else:
        device = InterfaceBoard(inference, name, options.time_us, folder=options.streams)
    terminal = PseudoTerminal()
    try:
        with create_link(terminal.path, options.link):
            yield VirtualDevice(str(options.link or terminal.path), terminal, device)
    finally:
        terminal.close()
