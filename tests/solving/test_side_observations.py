"""Side observations as a list of what arms show: the certificate over that list against the referee, and its linear programs."""

import copy
import dataclasses
import json
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import allocopt as ao
from allocopt.certify import referee
from allocopt.certify.exact_arithmetic.sightings import interval_by_sight
from allocopt.certify.proofs.writing import proof_document
from allocopt.model.programs import observations
from allocopt.solving.roads.side_observations import solve_by_sight

INF = np.inf


def instance(seed, k=None, shows_itself=None):
    """Means, and variances of what arms show; the best arm shows itself or not."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 9)) if k is None else k
    means = rng.uniform(size=k) * 10.0 ** rng.integers(-3, 4)
    variances = np.where(rng.random((k, k)) < 0.4, np.exp(rng.normal(size=(k, k))), INF)
    np.fill_diagonal(variances, np.exp(rng.normal(size=k)))
    if not (seed % 2 if shows_itself is None else shows_itself):
        best = int(np.argmax(means))
        variances[best, best] = INF
        variances[(best + 1) % k, best] = 1.0
    return means, variances


@pytest.fixture
def without_arrays(monkeypatch):
    """Programs as they are where there are very many arms."""
    monkeypatch.setattr(observations, "_MOST_ENTRIES", 0)


@pytest.mark.parametrize("seed", range(40))
def test_any_pair_proves_what_the_referee_says_it_proves(seed):
    """Not only optimal pairs: any α and λ, zeros among them."""
    program = ao.programs.side_observations(*instance(seed))
    rng = np.random.default_rng(seed)
    alpha, lam = (np.exp(rng.normal(size=program.n_arms)) * (rng.random(program.n_arms) < 0.9) for _ in range(2))
    alpha[program.free] = INF
    solution = ao.solve(program)
    document = proof_document(solution)
    document |= {"allocation": [x if x < INF else "inf" for x in alpha.tolist()], "multipliers": lam.tolist()}
    verdict = referee.judge(document)
    found = interval_by_sight(program.origin.sightings, alpha, lam)
    exact = float(verdict.lower), INF if verdict.upper is None else float(verdict.upper)
    assert found.lower <= verdict.lower and (verdict.upper is None or found.upper >= verdict.upper)
    assert (found.lower, found.upper) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("seed", range(60))
def test_linear_programs_find_what_other_methods_find(seed):
    program = ao.programs.side_observations(*instance(seed))
    found, other = solve_by_sight(program, 1e-8, None, None), ao.solve(program)
    assert found.status is other.status is ao.Status.CERTIFIED
    assert max(found.lower, other.lower) <= min(found.upper, other.upper)
    proof = found.verify(exact=True)
    assert not proof.problems and found.lower <= proof.lower <= proof.upper <= found.upper


@pytest.mark.parametrize("shows_itself", [False, True])
def test_thousands_of_arms_are_certified_without_an_array_of_rows(shows_itself, tmp_path):
    rng, k = np.random.default_rng(5), 2000
    means = rng.uniform(size=k)
    places = np.unique(rng.integers(0, k * k, size=5 * k))
    variances = csr_matrix((rng.uniform(0.5, 2.0, len(places)), (places // k, places % k)), shape=(k, k)).tolil()
    best = int(np.argmax(means))
    for i in range(k):
        variances[i, i] = 1.0
    if not shows_itself:
        variances[best, best] = 0.0  # not stored, hence not shown
    seen = csr_matrix(variances)
    seen.eliminate_zeros()
    program = ao.programs.side_observations(means, seen)
    assert program._sightings is not None and (program.n_arms, program.n_targets, program.dim) == (k, k - 1, k)
    steps = []
    found = ao.solve(program, callback=steps.append)
    assert found.status is ao.Status.CERTIFIED and found.method == "linear-program" and steps
    assert found.gap < 1e-10 and np.isinf(found.allocation[best])
    proof = found.verify()
    assert (proof.lower, proof.upper, proof.precision) == (found.lower, found.upper, 128)
    found.save(tmp_path / "proof.json")
    again = ao.load_solution(tmp_path / "proof.json")
    assert (again.lower, again.upper, again.status) == (found.lower, found.upper, found.status)
    assert again.program._sightings is not None


def test_sparse_and_dense_variances_make_the_same_program():
    means, variances = instance(3)
    listed = np.isfinite(variances)
    sparse = csr_matrix((variances[listed], np.nonzero(listed)), shape=variances.shape)
    one, other = ao.programs.side_observations(means, variances), ao.programs.side_observations(means, sparse)
    for name in ("features", "targets", "costs", "radii", "noise_variance", "owners"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("seed", range(4))
def test_programs_without_arrays_have_the_same_ones_when_asked(seed, monkeypatch):
    given = instance(seed)
    at_hand = ao.programs.side_observations(*given, labels=[f"a{i}" for i in range(len(given[0]))])
    monkeypatch.setattr(observations, "_MOST_ENTRIES", 0)
    lazily = ao.programs.side_observations(*given, labels=at_hand.labels)
    assert repr(lazily) == repr(at_hand) and lazily.labels == at_hand.labels
    for name in ("features", "targets", "costs", "radii", "lower", "upper", "noise_variance", "target_arms"):
        expected = getattr(at_hand, name)
        np.testing.assert_array_equal(getattr(lazily, name), 1.0 if expected is None else expected)
    found = ao.solve(lazily)
    verdict = referee.judge(proof_document(found))
    assert verdict.proven and verdict.lower >= found.lower
    assert ao.solve(pickle.loads(pickle.dumps(lazily))).value == ao.solve(copy.deepcopy(lazily)).value == found.value
    assert "side_observations" in found._repr_html_()


def test_what_very_many_side_observations_cannot_do_is_said(without_arrays):
    program = ao.programs.side_observations(*instance(1))
    found = ao.solve(program)
    with pytest.raises(ao.InvalidOption, match="exact: expected False"):
        found.verify(exact=True)
    for how in ({"method": "active-set"}, {"start": found}):
        with pytest.raises(ao.MethodUnavailable, match="method and start"):
            ao.solve(program, **how)


def test_an_arm_that_nobody_shows_is_infeasible(without_arrays):
    means, variances = instance(1, k=4)
    variances[:, 2] = INF
    with pytest.raises(ao.Infeasible, match="no arm shows arm 2"):
        ao.solve(ao.programs.side_observations(means, variances))


def test_nothing_is_to_be_explored_where_the_best_arm_shows_all(without_arrays):
    variances = np.full((3, 3), INF)
    variances[0] = 1.0
    found = ao.solve(ao.programs.side_observations([1.0, 0.5, 0.0], variances))
    assert (found.lower, found.upper, found.status) == (0.0, 0.0, ao.Status.CERTIFIED)
    proof = found.verify()
    assert (proof.lower, proof.upper) == (0.0, 0.0)


def test_time_that_is_over_is_said():
    means, variances = instance(1, k=40, shows_itself=False)
    found = solve_by_sight(ao.programs.side_observations(means, variances), 1e-30, 1e-9, None)
    assert found.status in (ao.Status.INACCURATE, ao.Status.FAILED) and "max_seconds" in found.stats["reason"]


def test_ties_are_refused_however_many_arms_there_are(without_arrays):
    with pytest.raises(ao.InvalidInstance, match=r"unique best arm, but 2 arms tie \(0, 2\)"):
        ao.programs.side_observations([1.0, 0.5, 1.0 - 1e-15], np.ones((3, 3)))
    with pytest.raises(ao.InvalidInstance, match=r"9 arms tie \(0, 1, 2, 3, 4, …\); leave"):
        ao.programs.side_observations(np.ones(9), np.ones((9, 9)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: p["shown"].pop(), "shown: expected"), (lambda p: p["shown"][0].reverse(), "increasing order"),
        (lambda p: p["shown"].__setitem__(0, [99]), r"shown\[0\]"), (lambda p: p["noise_variance"].pop(), "noise_variance"),
        (lambda p: p["means"].reverse(), "prove|infinite"), (lambda p: p["noise_variance"].reverse(), "prove"),
    ],
)  # fmt: skip
def test_proof_files_that_were_tampered_with_are_refused(change, words, tmp_path):
    means = [1.0, 0.5, 0.25]
    variances = np.array([[1.0, 2.0, INF], [INF, 1.0, 0.5], [3.0, INF, 1.0]])
    found = ao.solve(ao.programs.side_observations(means, variances))
    found.save(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    assert document["program"]["kind"] == "side_observations" and "features" not in document["program"]
    change(document["program"])
    (tmp_path / "changed.json").write_text(json.dumps(document))
    with pytest.raises(ao.InvalidProof, match=words):
        ao.load_solution(tmp_path / "changed.json")


@pytest.mark.parametrize("name", ["radii", "costs", "noise_variance", "features", "targets"])
def test_a_program_with_other_arrays_is_solved_as_it_is(name):
    rng = np.random.default_rng(0)
    variances = np.where(rng.random((30, 30)) < 0.3, rng.uniform(0.5, 2.0, (30, 30)), np.inf)
    np.fill_diagonal(variances, 1.0)
    program = ao.programs.side_observations(rng.permutation(30) / 30, variances)
    assert ao.solve(program).method == "linear-program"
    other = dataclasses.replace(program, **{name: 2.0 * getattr(program, name)})
    found, by_rows = ao.solve(other), ao.solve(other, method="interior-point")
    assert found.value == pytest.approx(by_rows.value, rel=1e-7)
    assert found.value != pytest.approx(ao.solve(program).value, rel=1e-3)
    assert found.verify().lower <= found.upper * (1 + 1e-12)
