"""help() explains every attribute of every public class, and dir() of the public modules holds nothing internal."""

import dataclasses
import enum
import inspect
import re
import types

import pytest
from public_members import MEMBERS

import allocopt as ao

MODULES = sorted(name for name in ao.__all__ if isinstance(getattr(ao, name), types.ModuleType))
HOLDERS = {"": ao, **{f"{name}.": getattr(ao, name) for name in MODULES}}
CLASSES = {
    f"{prefix}{name}": getattr(holder, name)
    for prefix, holder in HOLDERS.items()
    for name in holder.__all__
    if inspect.isclass(getattr(holder, name)) and not issubclass(getattr(holder, name), BaseException)
}
"""Every public class, those of the public modules too."""


def explained(documentation):
    """The names of the sections Parameters and Attributes of a docstring that have words of their own below."""
    found = set()
    for section in re.split(r"(?:^|\n)(?:Parameters|Attributes)\n-+\n", documentation)[1:]:
        section = re.split(r"\n\n\S[^\n]*\n-+\n", section)[0]
        for entry in re.finditer(
            r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : \S.*\n((?:[ ]{4,}.*\n?|\n)+)", section + "\n", re.MULTILINE
        ):
            if entry[2].split():
                found |= {name.strip("* ") for name in entry[1].split(",")}
    return found


def fields_of(cls):
    """The public fields of a dataclass; else nothing."""
    if not dataclasses.is_dataclass(cls):
        return set()
    return {f.name for f in dataclasses.fields(cls) if not f.name.startswith("_")}


@pytest.mark.parametrize("name", CLASSES)
def test_help_explains_every_field(name):
    cls = CLASSES[name]
    assert fields_of(cls) - explained(inspect.getdoc(cls) or "") == set()


@pytest.mark.parametrize("name", CLASSES)
def test_every_other_public_member_has_words_of_its_own(name):
    cls = CLASSES[name]
    if issubclass(cls, enum.Enum):
        return  # its members are its values, which are sentences
    members = [m for m in dir(cls) if not m.startswith("_") and m not in fields_of(cls)]
    inherited = {m for base in cls.__mro__ for m in explained(inspect.getdoc(base) or "")}
    assert [m for m in members if m not in inherited and not inspect.getdoc(inspect.getattr_static(cls, m))] == []


@pytest.mark.parametrize("name", MEMBERS)
def test_the_public_members_of_a_class_are_these_and_no_others(name):
    """Whoever adds one decides here whether it is for users; what is for the package itself begins with an underscore."""
    cls = CLASSES[name]
    assert sorted({m for m in dir(cls) if not m.startswith("_")} | fields_of(cls)) == sorted(MEMBERS[name].split())


def test_the_members_of_every_public_class_are_listed():
    own_lists = {n for n in CLASSES if n.startswith("policies.") or n.endswith("Settings")}
    assert set(CLASSES) - own_lists == set(MEMBERS)


@pytest.mark.parametrize("name", [n for n in CLASSES if n.startswith("policies.")])
def test_a_policy_has_the_interface_of_policies_and_its_own_parameters(name):
    """A tracking or batched policy has a few documented members more."""
    cls = CLASSES[name]
    if not issubclass(cls, ao.policies.Policy) or cls is ao.policies.Policy:
        return
    interface = {m for m in dir(ao.policies.Policy) if not m.startswith("_")} | explained(
        inspect.getdoc(ao.policies.Policy)
    )
    more = {m for m in dir(cls) if not m.startswith("_")} - interface - fields_of(cls)
    assert more <= {"batch_name", "most_batches", "counters"}


@pytest.mark.parametrize("name", MODULES)
def test_public_modules_show_what_is_public_and_nothing_else(name):
    module = getattr(ao, name)
    assert sorted(dir(module)) == sorted(module.__all__)
    assert all(hasattr(module, entry) for entry in module.__all__)


def test_the_package_shows_what_is_public_and_nothing_else():
    assert sorted(dir(ao)) == sorted(ao.__all__)
