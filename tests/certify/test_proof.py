"""Proof files: every double survives, no solver is needed to check one, and no tampering makes a false statement."""

import copy
import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import allocopt as ao
from allocopt.certify.proofs.writing import proof_document
from allocopt.insight.instances import counter_example, finite_armed, random_unit

BANDIT = random_unit(3, 8, seed=1)
EXACT = ao.LinearBandit([[1, 0], [0, 1], [0.75, 0.5]], [1, 0])  # ε = 1/4: every number is a double, c = 8 exactly

PROGRAMS = {
    "regret": lambda: ao.programs.regret(ao.LinearBandit(BANDIT.arms, BANDIT.theta, noise_variance=0.3)),
    "horizon": lambda: ao.programs.horizon(BANDIT.arms, BANDIT.gaps, 1000),
    "best_arm": lambda: ao.programs.best_arm(BANDIT),
    "g_optimal": lambda: ao.programs.g_optimal(BANDIT.arms),
    "optimism": lambda: ao.programs.optimism(BANDIT, 0.9),
    "remaining": lambda: ao.programs.remaining(BANDIT, [3, 0, 7.5, 1, 0, 0, 2, 100], 1000),
    "general": lambda: ao.AllocationProgram(
        BANDIT.arms, BANDIT.gaps + 0.1, BANDIT.arms[:3] * 0.3, [0.1, 0.2, 0.3],
        lower=[0.1, 0, 0, 0, 0, 0, 0, 0], upper=[math.inf, 1.0 / 3.0, 5, math.inf, 0, 2, 2, 3],
    ),
    "general with free arms": lambda: ao.AllocationProgram(
        BANDIT.arms, [0, 1, 0.5, 1, 1, 1, 0, 2], BANDIT.arms[:3], [0.1, 0.2, 0.3], upper=[math.inf] * 6 + [0.5, 3]
    ),
    "exact": lambda: ao.programs.regret(EXACT),
}  # fmt: skip


@pytest.fixture(scope="module")
def solutions():
    """One certified solution per kind of program."""
    solved = {name: ao.solve(program()) for name, program in PROGRAMS.items()}
    assert all(s.status is ao.Status.CERTIFIED for s in solved.values())
    return solved


def reload(solution, path):
    solution.save(path)
    return ao.load_solution(path)


def same_bits(one, other):
    return np.asarray(one, dtype=np.float64).tobytes() == np.asarray(other, dtype=np.float64).tobytes()


@pytest.mark.parametrize("kind", PROGRAMS)
def test_saving_and_loading_keeps_every_double_to_the_bit(solutions, kind, tmp_path):
    s = solutions[kind]
    t = reload(s, tmp_path / "p.json")
    for name in ("features", "costs", "targets", "radii", "lower", "upper"):
        assert same_bits(getattr(s.program, name), getattr(t.program, name)), name
    assert t.program.kind == s.program.kind
    one, other = s.program.origin, t.program.origin
    assert (one.number, one.horizon) == (other.number, other.horizon)
    for name in ("gaps", "pulls"):
        assert (getattr(one, name) is None) == (getattr(other, name) is None)
        if getattr(one, name) is not None:
            assert same_bits(getattr(one, name), getattr(other, name))
    if one.bandit is not None:
        for name in ("arms", "theta", "noise_variance", "tie_tolerance", "gaps", "means", "optimal_arms"):
            assert same_bits(getattr(one.bandit, name), getattr(other.bandit, name)), name
    assert (t.method, t.tol) == (s.method, s.tol)
    assert t.stats["claim"] == {"lower": s.lower, "upper": s.upper, "status": "CERTIFIED", "wider": False}
    # the document of what was loaded is what was saved; what the bounds say is recomputed, so only they may differ
    a, b = proof_document(s), proof_document(t)
    assert a["program"] == b["program"]
    assert t.lower <= s.upper
    assert t.upper >= s.lower


