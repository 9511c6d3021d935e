"""The table of methods and their settings: data that choices, messages and documentation are made of."""

import dataclasses

import numpy as np
import pytest
from blocks import in_blocks

import allocopt as ao
from allocopt.certify.reduction import reduce
from allocopt.insight.instances import random_unit
from allocopt.solvers.methods import AUTO, AUTO_BY_BLOCKS, METHODS, backend, checked_settings
from allocopt.solvers.newton.problem import DEFAULT, Tuning, tuning_of
from allocopt.solvers.settings import (
    ActiveSetSettings,
    ConicSettings,
    FrankWolfeSettings,
    InteriorPointSettings,
    StreamingSettings,
    by_blocks,
)

ROWS = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
FIELDS = [(m, s) for m in METHODS.values() for s in m.settings.listed()]


def program():
    return ao.programs.regret(random_unit(5, 20))


@ROWS
def test_every_method_has_a_back_end_that_takes_its_settings(method):
    assert callable(backend(method))
    assert method.summary and method.settings.__doc__
    assert method.settings() == method.settings()


@ROWS
def test_every_setting_has_a_meaning_of_one_line(method):
    for setting in method.settings.listed():
        assert 0 < len(setting.meaning) <= 90, setting.name
        assert "\n" not in setting.meaning


@pytest.mark.parametrize(("method", "setting"), FIELDS, ids=[f"{m.name}-{s.name}" for m, s in FIELDS])
@pytest.mark.parametrize("bad", [None, "many", -1, float("nan"), [1.0]])
def test_no_setting_takes_nonsense_and_the_message_names_it_and_what_was_given(method, setting, bad):
    with pytest.raises(ao.InvalidOption) as refused:
        method.settings(**{setting.name: bad})
    message = str(refused.value)
    assert message.startswith(f"{setting.name}: expected ")
    assert "got" in message


def test_shares_factors_and_counts_are_kept_in_their_ranges():
    for bad in (0.0, 1.0, 2.0, float("inf")):
        with pytest.raises(ao.InvalidOption, match="step_fraction: expected a number between 0 and 1, got"):
            InteriorPointSettings(step_fraction=bad)
    with pytest.raises(ao.InvalidOption, match=r"power_growth: expected a number of at least 1, got 0\.5"):
        FrankWolfeSettings(power_growth=0.5)
    with pytest.raises(ao.InvalidOption, match=r"max_passes: expected a whole number >= 1, got 0"):
        ActiveSetSettings(max_passes=0)
    with pytest.raises(ao.InvalidOption, match="pool: expected an ActiveSetSettings, got a dict"):
        StreamingSettings(pool={})
    assert InteriorPointSettings(max_iterations=1e2).max_iterations == 100
    assert ConicSettings(solver="scs").solver == "SCS"


@ROWS
def test_settings_do_not_change_once_they_are_made(method):
    record = method.settings()
    for field in dataclasses.fields(record):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field.name, 1)


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("interior-point", "max_iterations", 3),
        ("active-set", "max_passes", 1),
        ("frank-wolfe", "max_iterations", 7),
        ("conic", "formulation", "lmi"),
    ],
)
def test_a_record_and_a_keyword_say_the_same(method, name, value):
    record = METHODS[method].settings(**{name: value})
    one = ao.solve(program(), method, tol=1e-6, settings=record)
    other = ao.solve(program(), method, tol=1e-6, **{name: value})
    assert np.array_equal(one.allocation, other.allocation)
    assert one.stats["iterations"] == other.stats["iterations"]


def test_settings_reach_the_method_and_leave_the_certificate_alone():
    plain = ao.solve(program(), "interior-point")
    careful = ao.solve(program(), "interior-point", step_fraction=0.9)
    assert careful.stats["iterations"] > plain.stats["iterations"]
    assert careful.status is plain.status is ao.Status.CERTIFIED
    assert (
        ao.solve(program(), "interior-point", settings=ao.settings.InteriorPointSettings()).stats["iterations"]
        == (plain.stats["iterations"])
    )
    few = ao.solve(program(), "interior-point", max_iterations=2)
    assert few.status is ao.Status.INACCURATE
    assert few.lower <= plain.value <= few.upper


