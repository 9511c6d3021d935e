"""``allocopt bound``: a sentence, JSON, a proof file that ``allocopt verify`` checks; one-line errors."""

import json

import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.base.errors import AllocoptError
from allocopt.cli import main as cli


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text('{"arms": [[1, 0], [0, 1], [0.8, 0.4]], "theta": [1, 0]}', encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def test_the_bound_is_a_sentence_with_its_reason(instance):
    done = run("bound", instance, "-n", "1e6", "--worst-regret", 500)
    assert done.exit_code == 0
    assert (
        "in 1e+06 rounds, a policy with regret below 24.76 here has regret above 500 at the alternative" in done.stdout
    )
    assert "a policy may lie below it" in done.stdout and "110.52" in done.stdout


def test_the_bound_as_json_at_an_astronomical_horizon(instance):
    done = run("bound", instance, "-n", "1e100", "--times-optimal", 10, "--json")
    document = json.loads(done.stdout)
    assert document["n"] == 10**100 and document["proven"] is True
    assert 1600 < document["value"] < document["c_log_n"]
    assert document["alternatives"][0]["optimal_arms"] == [2]


def test_a_saved_bound_is_verified_and_a_forged_one_refused(instance, tmp_path):
    proof = tmp_path / "bound.json"
    assert run("bound", instance, "-n", 1000, "--worst-regret", 30, "--save", proof).exit_code == 0
    done = run("verify", proof)
    assert done.exit_code == 0 and "the claim holds" in done.stdout
    assert json.loads(run("verify", proof, "--json").stdout)["holds"] is True
    text = json.loads(proof.read_text(encoding="utf-8"))
    text["claim"]["value"] *= 2
    proof.write_text(json.dumps(text), encoding="utf-8")
    done = run("verify", proof)
    assert done.exit_code == 1 and "NOT proven" in done.stdout
    assert json.loads(run("verify", proof, "--json").stdout)["holds"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-n", "1e6"), "--worst-regret, --times-optimal: expected one of the two, got none"),
        (("-n", "1e6", "--worst-regret", "5", "--times-optimal", "2"), "expected one of the two, got both"),
        (("-n", "1.5", "--worst-regret", "5"), "--horizon: expected a whole number >= 1"),
        (("-n", "many", "--worst-regret", "5"), "--horizon: expected a whole number >= 1"),
        (("-n", "10", "--worst-regret", "-5"), "worst_regret: expected a positive, finite number"),
        (("-n", "10", "--times-optimal", "0"), "factor: expected a positive, finite number"),
    ],
)
def test_bad_options_are_named(instance, arguments, message):
    done = run("bound", instance, *arguments)
    assert isinstance(done.exception, AllocoptError) and message in str(done.exception)


def test_the_bound_is_in_the_table_and_the_plot_of_a_simulation(instance, tmp_path):
    plot = tmp_path / "regret.png"
    options = ("-n", 1000, "-r", 3, "-p", "LinTS", "--times-optimal", 10)
    done = run("simulate", instance, *options, "--plot", plot)
    assert done.exit_code == 0 and "finite-time bound" in done.stdout and plot.exists()
    bounds = json.loads(run("simulate", instance, *options, "--json").stdout)["bounds"]
    assert [b["n"] for b in bounds][-1] == 1000 and bounds[-1]["value"] > 0


def test_the_picture_of_bounds_refuses_what_is_none():
    bandit = ao.instances.counter_example(0.2)
    bound = ao.finite_time_bound(bandit, 1000, 30)
    figure = ao.plots.bound_curve([bound], constant=8, curves={"UCB": ([10, 1000], [[1, 2], [3, 4]])}, log=True)
    labels = [line.get_label() for line in figure.axes[0].get_lines()]
    assert labels == ["UCB", "c log n, c = 8", "finite-time bound"]
    for bad in ([], [3.0], bound, [bound, bound]):
        with pytest.raises(ao.InvalidOption, match="bounds: expected"):
            ao.plots.bound_curve(bad)
    with pytest.raises(ao.InvalidOption, match="bound: expected"):
        ao.plots.regret_curves({"UCB": ([10, 1000], [[1, 2], [3, 4]])}, bound=3)