@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_loaded_proof_proves_the_same_interval(solutions, kind, tmp_path):
    s = solutions[kind]
    e = s.verify()
    loaded = reload(s, tmp_path / "p.json")
    assert same_bits(loaded.allocation, s.allocation)
    assert same_bits(loaded.multipliers, s.multipliers)
    assert loaded.verify() == e
    assert e.lower <= s.upper
    assert s.lower <= e.upper
    assert e.gap <= 3 * s.tol


@pytest.mark.parametrize("kind", PROGRAMS)
def test_saving_what_was_loaded_gives_the_same_file(solutions, kind, tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    again = reload(reload(solutions[kind], first), second)
    one, other = (json.loads(p.read_text()) for p in (first, second))
    for name in ("program", "allocation", "multipliers", "method", "tol"):
        assert one[name] == other[name], name
    assert again.verify() == solutions[kind].verify()


def test_a_proof_file_is_strict_json(solutions, tmp_path):
    def refuse(token):
        raise AssertionError(token)

    for s in solutions.values():
        s.save(tmp_path / "p.json")
        json.loads((tmp_path / "p.json").read_text(encoding="utf-8"), parse_constant=refuse)


SOLVERS = ("interior_point", "active_set", "closed_form", "frank_wolfe", "conic")

CHECKER = f"""
import sys
for name in {SOLVERS!r}:
    sys.modules["allocopt.solvers." + name] = None
for name in ("cvxpy", "clarabel", "scs", "mosek"):
    sys.modules[name] = None
import allocopt as ao
for path in sys.argv[1:]:
    e = ao.load_solution(path).verify()
    print(repr((e.lower, e.upper)))
"""


def test_checking_a_proof_needs_no_solver(solutions, tmp_path):
    paths = []
    for number, s in enumerate(solutions.values()):
        paths.append(str(tmp_path / f"{number}.json"))
        s.save(paths[-1])
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECKER, *paths],
        capture_output=True, text=True, timeout=60, check=False, cwd=Path(__file__).parents[2],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert result.stderr == ""
    intervals = [tuple(float(x) for x in line.strip("()").split(",")) for line in result.stdout.splitlines()]
    assert intervals == [(e.lower, e.upper) for e in (s.verify() for s in solutions.values())]


def holds(document, path):
    """Load and verify a document: refused with InvalidFile, or an enclosure that is right for the instance in it."""
    path.write_text(json.dumps(document))
    try:
        loaded = ao.load_solution(path)
        e = loaded.verify()
    except ao.InvalidFile as error:
        message = str(error)
        if not message or "\n" in message:
            pytest.fail(f"not one clear line: {message!r}")
        return message
    assert not math.isnan(e.lower)
    assert not math.isnan(e.upper)
    assert 0 <= e.lower <= e.upper
    fresh = ao.solve(loaded.program)
    proven = fresh.verify()
    assert e.lower <= proven.upper
    assert e.upper >= proven.lower
    if not e.notes:
        # without anything taken as zero the floating bounds are for the same number
        assert e.lower <= fresh.upper
        assert e.upper >= fresh.lower
    return e


def modest(document):
    """The document with a claim that is true of everything, so that its other entries are put to the test."""
    return {**document, "claim": {"lower": 0.0, "upper": "inf", "status": "FAILED"}}


