"""What results depend on: equal in another process, different wherever the result could be."""

import dataclasses
import functools
import json
import logging
import os
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocopt import LinearBandit, instances
from allocopt.base.errors import InvalidOption
from allocopt.base.long_runs.differences import canonical_text, differences
from allocopt.base.long_runs.identity import described
from allocopt.policies import UCB, LinTS

FACTOR = 1.0


def text(value):
    return canonical_text(described("x", value))


def plain(arm, t, rng, scale=1.0):
    return scale * rng.normal()


def with_global(x):
    return FACTOR * x


def calling(x):
    return with_global(x) + 1


def made(source):
    space = {}
    exec(source, space)
    return space["f"]


class Slotted:
    __slots__ = ("_hidden", "shown")

    def __init__(self, shown, hidden):
        self.shown, self._hidden = shown, hidden


@dataclasses.dataclass
class Record:
    a: float
    b: list = dataclasses.field(default_factory=list)

    @functools.cached_property
    def costly(self):
        return self.a**2


def subclass(rate):
    class Policy:
        step = rate

        def choose(self):
            return self.step

    return Policy()


large = np.arange(3000.0)
other = large.copy()
other[1500] += 1e-12  # where the repr of the array has dots
PAIRS = {
    "numbers of other types": (1, 1.0),
    "a number and a truth": (1, True),
    "zeros of either sign": (0.0, -0.0),
    "not a number and its name": (float("nan"), "nan"),
    "a list and a tuple": ([1, 2], (1, 2)),
    "the order of a dictionary": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "an entry of a large array": (large, other),
    "an array's type": (np.zeros(3), np.zeros(3, np.float32)),
    "an array's shape": (np.zeros((2, 3)), np.zeros((3, 2))),
    "an entry of a long list": (list(range(500)), [*range(499), 1]),
    "an object in an array": (np.array([1, "a"], object), np.array([1, "b"], object)),
    "a partial's keyword": (functools.partial(plain, scale=0.0), functools.partial(plain, scale=50.0)),
    "a partial's argument": (functools.partial(plain, 1), functools.partial(plain, 2)),
    "code": (made("def f(x): return x + 1"), made("def f(x): return x + 2")),
    "code in a function within": (made("def f(x): return (lambda: x)"), made("def f(x): return (lambda: x + 1)")),
    "a default": (made("def f(x=1): return x"), made("def f(x=2): return x")),
    "a keyword default": (made("def f(*, x=1): return x"), made("def f(*, x=2): return x")),
    "what is called": (made("import math\ndef f(x): return math.sin(x)"), made("import math\ndef f(x): return math.cos(x)")),
    "a private attribute": (Slotted(1, 2), Slotted(1, 3)),
    "a field": (Record(1.0, [1]), Record(1.0, [2])),
    "an attribute of a class": (subclass(1), subclass(2)),
    "a generator's state": (np.random.default_rng(0), np.random.default_rng(1)),
    "a bound generator": (np.random.default_rng(0).normal, np.random.default_rng(1).normal),
    "a parameter of a policy": (LinTS(a=1.0), LinTS(a=2.0)),
    "a policy": (UCB(), LinTS()),
    "a bandit": (LinearBandit(np.eye(2), [1, 0]), LinearBandit(np.eye(2), [1, 0.5])),
    "rationals": (Fraction(1, 3), Fraction(1, 4)),
    "a logger": (logging.getLogger("a"), logging.getLogger("b")),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_what_differs_is_described_differently(name):
    one, two = PAIRS[name]
    assert text(one) != text(two)
    assert text(one) == text(one)
    assert differences(described("x", one), described("x", two))


def test_copies_are_described_alike():
    assert text(large) == text(large.copy()) == text(np.repeat(large, 2)[::2])
    assert text(functools.partial(plain, scale=1.0, t=2)) == text(functools.partial(plain, t=2, scale=1.0))
    assert text(made("def f(x):\n    # why\n\n    return x")) == text(made("def f(x): return x"))
    assert text({3, 1, 2}) == text({2, 3, 1})
    assert text(np.float64(0.5)) == text(0.5)


def test_what_was_asked_of_an_object_before_says_nothing():
    one, two = Record(2.0), Record(2.0)
    assert two.costly == 4.0
    assert text(one) == text(two)
    b = LinearBandit(np.eye(3), [1, 0.5, 0.2])
    before = text(b)
    assert len(b.assumptions) == 0
    assert text(b) == before


def test_a_global_is_part_of_whatever_reads_it(monkeypatch):
    before = text(calling)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    assert text(calling) != before
    assert differences({"f": json.loads(before)}, {"f": described("x", calling)}) == [
        "f.with_global.FACTOR is 1.0 there and 2.0 here"
    ]


def test_a_module_of_the_users_own_counts_with_its_file_and_those_it_uses(tmp_path):
    (tmp_path / "deep.py").write_text("K = 1\ndef g(x): return x\n")
    (tmp_path / "near.py").write_text("import deep\ndef f(x): return deep.g(x)\n")
    code = (
        "import near, json\nfrom allocopt.base.long_runs.identity import described\n"
        "from allocopt.base.long_runs.differences import canonical_text\n"
        "def late(x):\n    import deep\n    return deep.K\n"
        "print(canonical_text([described('x', f) for f in (near.f, near, late)]))"
    )

    def run():
        path = {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "PYTHONHASHSEED": "random",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        out = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, text=True, check=True)
        return json.loads(out.stdout)

    first = run()
    assert run() == first  # in another process, with other hashes
    (tmp_path / "deep.py").write_text("K = 2\ndef g(x): return x\n")
    assert all(a != b for a, b in zip(first, run(), strict=True))


def test_it_may_contain_itself():
    loop: list = [1]
    loop.append(loop)
    assert described("x", loop) == {"list": [1, {"within": "x"}]}


def test_what_no_process_could_recognise_is_refused_by_name():
    with pytest.raises(InvalidOption, match=r"policy\._lock: a _thread\.lock cannot be recognised in another process"):
        described("policy", Slotted_with_lock())
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(InvalidOption, match="policy: nested too deeply"):
        described("policy", nested)


class Slotted_with_lock:
    def __init__(self):
        self._lock = threading.Lock()


class WithoutLock(Slotted_with_lock):
    def __getstate__(self):
        return {}


def test_an_object_may_say_itself_what_it_is():
    assert text(WithoutLock()) == text(WithoutLock())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(VALUES, VALUES)
def test_plain_data_is_described_alike_exactly_if_its_text_is_the_same(one, two):
    assert (text(one) == text(two)) == (repr(one) == repr(two))
    assert bool(differences(described("x", one), described("x", two))) == (repr(one) != repr(two))


def test_families_by_name_and_functions_of_installed_packages_are_named_with_their_version():
    said = described("x", instances.counter_example)
    assert said["function"].endswith(":counter_example") and set(said) == {"function", "version"}
    assert described("x", np.linalg.norm)["function"]["version"] == np.__version__
