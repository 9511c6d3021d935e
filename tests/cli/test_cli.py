"""The command line, end to end: what it prints, what it exits with, and that no traceback ever reaches a user."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli import main as cli
from allocopt.cli import solve as solve_module

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]]
THETA = [1.0, 0.0]
COMMANDS = ("demo", "solve", "verify", "spanner", "schedule", "simulate", "hardness", "study")
ROOT = Path(__file__).parents[2]
HOME = str(Path(ao.__file__).parents[1])  # of the allocopt that is tested: the installed one, where there is one
TIME = 60


def run(*arguments, cwd=None, **how):
    """A process of its own, as a user starts it."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "allocopt.cli.main", *map(str, arguments)],
        **{"capture_output": True, "text": True, "timeout": TIME, "check": False, "encoding": "utf-8", **how},
        cwd=cwd or ROOT,
        env={
            **os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": HOME, "PYTHONIOENCODING": "utf-8",
            "COLUMNS": "120", "NO_COLOR": "1",
        },
    )  # fmt: skip


def invoke(*arguments):
    """In this process, for what does not go wrong."""
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], env={"COLUMNS": "120", "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def main(monkeypatch, capsys):
    """Call ``main`` in this process; gives the exit code, standard output and standard error."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["allocopt", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        return stop.value.code or 0, out, err

    return call


def is_one_error_line(result, *words):
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def strict(text):
    """JSON without NaN or Infinity."""

    def refuse(token):
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.fixture
def files(tmp_path):
    """The instance with c = 8 in every format."""
    (tmp_path / "i.json").write_text(json.dumps({"arms": ARMS, "theta": THETA}))
    (tmp_path / "gaps.json").write_text(json.dumps({"arms": ARMS, "gaps": [0.0, 1.0, 0.25]}))
    (tmp_path / "i.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in ARMS))
    (tmp_path / "theta.csv").write_text("1\n0\n")
    np.savez(tmp_path / "i.npz", arms=ARMS, theta=THETA)
    np.save(tmp_path / "i.npy", np.array(ARMS))
    return tmp_path


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_what_a_command_does(command):
    result = invoke(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output
    for word in COMMANDS if not command else ("--json",):
        assert word in result.output


def test_the_module_runs_on_its_own():
    result = run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"allocopt {ao.__version__}\n", "")
    assert run("--help").returncode == 0


def test_demo_prints_the_papers_numbers():
    result = run("demo")
    assert result.returncode == 0
    assert result.stderr == ""
    for word in ("8", "2000000", "19379", "proven interval", "Price of optimism"):
        assert word in result.stdout


def test_the_demo_says_what_one_is_looking_at_and_fits_80_columns():
    said = CliRunner().invoke(cli.app, ["demo"], env={"COLUMNS": "80", "NO_COLOR": "1"}).output.splitlines()
    assert said[0].startswith("In a linear bandit")
    assert max(map(len, said)) <= 80
    headings = [line for line in said if line[:2] in ("1.", "2.")]
    assert len(headings) == 2 and all(said[said.index(h) + 1].startswith("┏") for h in headings)  # on one line each


def test_demo_json_has_the_closed_forms():
    document = strict(invoke("demo", "--json").output)
    assert len(document["counter_example"]) == 8
    for row in document["counter_example"]:
        a, epsilon = row["a"], row["epsilon"]
        assert row["c"] == pytest.approx(2 * a**2, rel=1e-8)
        assert row["lower"] <= 2 * a**2 * (1 + 1e-9)
        assert row["upper"] >= 2 * a**2 * (1 - 1e-9)
        assert row["lower"] <= row["upper"]
        assert row["without_e2"] == pytest.approx(2 / epsilon, rel=1e-8)
        assert row["ucb"] == pytest.approx(2 + 2 / epsilon, rel=1e-8)
        assert row["ratio"] == pytest.approx(row["ucb"] / row["c"])
    assert len(document["price_of_optimism"]) == 8
    for row in document["price_of_optimism"]:
        a, epsilon = row["a"], row["epsilon"]
        expected = 4 * a + (2 - 1 / (16 * a)) / epsilon
        assert row["c"] == pytest.approx(128 * a**2, rel=1e-8)
        assert row["optimism"] == pytest.approx(expected, rel=1e-8)
        assert row["lower"] == pytest.approx(expected, rel=1e-7)
        assert row["upper"] == pytest.approx(expected, rel=1e-7)
        assert row["price"] == pytest.approx(expected / (128 * a**2), rel=1e-7)


@pytest.mark.parametrize(
    "arguments",
    [
        ["i.json"],
        ["gaps.json"],
        ["i.csv", "--theta", "1,0"],
        ["i.csv", "--theta", "theta.csv"],
        ["i.npz"],
        ["i.npy", "--theta", "1,0"],
        ["i.json", "--theta", "1,0", "--method", "interior-point"],
        ["i.json", "--method", "conic", "--solver", "CLARABEL", "--tol", "1e-6"],
    ],
    ids=str,
)
def test_solve_reads_every_format_and_proves_8(files, monkeypatch, arguments):
    monkeypatch.chdir(files)
    result = invoke("solve", *arguments, "--json")
    assert result.exit_code == 0
    document = strict(result.output)
    assert document["status"] == "CERTIFIED"
    assert document["value"] == pytest.approx(8, rel=1e-6)
    assert document["proven"]["lower"] <= 8 <= document["proven"]["upper"]
    assert document["allocation"][0] == "inf"
    assert document["optimal_arms"] == [0]
    table = invoke("solve", *arguments).output
    assert "CERTIFIED" in table
    assert "proven" in table


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        (["--noise-variance", "2.5"], 20),
        (["--program", "g-optimal"], 2),
        (["--program", "optimism", "--width", "1e9"], 8),
        (["--program", "best-arm"], None),
        (["--program", "horizon", "-n", "1000"], None),
        (["--no-prove"], 8),
        (["--method", "active-set", "--tol", "1e-10"], 8),
    ],
    ids=str,
)
def test_the_options_of_solve_reach_the_program(files, arguments, value):
    result = invoke("solve", files / "i.json", "--json", *arguments)
    assert result.exit_code == 0
    document = strict(result.output)
    bandit = ao.LinearBandit(ARMS, THETA)
    if "best-arm" in arguments:
        value = ao.solve(ao.programs.best_arm(bandit)).value
    if "horizon" in arguments:
        value = ao.optimal_pulls(ARMS, bandit.gaps, 1000).value
    assert document["value"] == pytest.approx(value, rel=1e-7)
    assert (document["proven"] is None) == ("--no-prove" in arguments)
    assert invoke("solve", files / "i.json", *arguments).exit_code == 0


def test_save_then_verify_holds_end_to_end(files):
    proof = files / "proof.json"
    result = run("solve", files / "i.json", "--save", proof)
    assert result.returncode == 0
    assert result.stderr == ""
    assert f"proof written to {proof}\n" in result.stdout
    result = run("verify", proof)
    assert result.returncode == 0
    assert result.stderr == ""
    assert "the claim holds" in result.stdout
    document = strict(invoke("verify", proof, "--json").output)
    assert document["holds"] is True
    assert document["proven"]["lower"] <= 8 <= document["proven"]["upper"]
    assert strict(invoke("verify", proof, "--precision", "256", "--json").output)["proven"]["precision_bits"] == 256


@pytest.mark.parametrize("arguments", [["--program", "g-optimal"], ["--program", "optimism"], ["--program", "best-arm"],
                                       ["--program", "horizon", "-n", "100"]], ids=str)  # fmt: skip
def test_proofs_of_every_program_verify(files, arguments):
    proof = files / "proof.json"
    assert invoke("solve", files / "i.json", *arguments, "--save", proof, "--json").exit_code == 0
    result = invoke("verify", proof)
    assert result.exit_code == 0
    assert "the claim holds" in result.output


def tampered(files, change):
    proof = files / "proof.json"
    ao.regret_constant(ARMS, THETA).save(proof, overwrite=True)
    document = json.loads(proof.read_text())
    change(document)
    proof.write_text(json.dumps(document))
    return proof


TAMPERINGS = {
    "claim": lambda d: d["claim"].update(lower=1.0, upper=2.0),
    "claim above": lambda d: d["claim"].update(lower=9.0, upper=9.1),
    "theta": lambda d: d["program"].update(theta=[2.0, 0.0]),
    "noise": lambda d: d["program"].update(noise_variance=2.0),
    "arm": lambda d: d["program"]["arms"][2].__setitem__(1, 0.25),
    "no information": lambda d: d["allocation"].__setitem__(1, 0.0),
    "longer arm": lambda d: d["program"]["arms"][1].__setitem__(1, 4.0),
}


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_tampered_proof_does_not_hold(files, name):
    result = invoke("verify", tampered(files, TAMPERINGS[name]), "--json")
    assert result.exit_code == 1
    assert strict(result.output)["holds"] is False
    result = invoke("verify", tampered(files, TAMPERINGS[name]))
    assert result.exit_code == 1
    assert "NOT" in result.output
    assert "the claim holds" not in result.output


def test_a_claim_that_is_much_sharper_than_what_is_proven_does_not_hold(files):
    """A poor allocation proves a wide interval only; that it contains the claim does not make the claim proven."""
    arms = [*ARMS, [0.0, 0.1]]
    proof = files / "proof.json"
    s = ao.regret_constant(arms, THETA, method="interior-point")
    s.save(proof)
    document = json.loads(proof.read_text())
    document["allocation"] = ["inf", 1.0, 1.0, 10000.0]
    proof.write_text(json.dumps(document))
    with pytest.raises(ao.NotProven, match="790"):
        ao.load_solution(proof)
    result = invoke("verify", proof)
    assert result.exit_code == 1
    assert "the claim holds" not in result.output


def test_an_inconsistent_proof_is_bad_input(files, main):
    broken = {
        "allocation": lambda d: d["allocation"].__setitem__(0, 3.0),
        "optimal_arms": lambda d: d["program"].update(optimal_arms=[1]),
        "version": lambda d: d.update(version=99),
    }
    for word, change in broken.items():
        is_one_error_line(main("verify", tampered(files, change)), "proof.json", word)


def test_spanner_lists_arms_that_span(files):
    (files / "s.csv").write_text("1,0\n0,1\n2,0\n1,-1\n")
    document = strict(invoke("spanner", files / "s.csv", "--json").output)
    arms = np.array([[1, 0], [0, 1], [2, 0], [1, -1]])
    coefficients = np.array(document["coefficients"])
    np.testing.assert_allclose(coefficients @ arms[document["indices"]], arms, atol=1e-12)
    assert np.abs(coefficients).max() == document["C"] <= 1
    result = run("spanner", files / "s.csv", "-C", "2")
    assert result.returncode == 0
    assert "2 of 4 arms" in result.stdout


def test_exit_code_1_when_the_gap_is_not_reached(files):
    arguments = ["solve", files / "i.json", "--method", "frank-wolfe", "--tol", "1e-14", "--max-seconds", "0.2"]
    result = run(*arguments)
    assert result.returncode == 1
    assert "INACCURATE" in result.stdout
    assert result.stderr == ""
    result = invoke(*arguments, "--json")
    assert result.exit_code == 1
    document = strict(result.output)
    assert document["status"] == "INACCURATE"
    assert document["stats"]["reason"]
    assert document["lower"] <= document["upper"]


BAD = {
    "missing file": (["solve", "none.json"], ["none.json", "no such file"]),
    "unknown extension": (["solve", "i.txt"], ["i.txt", ".json"]),
    "arms only": (["solve", "i.csv"], ["--theta"]),
    "bad theta": (["solve", "i.csv", "--theta", "1,x"], ["--theta", "1,x"]),
    "theta too long": (["solve", "i.csv", "--theta", "1,2,3"], ["theta", "2", "3"]),
    "theta file missing": (["solve", "i.csv", "--theta", "none.csv"], ["--theta", "none.csv"]),
    "bad tol": (["solve", "i.json", "--tol", "0"], ["tol"]),
    "tol nan": (["solve", "i.json", "--tol", "nan"], ["tol", "nan"]),
    "bad noise": (["solve", "i.json", "--noise-variance", "-1"], ["noise_variance", "-1"]),
    "bad seconds": (["solve", "i.json", "--max-seconds", "0"], ["max_seconds"]),
    "unknown method": (["solve", "i.json", "--method", "magic"], ["method", "magic"]),
    "method lacks": (["solve", "i.json", "--program", "optimism", "--method", "frank-wolfe"], ["frank-wolfe", "bounds"]),
    "solver without conic": (["solve", "i.json", "--solver", "SCS"], ["solver"]),
    "unknown solver": (["solve", "i.json", "--method", "conic", "--solver", "X"], ["solver", "'X'"]),
    "no horizon": (["solve", "i.json", "--program", "horizon"], ["--horizon"]),
    "short horizon": (["solve", "i.json", "--program", "horizon", "-n", "2"], ["n:", ">= 3"]),
    "zero width": (["solve", "i.json", "--program", "optimism", "--width", "0"], ["width"]),
    "small width": (["solve", "i.json", "--program", "optimism", "--width", "0.1"], ["cannot be met", "upper bound"]),
    "gaps for best-arm": (["solve", "gaps.json", "--program", "best-arm"], ["best-arm", "gaps"]),
    "gaps with noise": (["solve", "gaps.json", "--noise-variance", "2"], ["noise"]),
    "no best arm": (["solve", "i.json", "--theta", "0,0", "--program", "best-arm"], ["gaps", "zero", "none is the best"]),
    "save into nothing": (["solve", "i.json", "--save", "none/p.json"], ["none/p.json", "no directory"]),
    "save onto a folder": (["solve", "i.json", "--save", "folder"], ["folder"]),
    "verify nothing": (["verify", "none.json"], ["none.json"]),
    "verify a folder": (["verify", "folder"], ["folder", "directory"]),
    "verify an instance": (["verify", "i.json"], ["i.json", "proof"]),
    "verify junk": (["verify", "i.npz"], ["i.npz"]),
    "spanner of nothing": (["spanner", "none.csv"], ["none.csv"]),
    "spanner below one": (["spanner", "i.csv", "-C", "0.5"], ["C", "0.5"]),
    "spanner nan": (["spanner", "i.csv", "-C", "nan"], ["C", "nan"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_exit_code_2(files, main, monkeypatch, name):
    arguments, words = BAD[name]
    monkeypatch.chdir(files)
    (files / "folder").mkdir()
    (files / "i.txt").write_text("1,2\n")
    is_one_error_line(main(*arguments), *words)


def test_bad_input_end_to_end(files):
    result = run("solve", "i.csv", "--theta", "1,x", cwd=files)
    is_one_error_line((result.returncode, result.stdout, result.stderr), "--theta", "1,x")


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve"],
        ["bogus"],
        ["solve", "i.json", "--tol", "x"],
        ["solve", "i.json", "--program", "x"],
        ["solve", "i.json", "--x"],
    ],
    ids=str,
)
def test_wrong_usage_is_one_line_and_exit_code_2(files, main, monkeypatch, arguments):
    monkeypatch.chdir(files)
    is_one_error_line(main(*arguments), "--help tells more")


NAMES = ["with space.json", "ünïcode é 中.json", "[red]x.json", "[bold].json", "a'b\"c.json", "-x.json",
         "%s{0}.json", "[link=x].json", "$HOME;.json"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_is_read_written_and_shown_as_it_is(files, main, name):
    path = files / name
    path.write_bytes((files / "i.json").read_bytes())
    proof = files / f"proof of {name}"
    code, out, err = main("solve", path, "--save", proof)
    assert (code, err) == (0, "")
    assert f"proof written to {proof}\n" in out  # on one line, so that it can be copied
    assert main("verify", proof)[0] == 0
    assert main("spanner", path)[0] == 0
    path.unlink()
    is_one_error_line(main("solve", path), name)
    proof.write_text("{")
    is_one_error_line(main("verify", proof), name)


def test_a_file_name_that_looks_like_markup_survives_end_to_end(files):
    (files / "[red]x.json").write_bytes((files / "i.json").read_bytes())
    result = run("solve", "[red]x.json", "--save", "[red]p.json", cwd=files)
    assert result.returncode == 0
    assert "[red]p.json" in result.stdout
    result = run("solve", "[red]none.json", cwd=files)
    is_one_error_line((result.returncode, result.stdout, result.stderr), "[red]none.json")


def test_notes_and_reasons_reach_the_reader(files):
    """Ties up to rounding are shown by solve and by verify."""
    (files / "tie.json").write_text(json.dumps({"arms": [[1, 1, 0], [0, 0, 1], [1, 0, 0]], "theta": [0.1, 0.2, 0.3]}))
    result = invoke("solve", files / "tie.json", "--save", files / "p.json")
    assert re.search(r"arm 1 is taken as optimal; its exact gap\s+is\s+\d", result.output)
    result = invoke("verify", files / "p.json")
    assert result.exit_code == 0
    assert "arm 1 is taken as optimal" in result.output
    document = strict(invoke("verify", files / "p.json", "--json").output)
    assert list(document["proven"]["tied_gaps"]) == ["1"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("extra", [[], ["--json"]])
def test_output_that_cannot_be_written_is_one_error_line(files, extra):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        result = run("solve", files / "i.json", *extra, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert "error" in result.stderr


def test_a_closed_pipe_is_silent():
    """As in ``allocopt demo --json | head -1``."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        result = run("demo", "--json", capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert result.stderr == ""


def test_an_interrupt_saves_the_best_answer_and_exits_with_130(files, main, monkeypatch):
    def interrupted(program, *_, **__):
        raise ao.Interrupted(ao.solve(program, "active-set", max_passes=1))

    monkeypatch.setattr(solve_module, "solve", interrupted)
    code, out, err = main("solve", files / "i.json", "--save", files / "p.json")
    assert code == 130
    assert "value" in out
    assert "Traceback" not in err
    assert (files / "p.json").exists()

    def nothing_yet(*_, **__):
        raise ao.Interrupted(None)

    monkeypatch.setattr(solve_module, "solve", nothing_yet)
    code, out, err = main("solve", files / "i.json")
    assert code == 130
    assert out == ""
    assert "Traceback" not in err


def test_running_out_of_memory_is_one_error_line(files, main, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr(solve_module, "solve", greedy)
    is_one_error_line(main("solve", files / "i.json"), "memory")