def change(document, path, value):
    """A copy with one entry replaced (or, for ``...``, deleted)."""
    changed = copy.deepcopy(document)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def numbers(document, prefix=()):
    """Paths of all numbers of a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from numbers(value, (*prefix, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*prefix, key)


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0 + 1e-9, 3.0, 1e6, 1e-6])
@pytest.mark.parametrize("name", ["allocation", "multipliers"])
@pytest.mark.parametrize("kind", PROGRAMS)
def test_other_allocations_and_multipliers_only_widen_the_interval(solutions, kind, name, factor, tmp_path):
    s = solutions[kind]
    document = proof_document(s)
    used = [i for i, x in enumerate(document[name]) if isinstance(x, float) and x > 0]
    for i in (used[0], used[-1]):
        e = holds(change(modest(document), (name, i), document[name][i] * factor), tmp_path / "p.json")
        assert isinstance(e, ao.Enclosure)
        honest = s.verify()
        assert e.lower <= honest.upper
        assert e.upper >= honest.lower
        assert e.lower <= honest.lower * (1 + 1e-8)
        assert e.upper >= honest.upper * (1 - 1e-8)


TAMPERED = [
    ("regret", ("program", "arms", 2, 1), 0.123),
    ("regret", ("program", "arms", 0, 0), 1e6),
    ("regret", ("program", "theta", 0), 0.77),
    ("regret", ("program", "theta", 1), 0.0),
    ("regret", ("program", "noise_variance"), 7.0),
    ("regret", ("program", "noise_variance"), ...),
    ("regret", ("program", "tie_tolerance"), 0.0),
    ("regret", ("program", "tie_tolerance"), 0.4),
    ("regret", ("program", "tie_tolerance"), ...),
    ("exact", ("program", "arms", 2, 1), 0.25),
    ("exact", ("program", "arms", 1, 1), 0.0),
    ("exact", ("program", "arms", 2), [0.0, 0.0]),
    ("exact", ("program", "theta"), [1.0, 0.5]),
    ("exact", ("program", "theta"), [1.0, 0.5 - 1e-16]),
    ("horizon", ("program", "gaps", 3), 0.5),
    ("horizon", ("program", "gaps", 3), 0.0),
    ("horizon", ("program", "f_n"), 1.0),
    ("best_arm", ("program", "theta", 2), -1.0),
    ("g_optimal", ("program", "arms", 0, 0), 10.0),
    ("g_optimal", ("program", "arms", 5), [0.0, 0.0, 0.0]),
    ("optimism", ("program", "width"), 0.6),
    ("optimism", ("program", "width"), 100.0),
    ("optimism", ("program", "width"), 1e-3),
    ("remaining", ("program", "pulls", 1), 1000.0),
    ("remaining", ("program", "log_n"), 1.0),
    ("general", ("program", "radii", 0), 0.05),
    ("general", ("program", "radii", 0), 1e9),
    ("general", ("program", "upper", 0), 0.1),
    ("general", ("program", "upper", 1), "inf"),
    ("general", ("program", "lower", 3), 2.0),
    ("general", ("program", "costs", 0), 0.0),
    ("general with free arms", ("program", "costs", 0), 1e-12),
    ("general", ("program", "targets", 0, 0), 5.0),
    ("general", ("program", "features", 2, 2), -3.0),
]


@pytest.mark.parametrize(("kind", "path", "value"), TAMPERED, ids=str)
def test_a_changed_instance_is_refused_or_enclosed_for_what_it_now_is(solutions, kind, path, value, tmp_path):
    document = proof_document(solutions[kind])
    holds(change(document, path, value), tmp_path / "p.json")
    holds(change(modest(document), path, value), tmp_path / "p.json")


def test_optimal_arms_cannot_be_made_up(solutions, tmp_path):
    for kind in ("regret", "best_arm", "optimism", "remaining", "exact"):
        document = proof_document(solutions[kind])
        arms = document["program"]["arms"]
        best = document["program"]["optimal_arms"]
        others = [i for i in range(len(arms)) if i not in best]
        made_up = [others[:1], [*best, others[0]], list(range(len(arms)))]
        senseless = [[], [len(arms)], [-1], [best[0], best[0]], [0.5], ["0"]]
        for claimed in made_up + senseless:
            result = holds(change(document, ("program", "optimal_arms"), claimed), tmp_path / "p.json")
            assert isinstance(result, str), (kind, claimed)


# what is put into a file, and words of the message
REFUSED = [
    (("format",), ..., ["proof file"]),
    (("format",), "other", ["proof file"]),
    (("version",), 1, ["older version", "solve again"]),
    (("version",), 3, ["version", "3"]),
    (("version",), "2", ["version"]),
    (("version",), True, ["version"]),
    (("version",), ..., ["version"]),
    (("version",), None, ["version"]),
    (("program",), ..., ["program"]),
    (("program",), [], ["program"]),
    (("program",), {}, ["kind"]),
    (("program", "kind"), ..., ["kind"]),
    (("program", "kind"), "bogus", ["bogus"]),
    (("program", "kind"), 3, ["kind"]),
    (("program", "kind"), "horizon", ["gaps"]),
    (("program", "kind"), "general", ["missing"]),
    (("program", "arms"), ..., ["arms"]),
    (("program", "arms"), "x", ["arms"]),
    (("program", "arms"), [], ["arms"]),
    (("program", "arms"), [[]], ["arms"]),
    (("program", "arms", 0), [1.0], ["arms", "row"]),
    (("program", "arms", 0, 0), "x", ["arms"]),
    (("program", "arms", 0, 0), None, ["arms"]),
    (("program", "arms", 0, 0), "inf", ["arms"]),
    (("program", "arms", 0, 0), math.nan, ["arms", "nan"]),
    (("program", "arms", 0, 0), math.inf, ["arms", "inf"]),
    (("program", "arms", 0, 0), 10**400, ["arms"]),
    (("program", "arms", 0, 0), [1.0], ["arms"]),
    (("program", "theta"), ..., ["theta"]),
    (("program", "theta"), [1.0], ["theta"]),
    (("program", "theta", 0), math.nan, ["theta", "nan"]),
    (("program", "theta", 0), "1", ["theta"]),
    (("program", "noise_variance"), -1.0, ["noise_variance"]),
    (("program", "noise_variance"), "1", ["noise_variance"]),
    (("program", "noise_variance"), math.nan, ["noise_variance"]),
    (("program", "noise_variance"), None, ["noise_variance"]),
    (("program", "tie_tolerance"), -1.0, ["tie_tolerance"]),
    (("program", "tie_tolerance"), "0", ["tie_tolerance"]),
    (("program", "optimal_arms"), ..., ["optimal_arms"]),
    (("program", "optimal_arms"), 0, ["optimal_arms"]),
    (("allocation",), ..., ["allocation"]),
    (("allocation",), [], ["allocation"]),
    (("allocation",), "inf", ["allocation"]),
    (("allocation", 1), -1e-300, ["allocation", "entry 1"]),
    (("allocation", 1), math.nan, ["allocation", "entry 1"]),
    (("allocation", 1), "inf", ["allocation", "arm 1"]),
    (("allocation", 1), "x", ["allocation"]),
    (("allocation", 1), None, ["allocation"]),
    (("allocation", 0), 5.0, ["allocation", "arm 0"]),
    (("allocation", 0), math.nan, ["allocation"]),
    (("multipliers",), ..., ["multipliers"]),
    (("multipliers",), [1.0], ["multipliers"]),
    (("multipliers", 2), -1.0, ["multipliers", "entry 2"]),
    (("multipliers", 2), math.inf, ["multipliers", "entry 2"]),
    (("multipliers", 2), "inf", ["multipliers"]),
    (("multipliers", 2), math.nan, ["multipliers", "entry 2"]),
    (("tol",), ..., ["tol"]),
    (("tol",), 0, ["tol"]),
    (("tol",), "small", ["tol"]),
    (("method",), ..., ["method"]),
    (("method",), 3, ["method"]),
    (("claim",), ..., ["claim"]),
    (("claim",), [1, 2], ["claim"]),
    (("claim", "lower"), ..., ["claim"]),
    (("claim", "upper"), math.nan, ["claim"]),
    (("claim", "upper"), "8", ["claim"]),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "words"), REFUSED, ids=lambda x: str(x)[:50])
def test_a_proof_that_is_not_consistent_with_itself_is_refused_by_name(solutions, place, value, words, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(change(proof_document(solutions["exact"]), place, value)))
    with pytest.raises(ao.InvalidProof) as caught:
        ao.load_solution(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("kind", "place", "value", "word"),
    [
        ("horizon", ("program", "n"), "x", "n"),
        ("horizon", ("program", "n"), 2, "n"),
        ("horizon", ("program", "f_n"), 0, "f_n"),
        ("horizon", ("program", "f_n"), "x", "f_n"),
        ("horizon", ("program", "f_n"), ..., "f_n"),
        ("horizon", ("program", "gaps"), ..., "gaps"),
        ("horizon", ("program", "gaps", 1), -1.0, "gaps"),
        ("horizon", ("program", "gaps", 1), math.nan, "gaps"),
        ("horizon", ("program", "gaps"), [0.0, 1.0], "gaps"),
        ("horizon", ("program", "arms"), [], "arms"),
        ("horizon", ("program", "arms"), [[]], "arms"),
        ("optimism", ("program", "width"), 0, "width"),
        ("optimism", ("program", "width"), ..., "width"),
        ("remaining", ("program", "n"), {}, "n"),
        ("remaining", ("program", "log_n"), 0, "log_n"),
        ("remaining", ("program", "log_n"), ..., "log_n"),
        ("remaining", ("program", "pulls"), ..., "pulls"),
        ("remaining", ("program", "pulls", 0), -1.0, "pulls"),
        ("remaining", ("program", "pulls"), [1.0], "pulls"),
        ("general", ("program", "radii", 0), 0.0, "radii"),
        ("general", ("program", "radii", 0), "inf", "radii"),
        ("general", ("program", "costs", 0), -1.0, "costs"),
        ("general", ("program", "costs"), ..., "costs"),
        ("general", ("program", "features"), ..., "features"),
        ("general", ("program", "targets"), ..., "targets"),
        ("general", ("program", "lower"), ..., "lower"),
        ("general", ("program", "upper"), ..., "upper"),
        ("general", ("program", "upper", 0), math.nan, "upper"),
        ("general", ("program", "upper", 0), 0.0, "upper"),
        ("general", ("program", "targets", 0), [1.0], "targets"),
        ("g_optimal", ("program", "arms"), ..., "arms"),
    ],
    ids=lambda x: str(x)[:50],
)
def test_every_entry_of_every_kind_of_program_is_checked(solutions, kind, place, value, word, tmp_path):
    message = holds(change(proof_document(solutions[kind]), place, value), tmp_path / "p.json")
    assert isinstance(message, str)
    assert word in message.removeprefix(str(tmp_path))


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "3", "NaN", '{"format": "allocopt-proof"}', "\ufeff{}"])
def test_files_that_are_no_proofs_are_refused(content, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(content)
    with pytest.raises(ao.InvalidFile) as caught:
        ao.load_solution(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_truncated_proof_is_refused_wherever_it_was_cut(solutions, tmp_path):
    whole = json.dumps(proof_document(solutions["exact"]))
    for length in range(0, len(whole), 7):
        (tmp_path / "p.json").write_text(whole[:length])
        with pytest.raises(ao.InvalidFile):
            ao.load_solution(tmp_path / "p.json")


TAMPERABLE = ("regret", "horizon", "best_arm", "g_optimal", "optimism", "remaining", "general", "exact")
JUNK = st.sampled_from([0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, "inf", "x", None, [], True, 10**400])
ORDINARY = st.one_of(st.floats(-3, 3), st.floats(1e-6, 1e6), st.integers(-3, 20), JUNK)
NO_SHRINKING = [
    Phase.explicit,
    Phase.reuse,
    Phase.generate,
]  # a failure is clear as it is, and shrinking takes a minute


def tamper(data, values, folder):
    kind = data.draw(st.sampled_from(TAMPERABLE))
    document = _documents()[kind]
    place = data.draw(st.sampled_from(list(numbers(document))))
    claimed = document if place[0] == "claim" else modest(document)
    holds(change(claimed, place, data.draw(values)), folder / "p.json")


@settings(max_examples=60, phases=NO_SHRINKING)
@given(st.data())
def test_no_single_changed_number_proves_anything_false(tmp_path_factory, data):
    tamper(data, ORDINARY, tmp_path_factory.mktemp("tampered"))


@settings(max_examples=40, phases=NO_SHRINKING)
@given(st.data())
def test_no_single_number_of_any_size_proves_anything_false(tmp_path_factory, data):
    tamper(data, st.floats(), tmp_path_factory.mktemp("tampered"))


@settings(max_examples=40, phases=NO_SHRINKING)
@given(st.data())
def test_no_small_change_of_a_number_proves_anything_false(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(TAMPERABLE))
    document = _documents()[kind]
    place = data.draw(
        st.sampled_from([p for p in numbers(document) if p[0] in ("program", "allocation", "multipliers")])
    )
    value = document
    for step in place:
        value = value[step]
    factor = data.draw(st.sampled_from([1 + 2**-52, 1 - 2**-53, 1 + 1e-12, 1 - 1e-9, 1.0001, 0.9, 1.5]))
    holds(change(modest(document), place, value * factor), tmp_path_factory.mktemp("tampered") / "p.json")


_CACHE = {}


def _documents():
    if not _CACHE:
        _CACHE.update({kind: proof_document(ao.solve(PROGRAMS[kind]())) for kind in TAMPERABLE})
    return _CACHE


def test_a_proof_of_a_wrong_claim_does_not_repeat_the_claim(solutions, tmp_path):
    document = proof_document(solutions["exact"])
    for lower, upper in ((1.0, 2.0), (8.1, 8.2), (0.0, 7.9)):
        lie = change(document, ("claim",), {"lower": lower, "upper": upper, "status": "INACCURATE"})
        message = holds(lie, tmp_path / "p.json")
        assert isinstance(message, str)
        assert "claim" in message


def test_means_that_tie_up_to_rounding_are_recorded_and_reported(tmp_path):
    """0.1 + 0.2 is not 0.3 in doubles: the means below differ by one unit in the last place."""
    arms = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.1]]
    theta = [0.1, 0.2, 0.3]
    s = ao.regret_constant(arms, theta)
    bandit = s.program.origin.bandit
    assert bandit.optimal_arms.tolist() == [0, 1]
    assert np.isinf(s.allocation[[0, 1]]).all()
    e = s.verify()
    assert list(e.tied_gaps) == [1]
    assert 0 < e.tied_gaps[1] < 1e-16
    document = proof_document(s)
    assert document["program"]["optimal_arms"] == [0, 1]
    assert reload(s, tmp_path / "p.json").verify() == e
    # with a tolerance of 0 the file is the exact instance, whose constant is about 2/gap: something else entirely
    exact = ao.regret_constant(arms, theta, tie_tolerance=0)
    assert exact.program.origin.bandit.optimal_arms.tolist() == [0]
    proven = exact.verify()
    assert not proven.tied_gaps
    assert proven.lower > 1e14
    assert proven.lower <= exact.upper
    assert proven.upper >= exact.lower
    # a tie is taken for granted only where the file lists it
    refusal = holds(change(modest(document), ("assumptions",), []), tmp_path / "q.json")
    assert isinstance(refusal, str)
    assert "tie" in refusal


@pytest.mark.parametrize("ulps", [1, 2, 5])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_ulp_decides_nothing_by_default_and_everything_at_zero_tolerance(ulps, sign):
    mean = 0.7
    for _ in range(ulps):
        mean = math.nextafter(mean, math.inf * sign)
    arms = [[0.7, 0.0], [mean, 1.0], [0.2, 0.3]]
    tied = ao.LinearBandit(arms, [1, 0])
    assert tied.optimal_arms.tolist() == [0, 1]
    e = ao.solve(ao.programs.regret(tied)).verify()
    assert list(e.tied_gaps) == ([0] if sign > 0 else [1])
    assert sum(e.tied_gaps.values()) == pytest.approx(abs(mean - 0.7), rel=1e-12)
    exact = ao.LinearBandit(arms, [1, 0], tie_tolerance=0)
    assert exact.optimal_arms.tolist() == [1 if sign > 0 else 0]
    assert not ao.solve(ao.programs.regret(exact)).verify().tied_gaps


def test_exact_ties_need_no_mention():
    s = ao.regret_constant([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0.5, 1, 1]], [1, 0, 0])
    assert s.optimal_arms.tolist() == [0, 1]
    e = s.verify()
    assert not e.tied_gaps
    assert not e.notes


def test_arms_that_span_less_up_to_rounding_are_noted(tmp_path):
    """A plane in R^3, rotated: in exact arithmetic the rotated arms span all three dimensions."""
    plane = np.hstack([random_unit(2, 7, seed=3).arms, np.zeros((7, 1))])
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    theta = np.array([0.3, -0.8, 0.0])
    flat = ao.regret_constant(plane, theta)
    s = ao.regret_constant(plane @ rotation, rotation.T @ theta)
    assert s.status is ao.Status.CONDITIONAL
    assert all(a.kind == "dependence" and 0 < a.size < 2**-40 for a in s.assumptions)
    assert s.value == pytest.approx(flat.value, rel=1e-7)
    assert not flat.verify().notes
    e = s.verify()
    assert any("span" in note or "depend" in note for note in e.notes)
    assert e.midpoint == pytest.approx(flat.value, rel=1e-7)
    assert reload(s, tmp_path / "p.json").verify() == e


def test_rows_that_are_dropped_as_rounding_are_noted_too():
    """Nearly parallel arms: what the solver takes as zero, the proof must take as zero and say so, or the gap is honest."""
    arms = [
        [-0.4333828124877164, -0.4333828124877166],
        [-0.4180841374794637, -0.4180841374794637],
        [0.32160944385584206, 0.3216094438558419],
    ]
    bandit = ao.LinearBandit(arms, [-1.1221947784042279, -1.3925469042662353])
    for program in (ao.programs.regret(bandit), ao.programs.optimism(bandit, 0.7)):
        s = ao.solve(program)
        e = s.verify()
        assert s.status is not ao.Status.CERTIFIED or e.notes or e.gap < 1e-6


@pytest.mark.parametrize("n", [10, 50, 881])
def test_a_value_that_is_only_what_was_played_already_allows_for_rounding(n, tmp_path):
    """Parallel arms: nothing is left to decide, and the cost of the pulls is rounded like any other number."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        bandit = ao.LinearBandit(np.outer(rng.normal(size=4), rng.normal(size=2)), rng.normal(size=2))
        s = ao.solve(ao.programs.remaining(bandit, [3, 1, 4, 1], n))
        e = reload(s, tmp_path / "p.json").verify()
        assert s.lower <= e.upper
        assert s.upper >= e.lower


