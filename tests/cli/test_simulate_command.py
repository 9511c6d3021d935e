"""allocopt simulate: its table, plot and JSON, folders it goes on in, and errors of one line."""

import io
import json
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from simulating import BANDIT, same, snapshot

import allocopt as ao
from allocopt.cli import main as cli
from allocopt.cli import simulate as command  # adds the command
from allocopt.cli.shell import late_bars
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import LinTS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def instance(tmp_path):
    path = tmp_path / "i.json"
    labels = ["<script>", "[red]x[/red]", "plain"]
    path.write_text(json.dumps({"arms": BANDIT.arms.tolist(), "theta": [1, 0], "labels": labels}))
    return path


@pytest.fixture
def main(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", "simulate", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


def test_the_command_prints_a_table_and_saves_a_plot(instance, main, tmp_path):
    picture = tmp_path / "regret.png"
    code, out, err = main(
        instance, "-n", 1000, "-r", 20, "-p", "UCB", "-p", "LinUCB:a=1", "-p", "EndOfOptimism", "--plot", picture
    )
    assert (code, err) == (0, "")
    for word in ("UCB", "LinUCB:a=1", "c·log n", "55.3", "recovery phase", "plot written to"):
        assert word in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_commands_json_has_what_simulate_gives(instance, main):
    code, out, err = main(
        instance, "-n", 1000, "-r", 20, "-p", "LinTS:a=2", "--seed", 5, "--noise-variance", 0.5, "--json"
    )
    assert (code, err) == (0, "")
    document = json.loads(out)
    r = simulate(LinTS(a=2.0), ao.LinearBandit(BANDIT.arms, BANDIT.theta, 0.5), 1000, 20, rng=5)
    assert document["c"] == pytest.approx(4.0)
    (policy,) = document["policies"]
    assert policy["final_regret"]["mean"] == r.mean[-1]
    assert policy["final_regret"]["standard_error"] == r.standard_error[-1]
    assert policy["mean_regret"] == r.mean.tolist()
    assert (
        json.loads(main(instance, "-n", 10, "-r", 1, "-p", "UCB", "--json")[1])["policies"][0]["standard_error"] is None
    )


def test_the_command_goes_on_in_its_folder_and_leaves_others_alone(instance, main, tmp_path):
    out = tmp_path / "runs"
    arguments = (instance, "-n", 500, "-r", 20, "-p", "LinTS", "--out", out)
    assert main(*arguments)[0] == 0
    before = snapshot(out / "LinTS")
    assert main(*arguments)[0] == 0
    after = snapshot(out / "LinTS")
    assert before["results.sqlite"] == after["results.sqlite"]
    result = next((out / "LinTS").glob("result.*"))
    same(load_simulation(result), simulate(LinTS(), load_simulation(result).bandit, 500, 20, rng=0))
    code, text, err = main(instance, "-n", 501, "-r", 20, "-p", "LinTS", "--out", out)
    assert (code, text) == (2, "")
    assert "holds another experiment" in err
    assert err.count("\n") == 1
    assert snapshot(out / "LinTS") == after


def test_a_folder_is_of_one_experiment_so_that_its_picture_is_never_lost(instance, main, tmp_path):
    out = tmp_path / "runs"
    assert main(instance, "-n", 500, "-r", 4, "-p", "LinTS", "--out", out)[0] == 0
    before = snapshot(out)
    changes = (
        (("--theta", "1,0.5"), "the content of bandit.theta has changed"),
        (("--seed", 1), "seed.entropy is 0 there and 1 here"),
        (("-r", 5), "runs is 4 there and 5 here"),
    )
    for change, word in changes:
        code, text, err = main(instance, "-n", 500, "-r", 4, "-p", "UCB", "--out", out, *change)
        assert (code, text) == (2, "")
        assert f"holds another experiment: LinTS: {word}" in err
        assert err.count("\n") == 1
        assert snapshot(out) == before
    assert main(instance, "-n", 500, "-r", 4, "-p", "UCB:a=1e+9", "-p", "UCB:a=1e-9", "--out", out)[0] == 0
    assert {p.name for p in out.iterdir()} == {"LinTS", "UCB-a=1000000000", "UCB-a=1e-09", "regret.png"}


def test_a_folder_of_a_simulation_that_was_killed_at_once_is_taken_up(instance, main, tmp_path):
    out = tmp_path / "runs"
    (out / "UCB").mkdir(parents=True)
    (out / "UCB" / ".allocopt-lock").write_bytes(b"")
    assert main(instance, "-n", 500, "-r", 4, "-p", "UCB", "--out", out)[0] == 0
    assert (out / "UCB" / "results.sqlite").is_file()


def test_figures_of_the_table_are_never_cut_off(main, monkeypatch, tmp_path):
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1], [0.999999999, 0.01]], "theta": [1, 0]}))
    long = "LinUCB:radius=theoretical,ridge=0.5,norm_bound=2,delta=0.01"
    monkeypatch.setattr(command, "Console", lambda **given: Console(**given, width=80))
    code, out, err = main(path, "-n", 1000, "-r", 4, "-p", long, "-p", "PhasedElimination")
    assert (code, err) == (0, "")
    assert "…" not in out
    assert "1.38e+10" in out
    assert [command._figure(x) for x in (0.0, 0.05, 0.1, 123.456, 2e6)] == ["0.0", "0.05", "0.1", "123.5", "2e+06"]


