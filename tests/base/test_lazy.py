"""Fields that are made when they are first asked for: once, and in one class with copies, replacements and pickles."""

import copy
import dataclasses
import pickle

import pytest

from allocopt.base.lazy import Lazy, LazyParts, lazy_fields, payload


@lazy_fields("first", "second")
@dataclasses.dataclass(frozen=True)
class Record:
    first: object
    second: object = 7
    third: int = 3


def counted(value):
    made = []
    return Lazy(lambda: made.append(value) or value), made


def test_a_value_is_made_when_it_is_first_asked_for_and_only_then():
    lazy, made = counted("x")
    record = Record(lazy)
    assert made == []
    assert (record.first, record.first, lazy.value) == ("x", "x", "x")
    assert made == ["x"]


def test_what_is_given_as_it_is_comes_back_as_it_is():
    record = Record("plain", second=None)
    assert (record.first, record.second, record.third) == ("plain", None, 3)
    assert Record("plain").second == 7  # the default


def test_a_record_stays_frozen_and_equal_by_its_values():
    lazy, _ = counted("x")
    record = Record(lazy)
    assert record == Record("x")
    assert repr(record) == "test_lazy.Record(first='x', second=7, third=3)".removeprefix("test_lazy.")
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.first = "y"


def test_replacing_one_field_keeps_the_others():
    lazy, _ = counted("x")
    other = dataclasses.replace(Record(lazy, second="s"), third=4)
    assert (other.first, other.second, other.third) == ("x", "s", 4)


def test_copies_are_the_same_record():
    record = Record("x", second=[1, 2])
    for twin in (copy.copy(record), copy.deepcopy(record)):
        assert twin == record
    assert copy.deepcopy(record).second is not record.second


def test_a_payload_is_what_was_given_whether_or_not_it_was_read():
    lazy, made = counted("x")
    record = Record(lazy)
    assert payload(record, "first") is lazy
    assert made == []
    assert record.first == "x"
    assert payload(record, "first") is lazy
    assert payload(record, "second") == 7


def test_fields_that_are_parts_of_one_value_are_made_together_and_once():
    made = []

    def make(third):
        made.append(third)
        return Record("x", second="y", third=third)

    both = LazyParts(make, 5)
    record = Record(both, second=both)
    assert made == []
    assert (record.second, record.first, record.first) == ("y", "x", "x")
    assert made == [5]
    assert dataclasses.replace(record, third=4) == Record("x", second="y", third=4)


def test_an_error_while_it_is_made_reaches_whoever_asks_each_time():
    asked = []

    def fail():
        asked.append(1)
        raise ZeroDivisionError

    record = Record(Lazy(fail))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            record.first  # noqa: B018
    assert len(asked) == 2


class Value:
    """Of a module's own, so that it can be pickled."""

    def __call__(self):
        return "made"


def test_a_lazy_value_can_be_pickled_before_and_after_it_is_made():
    lazy = Lazy(Value())
    assert pickle.loads(pickle.dumps(lazy)).value == "made"
    assert lazy.value == "made"
    assert pickle.loads(pickle.dumps(lazy)).value == "made"
