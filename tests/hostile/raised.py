"""What every test of a limit asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tflq.errors import TflqError
from tflq.limits import Limits


def refused_unless_raised(what: Callable[[Limits], object], name: str, enough: int) -> str:
    """Check that one less than `enough` is refused in one line that says how to raise it, and `enough` is not."""
    what(Limits(**{name: enough}))
    with pytest.raises(TflqError) as error:
        what(Limits(**{name: enough - 1}))
    message = str(error.value)
    option = name.removeprefix("max_").replace("_", "-")
    assert message.count("\n") == 0
    assert f"{enough - 1} are allowed; raise the limit with limits {option}=N, TFLQ_{name.upper()}=N" in message
    return message