def test_the_bar_comes_before_the_first_runs_are_finished_and_only_on_a_terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(late_bars, "SECONDS_BEFORE_PROGRESS", 0.05)
    for terminal in (True, False):
        console = Console(file=screen, force_terminal=terminal, width=100)
        monkeypatch.setattr(command, "Console", lambda console=console, **_: console)
        with command._bar("[red]mine[/red]", 8) as callback:
            time.sleep(0.3)
            shown = screen.getvalue()
            callback(3, 8, 0.3)
        if terminal:
            assert "[red]mine[/red]" in shown
            assert "0/8" in shown
            assert "3/8" in screen.getvalue()
            screen.seek(0)
            screen.truncate()
    assert screen.getvalue() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-n", 2, "-p", "UCB"), "horizon: expected a whole number >= 3, got 2"),
        (("-n", 10, "-p", "UBC"), "policy: expected one of"),
        (("-n", 10, "-p", "UCB", "-p", "UCB"), "--policy: UCB is given twice"),
        (("-n", 10, "-p", "UCB", "-r", 0), "runs: expected a whole number >= 1"),
        (("-n", 10, "-p", "UCB", "--plot", "x.gif"), "--plot: expected a name that ends in"),
        (
            ("-n", 10, "-p", "UCB", "--plot", "nowhere/x.png"),
            "--plot: cannot write nowhere/x.png: there is no directory nowhere",
        ),
        (("-n", 10, "-p", "UCB", "--theta", "1"), "theta: expected 2 entries"),
        (("-n", 10, "-p", "UCB", "--out", str(ROOT)), "holds other files"),
        (("-n", 10, "-p", "UCB", "--seed", "-1"), "rng: expected a whole number >= 0"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(instance, main, arguments, words):
    code, out, err = main(instance, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert words in err
    assert err.count("\n") == 1


def test_the_command_needs_theta(main, tmp_path):
    path = tmp_path / "gaps.json"
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1]], "gaps": [0, 1]}))
    code, _, err = main(path, "-n", 100, "-p", "UCB")
    assert code == 2
    assert "needs θ" in err


