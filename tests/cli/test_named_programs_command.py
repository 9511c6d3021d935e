"""`allocopt solve --program …` for every named program: what is printed, saved, and refused in one line."""

import json

import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli.main import app

ARMS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.1]]
INSTANCE = {
    "arms": ARMS, "theta": [1.0, 0.5, 0.0], "noise_variance": [1.0, 2.0, 1.0, 0.5],
    "items": [[1.0, 0.0, 0.0], [0.9, 0.1, 0.2]], "labels": ["a", "b", "c", "d"],
}  # fmt: skip
CONTEXTS = {"contexts": [[[1.0, 0.0], [0.0, 1.0], [0.9, 0.2]], [[0.5, 0.0], [0.4, 0.1]]], "theta": [1.0, 0.0]}


@pytest.fixture
def files(tmp_path):
    (tmp_path / "i.json").write_text(json.dumps(INSTANCE))
    (tmp_path / "c.json").write_text(json.dumps(CONTEXTS))
    return tmp_path


def solve(*arguments):
    return CliRunner().invoke(app, ["solve", *map(str, arguments)])


CALLS = {
    "regret": ([], lambda b: ao.programs.regret(b)),
    "best-arm": ([], lambda b: ao.programs.best_arm(b)),
    "top-m": (["--m", "2"], lambda b: ao.programs.top_m(b, 2)),
    "threshold": (["--tau", "0.3"], lambda b: ao.programs.threshold(b, 0.3)),
    "optimism": (["--width", "2"], lambda b: ao.programs.optimism(b, 2.0)),
    "transductive": (
        [], lambda b: ao.programs.transductive(b.arms, INSTANCE["items"], b.theta, b.noise_variance),
    ),
}  # fmt: skip


@pytest.mark.parametrize("program", CALLS)
def test_each_program_by_name(files, program):
    options, made = CALLS[program]
    bandit = ao.LinearBandit(ARMS, INSTANCE["theta"], INSTANCE["noise_variance"])
    proof = files / "proof.json"
    result = solve(files / "i.json", "--program", program, *options, "--json", "--save", proof)
    assert result.exit_code == 0, result.output
    document = json.loads(result.output)
    expected = ao.solve(made(bandit), road="numpy")  # the command shows its progress, which compiled code has none of
    assert document["value"] == expected.value and document["confirmed"]
    assert document["labels"] == INSTANCE["labels"]
    assert ao.load_solution(proof).verify(exact=True).problems == ()
    shown = solve(files / "i.json", "--program", program, *options)
    assert shown.exit_code == 0 and "CERTIFIED" in shown.output
    checked = CliRunner().invoke(app, ["verify", str(proof)])
    assert checked.exit_code == 0 and "the claim holds" in checked.output