@pytest.mark.parametrize("name", ["start_level", "cold_distance"])
def test_shares_that_leave_the_range_of_doubles_are_refused(name):
    """The method divided by the square of 1e-300, which is 0."""
    with pytest.raises(ao.InvalidOption, match=f"{name}: expected at least 1e-50, got 1e-300"):
        ao.solve(program(), "interior-point", **{name: 1e-300})
    s = ao.solve(program(), "interior-point", **{name: 1e-50})
    assert s.lower <= ao.solve(program(), "interior-point").upper


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(
        ao.InvalidOption, match=r"settings: expected a record of type ActiveSetSettings .* got Interior"
    ):
        ao.solve(program(), "active-set", settings=InteriorPointSettings())
    with pytest.raises(ao.InvalidOption, match=r"settings: expected a record of type ConicSettings .* got dict"):
        ao.solve(program(), "conic", settings={"solver": "SCS"})
    with pytest.raises(ao.InvalidOption, match=r"max_passes: .* got both"):
        ao.solve(program(), "active-set", settings=ActiveSetSettings(), max_passes=3)
    with pytest.raises(ao.InvalidOption, match="settings: method 'auto' takes no options"):
        ao.solve(program(), settings=ActiveSetSettings())
    with pytest.raises(
        ao.InvalidOption, match=r"max_iterations: not an option of method 'closed-form' \(it has: none\)"
    ):
        ao.solve(program(), "closed-form", max_iterations=3)


def test_nothing_given_means_the_defaults():
    assert checked_settings(METHODS["active-set"], None, {}) is None
    assert checked_settings(METHODS["active-set"], None, {"entering": 5}) == ActiveSetSettings(entering=5)


def test_what_the_compiled_method_takes_for_granted_are_the_defaults():
    assert tuning_of(InteriorPointSettings()) == DEFAULT
    names = {setting.name for setting in InteriorPointSettings.listed()}
    assert set(Tuning._fields) <= names


def test_auto_names_methods_of_the_table_and_the_last_one_lacks_nothing():
    assert all(name in METHODS for name, _ in AUTO)
    assert METHODS[AUTO_BY_BLOCKS].block_by_block
    problem = reduce(ao.programs.optimism(random_unit(3, 8), 1.0)).canonical
    assert METHODS[AUTO[-1][0]].lacks(problem) is None


def test_what_a_method_lacks_is_said_by_its_row():
    bounded = reduce(ao.programs.optimism(random_unit(3, 8), 1.0)).canonical
    free = reduce(ao.programs.regret(random_unit(3, 8))).canonical
    orthogonal = reduce(ao.programs.regret(ao.LinearBandit(np.eye(3), [1, 0.5, 0]))).canonical
    assert "bounds" in METHODS["frank-wolfe"].lacks(bounded)
    assert "independent" in METHODS["closed-form"].lacks(free)
    assert METHODS["closed-form"].lacks(orthogonal) is None
    assert "block by block" in METHODS["streaming"].lacks(free)
    assert "at most 2 arms" in dataclasses.replace(METHODS["conic"], most_arms=2).lacks(free)


def test_streaming_is_a_method_like_the_others():
    with pytest.raises(ao.MethodUnavailable, match=r"'streaming' takes arms .* block by block.*these can solve it"):
        ao.solve(program(), "streaming")
    with in_blocks():
        streamed = program()
        by_name = ao.solve(streamed, "streaming")
        assert by_name.status is ao.Status.CERTIFIED
        for same in (ao.solve(streamed), ao.solve(streamed, "active-set")):
            assert np.array_equal(same.allocation, by_name.allocation)
        one = ao.solve(streamed, "streaming", max_passes=1)
        assert one.stats["passes"] <= 2 < by_name.stats["passes"]
        assert ao.solve(streamed, "active-set", max_passes=1).stats["passes"] == one.stats["passes"]
        for sharp in (StreamingSettings(rough_gap=1e-6), StreamingSettings(pool=ActiveSetSettings(rough_gap=1e-3))):
            found = ao.solve(streamed, "streaming", settings=sharp)
            assert found.status is ao.Status.CERTIFIED
            assert found.stats["iterations"] > by_name.stats["iterations"]
    with in_blocks(keep=4):
        large = ao.programs.regret(random_unit(8, 3000))
        pools = [
            ao.solve(large, "streaming", settings=StreamingSettings(entering=n)).stats["arms_in_pool"] for n in (1, 40)
        ]
        assert pools[0] < pools[1]


def test_settings_of_active_set_mean_the_same_for_blocks():
    translated = by_blocks(ActiveSetSettings(max_passes=7, entering=9))
    assert translated.max_passes == 7
    assert translated.pool == ActiveSetSettings(entering=9)
    assert METHODS["active-set"].for_blocks(None) == (METHODS["streaming"], by_blocks(ActiveSetSettings()))
    assert METHODS["conic"].for_blocks(None) is None


def test_a_solver_that_panics_has_failed(monkeypatch):
    """Clarabel's Rust code raises what is no Exception; Ctrl-C is not taken for it."""
    import cvxpy

    class Panic(BaseException):
        pass

    def raising(error):
        def solve(*_, **__):
            raise error

        return solve

    program = ao.programs.regret(random_unit(3, 6))
    monkeypatch.setattr(cvxpy.Problem, "solve", raising(Panic("index out of bounds")))
    found = ao.solve(program, "conic")
    assert found.status is ao.Status.INACCURATE and "index out of bounds" in found.stats["reason"]
    monkeypatch.setattr(cvxpy.Problem, "solve", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        ao.solve(program, "conic")