def test_known_values_lie_in_the_proven_interval():
    """Instances whose numbers are doubles, so that the closed form is the exact answer."""
    for epsilon in (0.25 / 2, 2.0**-5, 2.0**-20):
        bandit = ao.LinearBandit([[1, 0], [0, 1], [1 - epsilon, 2 * epsilon]], [1, 0])
        e = ao.solve(ao.programs.regret(bandit)).verify()
        assert 8 in e
        assert e.gap < 1e-9
        e = ao.regret_constant([[1, 0], [1 - epsilon, 2 * epsilon]], [1, 0]).verify()
        assert 2 / epsilon in e
    assert 8 in ao.solve(ao.programs.regret(EXACT)).verify()
    assert 2 + 4 + 1 in ao.solve(ao.programs.regret(finite_armed([0, 1, 0.5, 2]))).verify()
    assert 3 in ao.solve(ao.programs.g_optimal(BANDIT.arms)).verify()
    assert 8 in ao.solve(ao.programs.best_arm(ao.LinearBandit([[1, 0], [0, 1]], [1, 0]))).verify()
    a, epsilon = 1.0, 2.0**-10
    optimistic = ao.programs.optimism(counter_example(epsilon, 8 * a), a)
    assert 4 * a + (2 - 1 / (16 * a)) / epsilon in ao.solve(optimistic).verify()