def test_ties_and_short_horizons_are_stated_on_the_command_line(main, tmp_path):
    path = tmp_path / "ties.json"
    path.write_text(json.dumps({"arms": [[1, 0], [1, 0], [0, 1], [0, 2]], "theta": [1, 0]}))
    code, out, err = main(path, "-n", 3, "-r", 2, "-p", "UCB")
    assert (code, err) == (0, "")
    assert "2 arms are optimal" in out
    assert "there are 4 arms and 3 rounds" in out
    path.write_text(json.dumps({"arms": [[1, 0], [0, 1]], "theta": [1, 1]}))
    code, out, err = main(path, "-n", 10, "-r", 2, "-p", "UCB", "--log")
    assert (code, out) == (2, "")
    assert "--log: every arm is optimal" in err


def test_other_worlds_and_the_comparison_with_the_first_policy(instance, main, tmp_path):
    world = ["--noise", "student-t:4", "--delay", 3, "--batch", 5, "--assumed-noise-variance", 2]
    common = [instance, "-n", 500, "-r", 8, "-p", "LinTS", "-p", "UCB"]
    document = json.loads(main(*common, *world, "--json")[1])
    assert document["conditions"] == {"noise": "student-t:4", "assumed_noise_variance": 2.0, "delay": 3, "batch": 5}
    (found,) = document["comparisons"]
    assert found["paired"]
    assert found["interval"][0] <= found["difference"] <= found["interval"][1]
    assert found["verdict"] in main(*common, *world)[1]
    folder = tmp_path / "runs"
    assert main(*common, "--out", folder)[0] == 0
    code, _, err = main(*common, *world, "--out", folder)
    assert (code, "conditions has nothing there and" in err) == (2, True)
    code, _, err = main(*common, "--blockwise")
    assert (code, "looks at every reward" in err) == (2, True)


CONTEXTS = {"contexts": [[[1, 0], [0, 1], [0.9, 0.2]], [[0.5, 0], [0.4, 0.1]]], "theta": [1, 0.2], "weights": [3, 1]}


def test_contexts_are_simulated_by_the_policies_that_can(main, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CONTEXTS))
    code, out, err = main(path, "-n", 300, "-r", 3, "--delay", 2, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    bandit = ao.ContextualBandit(*CONTEXTS.values())
    assert [p["policy"] for p in document["policies"]] == ["LinUCB", "LinTS", "OAM"]
    assert document["c"] == ao.solve(ao.programs.contextual(bandit)).value
    for found in document["policies"]:
        r = simulate(found["policy"], bandit, 300, 3, rng=0, delay=2)
        assert found["mean_pulls"] == r.pulls.mean(axis=0).tolist()
    code, out, err = main(path, "-n", 300, "-r", 3, "-p", "LinTS", "--out", tmp_path / "kept")
    assert (code, err) == (0, "")
    assert "c·log n" in out
    path.write_text(json.dumps({**CONTEXTS, "weights": [1, 1]}))
    code, out, err = main(path, "-n", 300, "-r", 3, "-p", "LinTS", "--out", tmp_path / "kept")
    assert code == 2
    assert "holds another experiment" in err


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        (CONTEXTS, ["-p", "UCB"], "policy UCB cannot be played with contexts; LinUCB, LinTS and OAM can"),
        (CONTEXTS, ["--times-optimal", 2], "--times-optimal: expected an instance without contexts"),
        (CONTEXTS, ["-p", "LinTS", "--blockwise"], "blockwise: expected False with contexts"),
        ({"contexts": CONTEXTS["contexts"]}, [], "simulate needs θ"),
        ({**CONTEXTS, "weights": [1, 0]}, [], "weights: expected entries > 0"),
        ({**CONTEXTS, "weights": [1, 2, 3]}, [], "weights: expected 2 entries, got 3"),
        ({"arms": [[1, 0], [0, 1]], "theta": [1, 0], "weights": [1, 1]}, [], "weights: expected contexts beside them"),
    ],
)
def test_contexts_that_cannot_be_simulated_are_refused_in_one_line(main, tmp_path, file, options, words):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(file))
    code, out, err = main(path, "-n", 300, "-r", 3, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err
