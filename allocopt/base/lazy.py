"""Fields of dataclasses that are made when they are first asked for.

A field that `lazy_fields` names takes a value or a `Lazy`, which stands for the value until somebody reads the field. So a
frozen dataclass stays one class, with one constructor, `dataclasses.replace`, copies and pickles, whether its arrays are at
hand or would be as long as all arms of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["Lazy", "LazyParts", "lazy_fields", "payload"]

_Class = TypeVar("_Class")


class Lazy:
    """A value that is made once, when it is first asked for: by ``make(*arguments)``."""

    def __init__(self, make: Callable[..., Any], *arguments: Any) -> None:
        self._make: Callable[..., Any] | None = make
        self._arguments = arguments
        self._value: Any = None

    @property
    def value(self) -> Any:
        """The value."""
        if self._make is not None:  # two threads may both make it, which does no harm
            self._value = self._make(*self._arguments)
            self._make, self._arguments = None, ()
        return self._value

    def part(self, name: str) -> Any:
        """What stands for a field of this name: here the value, whatever the name."""
        return self.value


class LazyParts(Lazy):
    """Several fields at once: each is the attribute of its name of the value."""

    def part(self, name: str) -> Any:
        """What stands for a field of this name."""
        return getattr(self.value, name)


class _LazyField:
    """Reads through a `Lazy`."""

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.place = name, f"_{name}"
        self.default = default

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.default
        value = getattr(instance, self.place)
        return value.part(self.name) if isinstance(value, Lazy) else value

    def __set__(self, instance: Any, value: Any) -> None:
        object.__setattr__(instance, self.place, value)  # dataclasses may be frozen


def lazy_fields(*names: str) -> Callable[[type[_Class]], type[_Class]]:
    """Class decorator, above ``dataclass``: these fields may be given as a `Lazy`."""

    def decorate(cls: type[_Class]) -> type[_Class]:
        for name in names:
            setattr(cls, name, _LazyField(name, getattr(cls, name, None)))
        return cls

    return decorate


def payload(instance: Any, name: str) -> Any:
    """What a lazy field was given: its `Lazy`, where it has one, whether or not it was read since."""
    return getattr(instance, f"_{name}")