@pytest.mark.parametrize("method", ["closed-form", "interior-point", "active-set", "frank-wolfe", "conic"])
def test_every_methods_answer_can_be_proven(method):
    s = ao.solve(ao.programs.regret(EXACT), method, tol=1e-6)
    e = s.verify()
    assert 8 in e
    assert e.gap < 1e-5


@pytest.mark.parametrize("precision", [64, 128, 1000])
def test_any_precision_proves_something_true(solutions, precision):
    for s in solutions.values():
        e = s.verify(precision)
        assert e.precision == precision
        usual = s.verify()
        assert e.lower <= usual.upper
        assert e.upper >= usual.lower
    assert 8 in solutions["exact"].verify(precision)


def test_the_same_proof_twice_is_the_same_and_leaves_no_precision_behind(solutions):
    from flint import ctx

    before = ctx.prec
    s = solutions["optimism"]
    assert s.verify(300) == s.verify(300)
    assert ctx.prec == before


def failing(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("tempfile.mkstemp", errno.EACCES),
        ("tempfile.mkstemp", errno.EROFS),
        ("os.fdopen", errno.ENOSPC),
        ("pathlib.Path.replace", errno.EACCES),
        ("pathlib.Path.chmod", errno.EPERM),
    ],
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(solutions, function, code, tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    solutions["exact"].save(path)
    old = path.read_bytes()
    monkeypatch.setattr(function, failing(code))
    with pytest.raises(ao.InvalidFile) as caught:
        solutions["regret"].save(path)
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{path}: ")
    assert os.strerror(code) in str(caught.value)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(solutions, tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    solutions["exact"].save(path)
    old = path.read_bytes()
    fdopen = os.fdopen

    def full(handle, *rest, **named):
        stream = fdopen(handle, *rest, **named)
        stream.write = failing(errno.ENOSPC)
        return stream

    monkeypatch.setattr("os.fdopen", full)
    with pytest.raises(ao.InvalidFile, match=os.strerror(errno.ENOSPC)):
        solutions["regret"].save(path)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_saving_where_nothing_can_be_is_refused_by_name(solutions, tmp_path):
    s = solutions["exact"]
    (tmp_path / "folder.json").mkdir()
    for path in (tmp_path / "none" / "p.json", tmp_path / "folder.json", tmp_path / ("x" * 300), Path("/proc/p.json")):
        with pytest.raises(ao.InvalidFile) as caught:
            s.save(path)
        assert str(caught.value).startswith(f"{path}: ")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


def test_saving_follows_the_umask_and_replaces_whole_files(solutions, tmp_path):
    path = tmp_path / "p.json"
    mask = os.umask(0o027)
    try:
        solutions["general"].save(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    solutions["exact"].save(path)
    assert ao.load_solution(path).program.kind == "regret"


@pytest.mark.parametrize(
    "name", ["with space.json", "ünïcode é.json", "[red]x.json", "no extension", ".hidden", "%s{}.json"]
)
def test_any_file_name_will_do(solutions, name, tmp_path):
    assert reload(solutions["exact"], tmp_path / name).verify() == solutions["exact"].verify()
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_answers_that_are_not_certified_can_be_saved_too(tmp_path):
    s = ao.solve(ao.programs.regret(random_unit(10, 100)), "frank-wolfe", tol=1e-12, max_iterations=3)
    assert s.status is ao.Status.INACCURATE
    t = reload(s, tmp_path / "p.json")
    assert t.status is ao.Status.INACCURATE
    e = t.verify()
    assert e.lower <= s.upper
    assert s.lower <= e.upper