def test_budgets_semi_bandits_and_side_observations(files):
    found = json.loads(solve(files / "c.json", "--program", "contextual", "--budget", "1000", "--json").output)
    expected = ao.solve(ao.programs.contextual(ao.ContextualBandit(CONTEXTS["contexts"], CONTEXTS["theta"]), 1000.0))
    assert found["value"] == expected.value and found["confirmed"]
    assert found["constraint_multipliers"] == expected.constraint_multipliers.tolist()
    shown = solve(files / "c.json", "--program", "contextual", "--budget", "1000").output
    assert "what limits the allocation" in shown and "one more is worth" in shown
    assert "what limits" not in solve(files / "c.json", "--program", "contextual").output
    (files / "s.json").write_text(
        json.dumps({"arms": [[1, 0, 0, 1], [0, 1, 1, 0]], "theta": [1, 0, 0, 1], "noise_variance": 0.5})
    )
    assert json.loads(solve(files / "s.json", "--program", "semi-bandit", "--json").output)["value"] == pytest.approx(
        1.0
    )
    side = {
        "means": [1, 0.75, 0.5],
        "variances": [[1, None, "inf"], [None, 1, None], [1, 1, 1]],
        "labels": ["a", "b", "c"],
    }
    (files / "o.json").write_text(json.dumps(side))
    proof = files / "side.json"
    shown = solve(files / "o.json", "--program", "side-observations", "--json", "--save", proof)
    assert json.loads(shown.output)["value"] == pytest.approx(10.0)
    assert ao.load_solution(proof).verify(exact=True).problems == ()
    listed = {"means": side["means"], "shown": [[0], [1], [2, 0, 1]], "variances": [[1], [1], [1, 1, 1]]}
    (files / "l.json").write_text(json.dumps(listed))
    again = json.loads(solve(files / "l.json", "--program", "side-observations", "--json").output)
    assert again["value"] == json.loads(shown.output)["value"]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ({"means": [1, 0], "shown": [[0], [2]], "variances": [[1], [1]]}, [], "entry 1 of"),
        ({"means": [1, 0], "shown": [[0], [1, 1]], "variances": [[1], [1, 2]]}, [], "distinct arms"),
        ({"means": [1, 0], "shown": [[0], [1]], "variances": [[1], ["x"]]}, [], "a number for each"),
        ({"means": [1, 0], "shown": [[0]], "variances": [[1], [1]]}, [], "as many lists"),
        ({"means": [1, 0], "shown": [[0], [1]], "variances": [[1], [0]]}, [], "expected entries > 0"),
        ({"means": [1, 0]}, [], "variances"), ({"means": [1, 0], "variances": [[1, 1], [1, 1]], "arms": []}, [], "unknown entry"),
        ({"means": [1, 0], "variances": [[1]]}, [], "shape"),
        ({"means": [1, 0], "variances": [[1, 1], [1, 1]]}, ["--tau", "1"], "--tau"),
        ({"means": [1, 0], "variances": "x"}, [], "variances"),
    ],
)  # fmt: skip
def test_bad_side_observations_are_refused_in_one_line(files, content, options, words):
    (files / "o.json").write_text(json.dumps(content))
    result = solve(files / "o.json", "--program", "side-observations", *options)
    assert result.exit_code != 0 and words in str(result.exception)


def test_answers_within_epsilon_are_listed(files):
    document = json.loads(solve(files / "i.json", "--program", "best-arm", "--epsilon", "0.6", "--json").output)
    assert {row["arm"] for row in document["answers"]} == {0, 1, 3}
    assert document["value"] == min(row["upper"] for row in document["answers"])
    assert (
        "the cheapest of 3 correct answers"
        in solve(files / "i.json", "--program", "best-arm", "--epsilon", "0.6").output
    )


def test_contexts_and_duels(files):
    document = json.loads(solve(files / "c.json", "--program", "contextual", "--json").output)
    assert document["value"] == pytest.approx(8.0) and document["labels"][3] == "context 1, arm 0"
    duels = solve(files / "i.json", "--program", "duelling", "--noise-variance", "1", "--json")
    assert json.loads(duels.output)["labels"][0] == "a against b"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["i.json", "--m", "2"], ["--m", "top-m"]),
        (["i.json", "--program", "top-m"], ["--m", "a number of arms"]),
        (["i.json", "--program", "top-m", "--m", "4"], ["m:", "1 to 3"]),
        (["i.json", "--program", "threshold"], ["--tau"]),
        (["i.json", "--program", "threshold", "--tau", "0.5"], ["tau", "mean of arm 1"]),
        (["i.json", "--program", "best-arm", "--epsilon", "-1"], ["epsilon"]),
        (["i.json", "--program", "regret", "--epsilon", "1"], ["--epsilon", "best-arm"]),
        (["i.json", "--program", "duelling"], ["one number for duels"]),
        (["i.json", "--program", "horizon", "-n", "1000"], ["noise_variance", "--program horizon"]),
        (["c.json"], ["contexts", "--program contextual"]),
        (["c.json", "--program", "transductive"], ["items"]),
        (["empty.json", "--program", "contextual"], ["context 1 has none"]),
        (["both.json", "--program", "contextual"], ["arms or contexts"]),
        (["noise.json"], ["noise_variance", "4 arms"]),
    ],
)  # fmt: skip
def test_bad_calls_end_with_one_line(files, arguments, words):
    (files / "empty.json").write_text(json.dumps({**CONTEXTS, "contexts": [[[1.0, 0.0]], []]}))
    (files / "both.json").write_text(json.dumps({**CONTEXTS, "arms": [[1.0, 0.0]]}))
    (files / "noise.json").write_text(json.dumps({**INSTANCE, "noise_variance": [1.0, 2.0]}))
    result = solve(files / arguments[0], *arguments[1:])
    assert result.exit_code != 0
    said = (
        result.output if result.exception is None or isinstance(result.exception, SystemExit) else str(result.exception)
    )
    assert all(word in said for word in words), said
