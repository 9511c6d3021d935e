"""study: one certified table with what allocopt says of every instance."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import bandits
from studies import FAMILY, RANDOM, as_dicts, toml, values

import allocopt as ao
from allocopt.insight.instances import optimism_example, random_unit
from allocopt.insight.study import quantities as study_quantities
from allocopt.insight.study.quantities import COUNTED, QUANTITIES
from allocopt.insight.study.study import study


def test_the_papers_example_has_its_closed_forms_within_certified_bounds(tmp_path):
    spec = {
        "family": {"name": "counter-example"}, "fixed": {"a": 3.0},
        "grid": {"epsilon": {"logspace": [1e-6, 1e-1], "n": 6}, "informative": [True, False]},
        "quantities": ["c", "ucb", "ratio", "gap-min", "gap-max", "rank", "support-size"],
    }  # fmt: skip
    result = study(spec, tmp_path / "s")
    assert result.counts == {"CERTIFIED": 12 * 5, COUNTED: 12 * 2}
    for row in as_dicts(result):
        epsilon, informative = row["epsilon"], row["informative"]
        true = {
            "c": 18.0 if informative else 2 / epsilon,
            "ucb": 2 / epsilon + (2 if informative else 0),
            "gap-min": epsilon,
            "gap-max": 1.0 if informative else epsilon,
            "rank": 2,
            "support-size": 1,
        }
        true["ratio"] = true["ucb"] / true["c"]
        expected = true[row["quantity"]]
        assert row["value"] == pytest.approx(expected, rel=1e-7)
        if row["status"] == "CERTIFIED":
            assert row["lower"] * (1 - 1e-9) <= expected <= row["upper"] * (1 + 1e-9)
            assert row["lower"] <= row["value"] <= row["upper"]
            assert (row["upper"] - row["lower"]) <= 1.1e-8 * row["lower"]
        assert row["reason"] is None


def test_the_price_of_optimism_follows_the_formula_with_the_width_taken_from_a_parameter(tmp_path):
    spec = {"family": {"name": "optimism-example"}, "grid": {"a": [1.0, 2.0], "epsilon": [1e-3, 1e-4]},
            "width": "a", "quantities": ["price", "optimism", "c"]}  # fmt: skip
    result = study(spec, tmp_path / "s")
    for row in as_dicts(result, "price"):
        a, epsilon = row["a"], row["epsilon"]
        assert row["value"] == pytest.approx((4 * a + (2 - 1 / (16 * a)) / epsilon) / (128 * a**2), rel=1e-6)
    for row in as_dicts(result, "optimism"):
        b = optimism_example(row["epsilon"], row["a"])
        assert row["value"] == ao.solve(ao.programs.optimism(b, row["a"])).value


def test_every_row_is_what_allocopt_says_of_that_instance(tmp_path):
    result = study({**RANDOM, "repeats": 5, "seed": 100, "quantities": ["c", "best-arm", "rank"]}, tmp_path / "s")
    assert result.table.column_names[:5] == ["instance", "dim", "n_arms", "seed", "quantity"]
    assert values(result, "c").shape == (20,)
    seeds = set()
    for i, row in enumerate(as_dicts(result, "c")):
        assert row["instance"] == i and row["seed"] == 100 + i
        b = random_unit(row["dim"], row["n_arms"], row["seed"])
        s = ao.solve(ao.programs.regret(b))
        assert row["lower"] <= s.upper and s.lower <= row["upper"]
        seeds.add(row["seed"])
    assert len(seeds) == 20
    for row in as_dicts(result, "best-arm"):
        s = ao.solve(ao.programs.best_arm(random_unit(row["dim"], row["n_arms"], row["seed"])))
        assert (row["lower"], row["upper"]) == (s.lower, s.upper)


@settings(max_examples=25)
@given(bandits())
def test_nasty_instances_give_ordered_bounds_or_a_reason(tmp_path_factory, bandit):
    spec = {"family": lambda: bandit, "quantities": list(QUANTITIES), "width": 1.0}
    result = study(spec, tmp_path_factory.mktemp("nasty") / "s", workers=1)
    rows = {row["quantity"]: row for row in as_dicts(result)}
    assert list(rows) == list(QUANTITIES)
    for row in rows.values():
        if row["status"] == "FAILED":
            assert row["value"] is None and row["lower"] is None and row["upper"] is None and row["reason"]
        elif row["status"] != COUNTED:
            assert row["lower"] <= row["value"] <= row["upper"]
    if rows["ratio"]["status"] == "CERTIFIED":
        assert rows["ratio"]["upper"] >= 1 - 1e-7  # c <= Σ2/Δ
        assert rows["rank"]["value"] == bandit.rank


def test_large_instances_and_other_methods_go_through_solve(tmp_path):
    spec = {"family": {"name": "random-unit"}, "grid": {"n_arms": [20, 130]}, "fixed": {"dim": 3, "seed": 1}}
    found = [
        values(study({**spec, "quantities": ["c"], "method": method}, tmp_path / method), "c")
        for method in ("auto", "interior-point", "active-set")
    ]
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=2e-8)


def test_nothing_is_divided_by_zero(tmp_path):
    spec = {"family": lambda: ([[1, 0], [2, 0], [3, 0]], [1, 0]), "width": 1.0, "quantities": ["c", "ratio", "price"]}
    c, ratio, price = as_dicts(study(spec, tmp_path / "s"))
    assert c["value"] == 0 and c["status"] == "CERTIFIED"
    for row in (ratio, price):
        assert row["status"] == "FAILED" and row["value"] is None and "c is 0" in row["reason"]


def test_time_left_is_told_and_ends_at_nothing(tmp_path):
    heard = []
    study(RANDOM, tmp_path / "s", workers=1, callback=heard.append)
    assert [p.done for p in heard] == sorted({p.done for p in heard})
    assert heard[0].seconds_left is None and heard[-1].seconds_left == 0
    assert (heard[-1].done, heard[-1].total, heard[-1].failed) == (160, 160, 0)
    assert all(p.seconds_left >= 0 for p in heard[1:])


def test_auto_tries_a_second_method_where_the_first_is_not_certified(monkeypatch, tmp_path):
    spec = {"family": lambda: random_unit(3, 130, 1), "quantities": ["c"]}
    plain = study_quantities.solve
    asked = []

    def lazy(program, method="auto", tol=1e-8):
        asked.append(method)
        return plain(program, "frank-wolfe", tol, max_iterations=3) if method == "auto" else plain(program, method, tol)

    monkeypatch.setattr(study_quantities, "solve", lazy)
    assert study(spec, tmp_path / "s", workers=0).certified == 1
    assert asked == ["auto", "active-set"]


def test_noise_and_gaps_without_theta_count(tmp_path):
    spec = {"family": {"function": f"{toml(tmp_path / 'f.py', FAMILY)}:family"}, "grid": {"kind": ["fine", "noisy", "gaps"]},
            "repeats": 1, "seed": 5, "quantities": ["c", "ucb"]}  # fmt: skip
    result = study(spec, tmp_path / "s")
    assert result.failed == 0
    arms = np.random.default_rng(6).normal(size=(5, 2))
    noisy = ao.regret_constant(arms, [1.0, 0.5], 3.0)
    assert values(result, "c")[1] == pytest.approx(noisy.value, rel=1e-7)
    assert values(result, "ucb")[2] == pytest.approx(2 * (1 + 1 / 2 + 1 + 1))


def test_the_seed_is_used_for_the_instances_without_repeats_too(tmp_path):
    spec = {
        "family": {"name": "random-unit"},
        "fixed": {"dim": 2},
        "grid": {"n_arms": [5, 6]},
        "quantities": ["c"],
        "seed": 7,
    }
    one, other = (study({**spec, "seed": seed}, tmp_path / str(seed)) for seed in (7, 70))
    assert one.table["seed"].to_pylist() == [7, 8]
    for row in one.table.to_pylist():
        exact = ao.regret_constant(
            *(lambda b: (b.arms, b.theta))(ao.instances.random_unit(2, row["n_arms"], row["seed"]))
        )
        assert row["lower"] <= exact.upper and exact.lower <= row["upper"]
    assert one.table["value"].to_pylist() != other.table["value"].to_pylist()
