"""help() explains every attribute of every public class, and dir() of the public modules holds nothing internal."""

import dataclasses
import inspect
import re
import types

import pytest

import allocopt as ao

MODULES = sorted(name for name in ao.__all__ if isinstance(getattr(ao, name), types.ModuleType))
CLASSES = sorted(
    name
    for name in ao.__all__
    if inspect.isclass(getattr(ao, name)) and not issubclass(getattr(ao, name), BaseException)
)
OWN = {"LinearBandit": {"store", "survey", "best_row"}, "AllocationProgram": {"target_arms", "origin"},
       "ContextualBandit": {"arms", "gaps", "assumptions"}, "StudySpec": None}  # fmt: skip
"""Fields that users do not pass: those with a comment of their own in the source, or (StudySpec) a TOML file behind them."""


def explained(documentation):
    """The names of the sections Parameters and Attributes of a docstring, each with some words below or a type."""
    found = set()
    for section in re.split(r"\n\s*(?:Parameters|Attributes)\n\s*-+\n", documentation)[1:]:
        for line in section.splitlines():
            entry = re.match(r"\s{0,4}(\*{0,2}\w+(?:, \w+)*) : \S", line)
            if entry:
                found |= {name.strip("* ") for name in entry[1].split(",")}
    return found


@pytest.mark.parametrize("name", CLASSES)
def test_help_explains_every_field(name):
    cls = getattr(ao, name)
    if not dataclasses.is_dataclass(cls) or OWN.get(name, ()) is None:
        pytest.skip("no fields of its own")
    fields = {f.name for f in dataclasses.fields(cls) if not f.name.startswith("_")} - OWN.get(name, set())
    assert fields - explained(inspect.getdoc(cls)) == set()


@pytest.mark.parametrize("name", CLASSES)
def test_every_other_public_member_has_words_of_its_own(name):
    cls = getattr(ao, name)
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    members = [m for m in dir(cls) if not m.startswith("_") and m not in fields]
    if name == "Status":
        return  # its members are its values, which are sentences
    assert [m for m in members if not inspect.getdoc(inspect.getattr_static(cls, m))] == []


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_show_what_is_public_and_nothing_else(name):
    module = getattr(ao, name)
    assert sorted(dir(module)) == sorted(module.__all__)
    assert all(hasattr(module, entry) for entry in module.__all__)


def test_the_package_shows_what_is_public_and_nothing_else():
    assert sorted(dir(ao)) == sorted(ao.__all__)
