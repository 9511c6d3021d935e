"""Proof files of bounds: what was saved comes back to the bit, and whatever was changed is refused."""

import json

import pytest

import allocopt as ao


@pytest.fixture(scope="module", params=[10**5, 10**40], ids=["doubles", "fractions"])
def document(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("bound") / "bound.json"
    labels = [f"arm {i}" for i in range(7)]
    made = ao.instances.random_unit(3, 7, seed=1)
    bandit = ao.LinearBandit(made.arms, made.theta, 0.5, labels=labels)
    ao.finite_time_bound(bandit, request.param, 20.0).save(path)
    return json.loads(path.read_text(encoding="utf-8"))


def written(tmp_path, document):
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_saved_bound_comes_back(tmp_path, document):
    bound = ao.load_bound(written(tmp_path, document))
    assert bound.value == document["claim"]["value"] > 0 and bound.verify().holds
    assert bound.n == document["n"] and bound.bandit.labels[0] == "arm 0" and bound.bandit.noise_variance == 0.5
    bound.save(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text(encoding="utf-8")) == document
    assert ao.load_bound(tmp_path / "again.json").given(20.0).value == pytest.approx(bound.value, rel=1e-6)


def change(document, path, value):
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value(at[path[-1]]) if callable(value) else value
    return copy


FORGED = {
    "a larger value": (("claim", "value"), lambda v: v * (1 + 1e-6)),
    "larger weights": (("alternatives", 0, "weight"), lambda w: w * 1.5),
    "no weight": (("alternatives", 0, "weight"), 0.0),
    "a larger allowance": (("alternatives", 0, "regret"), lambda b: 2 * b),
    "fewer rounds": (("n",), lambda n: n // 2),
    "another θ'": (("alternatives", 0, "theta", 0), 0.125),
    "more noise": (("instance", "noise_variance"), 0.4),
    "another arm": (("instance", "arms", 0, 0), 0.75),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_not_proven(tmp_path, document, name):
    with pytest.raises(ao.NotProven, match="but its alternatives and weights do not prove that"):
        ao.load_bound(written(tmp_path, change(document, *FORGED[name])))


MALFORMED = {
    "format": (("format",), "allocopt-proof", "expected the proof file of a bound"),
    "version": (("version",), 2, "version: expected 1, got 2"),
    "true version": (("version",), True, "version: expected 1, got True"),
    "unknown entry": (("claim",), {"value": 1.0, "because": 2}, "claim: 'because' is nothing that this version knows"),
    "n": (("n",), 1e5, "n: expected a whole number >= 1, got 100000.0"),
    "too many rounds": (("n",), 10**101, r"n: expected at most 10\^100 rounds"),
    "negative weight": (("alternatives", 0, "weight"), -1.0, r"alternatives\[0\].weight: expected a non-negative"),
    "regret": (("alternatives", 0, "regret"), "much", r"alternatives\[0\].regret: expected a non-negative number"),
    "short θ'": (("alternatives", 0, "theta"), [1.0], "theta: expected 3 entries, got 1"),
    "text θ'": (("alternatives", 0, "theta", 0), "1e999999999", 'theta: expected numbers or texts "p/q"'),
    "zero denominator": (("alternatives", 0, "theta", 0), "1/0", 'theta: expected numbers or texts "p/q"'),
    "boolean θ'": (("alternatives", 0, "theta", 0), True, 'theta: expected numbers or texts "p/q"'),
    "huge θ'": (("alternatives", 0, "theta", 0), 1e300, "theta: expected magnitudes up to 1e.50"),
    "alternative": (("alternatives", 0), 3, r"alternatives\[0\]: expected an object, got a int"),
    "alternatives": (("alternatives",), {}, '"alternatives": expected a list, got a dict'),
    "negative value": (("claim", "value"), -1.0, "claim.value: expected a non-negative"),
    "noise": (("instance", "noise_variance"), None, "noise_variance: expected a positive"),
    "arms": (("instance", "arms"), [[1, "x", 0]], "arms: expected"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_refused_with_its_reason(tmp_path, document, name):
    path, value, message = MALFORMED[name]
    with pytest.raises(ao.InvalidProof, match=message):
        ao.load_bound(written(tmp_path, change(document, path, value)))


def test_a_missing_entry_is_named(tmp_path, document):
    for entry in ("instance", "alternatives", "claim"):
        with pytest.raises(ao.InvalidProof, match=f'"{entry}" is missing'):
            ao.load_bound(written(tmp_path, {k: v for k, v in document.items() if k != entry}))
    with pytest.raises(ao.InvalidFile, match="cannot be read"):
        ao.load_bound(tmp_path / "nothing.json")
