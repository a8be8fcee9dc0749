"""Checked access to the keys of a JSON object: what is unknown, missing or of another kind is one clear line."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tflq.errors import InputError


class Keys:
    """The keys of one object of a file.

    Every access names a key that the object may have; `finish` refuses the others.
    """

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = values
        self.where = where
        self._known: set[str] = set()

    def choice(self, key: str, allowed: Collection[str], default: str | None = None) -> str:
        """Return one of several words."""
        value = self._take(key, default)
        if value not in allowed:
            raise InputError(f"{self.where}: {key} is {value!r}; allowed is {', '.join(map(repr, allowed))}")
        return str(value)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._take(key, default)
        if not isinstance(value, str) or not value:
            raise InputError(f"{self.where}: {key} is {value!r}; a text is needed")
        return value

    def whole(self, key: str, default: int | None = None, least: int = 1) -> int:
        """Return a whole number, a positive one unless told."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            what = "a positive whole number" if least else "a whole number from 0 on"
            raise InputError(f"{self.where}: {key} is {value!r}; {what} is needed")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InputError(f"{self.where}: {key} is {value!r}; a number is needed")
        return float(value)

    def numbers(self, key: str, default: float, counts: Collection[int]) -> tuple[float, ...]:
        """Return a number, or a list of as many as one of `counts`."""
        value = self._take(key, default)
        listed = value if isinstance(value, list) else [value]
        found = tuple(float(v) for v in listed if isinstance(v, (int, float)) and not isinstance(v, bool))
        if len(listed) not in counts or len(found) < len(listed):
            sizes = " or ".join(map(str, sorted(counts)))
            raise InputError(f"{self.where}: {key} is {value!r}; {sizes} numbers are needed")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of different texts; empty where the key is absent."""
        value = self._take(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or len(set(value)) < len(value):
            raise InputError(f"{self.where}: {key} is {value!r}; a list of different texts is needed")
        return tuple(value)

    def sizes(self, key: str) -> tuple[int, int]:
        """Return [height, width]."""
        value = self._take(key, None)
        if not isinstance(value, list) or len(value) != 2 or not all(type(n) is int and n > 0 for n in value):
            raise InputError(f"{self.where}: {key} is {value!r}; [height, width] is needed")
        return value[0], value[1]

    def inner(self, key: str) -> Keys:
        """Return an object inside this one; an absent one has no keys."""
        value = self._take(key, {})
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: {key} is {value!r}; an object is needed")
        return Keys(value, f"{self.where}: {key}")

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        unknown = [key for key in self._values if key not in self._known]
        if unknown:
            known = ", ".join(sorted(self._known))
            raise InputError(f"{self.where}: unknown key '{unknown[0]}'; known are {known}")

    def _take(self, key: str, default: object) -> object:
        self._known.add(key)
        if key not in self._values and default is None:
            raise InputError(f"{self.where}: the key '{key}' is missing")
        return self._values.get(key, default)
