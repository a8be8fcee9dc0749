"""How damage found deep in a buffer becomes one FormatError that says where."""

from __future__ import annotations

from tflq.errors import FormatError


class DamageError(Exception):
    """Damage at some field; every table and vector on the way up adds its step to the path."""

    def __init__(self, found: str, allowed: str, advice: str = "the file is damaged: get it again") -> None:
        super().__init__(found)
        self.found = found
        self.allowed = allowed
        self.advice = advice
        self.steps: list[str] = []

    def within(self, step: str) -> DamageError:
        """Add the step that led here and return the error."""
        self.steps.append(step)
        return self

    def at(self, where: str, root: str) -> FormatError:
        """Return the one line for the user: file, path of the field, what was found, what is allowed, what to do."""
        path = root + "".join(reversed(self.steps))
        return FormatError(f"{where}: {path}: found {self.found}; allowed is {self.allowed}; {self.advice}")
