"""Whatever people see of a conditional answer says that it is one, and what it assumes; and it counts as an answer."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli import demo, schedule, simulate, solve
from allocopt.cli import main as cli
from allocopt.cli.insight import hardness
from allocopt.insight.hardness.report import sections
from allocopt.insight.hardness.report_document import document
from allocopt.insight.study import quantities as study_quantities
from allocopt.linear.assumptions import Assumption, assuming, sentences
from allocopt.model.solution import Status
from allocopt.model.status_text import caveat, confirmed, usable
from allocopt.play.audit import audit
from allocopt.solving import ordinary_rows

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]]
TEXT = "arm 1 [of three] is taken as optimal"
SHORT = "assuming 1 tie (<= 1.2e-16)"
TIE = Assumption("tie", (1,), Fraction(1, 2**53), TEXT)
AS_JSON = {"kind": "tie", "arms": [1], "size": f"1/{2**53}", "text": TEXT}


def conditional(solution):
    return dataclasses.replace(solution, status=Status.CONDITIONAL, assumptions=(TIE,))


def inaccurate(solution):
    return dataclasses.replace(solution, status=Status.INACCURATE, stats={**solution.stats, "reason": "it got tired"})


def after(function, change):
    return lambda *arguments, **options: change(function(*arguments, **options))


def assuming_a_tie(h, change=conditional):
    return dataclasses.replace(h, _at=dataclasses.replace(h._at, solution=change(h.solution)))


@pytest.fixture
def bandit():
    return ao.LinearBandit(ARMS, [1, 0])


@pytest.fixture
def found():
    return conditional(ao.regret_constant(ARMS, [1, 0]))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "instance.json"
    path.write_text(json.dumps({"arms": ARMS, "theta": [1, 0]}))
    return path


def invoke(*arguments):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], env={"COLUMNS": "150", "NO_COLOR": "1"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_short_form_counts_kinds_and_never_rounds_a_size_down():
    dependence = Assumption("dependence", (4,), Fraction(1, 10**400), "rows 0 to 4 span three dimensions")
    assert assuming([]) == ""
    assert assuming([TIE]) == SHORT
    assert assuming([TIE, TIE, dependence]) == "assuming 2 ties and 1 dependence (<= 1.2e-16)"
    assert assuming([dependence]) == "assuming 1 dependence (<= 1e-400)"
    assert assuming([Assumption("tie", (1,), Fraction(110000001, 10**24), "")]) == "assuming 1 tie (<= 1.2e-16)"


def test_long_lists_of_assumptions_are_cut_with_the_largest_first():
    many = [Assumption("tie", (i,), Fraction(i, 2**60), f"arm {i}") for i in range(1, 9)]
    assert sentences(many, 2) == ["arm 8", "arm 7", "and 6 more"]


def test_a_conditional_answer_is_usable_and_has_a_caveat(found):
    assert [s.name for s in Status if usable(s)] == ["CERTIFIED", "CONDITIONAL"]
    assert caveat(found) == f"CONDITIONAL: {SHORT}"
    assert caveat(ao.regret_constant(ARMS, [1, 0])) == ""
    assert caveat(inaccurate(found)) == f"INACCURATE: it got tired; {SHORT}"


def test_representations_say_what_is_assumed_and_nothing_where_nothing_is(found, bandit):
    assert f"status=CONDITIONAL {SHORT}, method=" in repr(found)
    assert "assum" not in repr(ao.regret_constant(ARMS, [1, 0]))
    assert SHORT in repr(ao.Schedule.from_solution(found, 1000))
    h = ao.hardness(bandit)
    assert "status=CERTIFIED, n_arms" in repr(h) and h.assumptions == ()
    conditional_h = assuming_a_tie(h)
    assert f"status=CONDITIONAL {SHORT}, n_arms" in repr(conditional_h)
    assert conditional_h.status is Status.CONDITIONAL and conditional_h.assumptions == (TIE,)
    regret = ao.regret_constant(ARMS, [1, 0])
    audited = audit(regret.program.origin.bandit, [980, 10, 10], 1000, solution=conditional(regret))
    assert f"c {SHORT}" in repr(audited)


def test_solve_shows_the_assumption_and_exits_with_0(file, monkeypatch):
    monkeypatch.setattr(solve, "solve", after(solve.solve, conditional))
    shown = invoke("solve", file)
    assert shown.exit_code == 0
    assert f"CONDITIONAL {SHORT}" in shown.output and TEXT in shown.output and "proven" in shown.output
    result = json.loads(invoke("solve", file, "--json").output)
    assert result["status"] == "CONDITIONAL" and result["assumptions"] == [AS_JSON]
    assert result["proven"]["lower"] <= 8 <= result["proven"]["upper"] and result["confirmed"] is True


def test_an_inaccurate_answer_exits_with_1_and_shows_its_reason_and_its_assumptions(file, monkeypatch):
    monkeypatch.setattr(solve, "solve", after(solve.solve, lambda s: inaccurate(conditional(s))))
    shown = invoke("solve", file)
    assert shown.exit_code == 1
    assert "INACCURATE it got tired" in shown.output and TEXT in shown.output


def test_what_is_certified_assumes_nothing(file):
    result = json.loads(invoke("solve", file, "--json").output)
    assert result["status"] == "CERTIFIED" and result["assumptions"] == []
    assert "assuming" not in invoke("solve", file).output


@pytest.mark.parametrize("command", ["solve", "hardness"])
@pytest.mark.parametrize("refusal", ["--no-verify", "--no-prove"])
def test_the_proof_is_made_unless_refused(file, command, refusal):
    assert json.loads(invoke(command, file, "--json").output)["proven"]["lower"] > 7.9
    assert json.loads(invoke(command, file, "--json", refusal).output).get("proven") is None


def test_large_sets_are_proven_too(tmp_path, monkeypatch):
    """What counts as large is made small here: 2500 arms are solved block by block."""
    monkeypatch.setattr("allocopt.model.arms.opening.LARGE", 100)
    monkeypatch.setattr("allocopt.model.arms.opening.MANY", 100)
    rng = np.random.default_rng(0)
    arms = rng.standard_normal((2500, 2))
    np.savez(tmp_path / "many.npz", arms=arms, theta=[1.0, 0.5])
    result = json.loads(invoke("solve", tmp_path / "many.npz", "--json").output)
    assert result["stats"]["arms_in_pool"] < 2500
    assert result["proven"]["lower"] <= result["value"] * (1 + 1e-12) and result["confirmed"] is True


@pytest.mark.parametrize("command", ["solve", "hardness"])
def test_a_proof_that_does_not_bear_out_the_bounds_is_said_and_exits_with_1(file, monkeypatch, command):
    def wrong(self, precision=None):
        return dataclasses.replace(real(self, precision), lower=0.0, upper=float("inf"))

    real = ao.Solution.verify
    monkeypatch.setattr(ao.Solution, "verify", wrong)
    shown = invoke(command, file)
    assert shown.exit_code == 1 and "does not confirm" in shown.output
    assert json.loads(invoke(command, file, "--json").output)["confirmed"] is False


def test_a_proven_interval_must_be_that_of_the_solution():
    s = ao.regret_constant(ARMS, [1, 0])
    proven = s.verify()
    assert confirmed(s, proven)
    assert not confirmed(s, dataclasses.replace(proven, lower=proven.lower * 0.999))
    assert not confirmed(s, dataclasses.replace(proven, upper=proven.upper * 1.001))


def test_ctrl_c_during_the_proof_keeps_the_answer_and_the_file(file, tmp_path, monkeypatch):
    def interrupted(self, precision=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(ao.Solution, "verify", interrupted)
    shown = invoke("solve", file, "--save", tmp_path / "p.json", "--json")
    assert shown.exit_code == 130
    result = json.loads(shown.stdout)
    assert round(result["value"], 6) == 8 and result["proven"] is None
    assert (tmp_path / "p.json").exists()


def test_hardness_shows_the_assumption_everywhere_and_exits_with_0(file, monkeypatch):
    monkeypatch.setattr(hardness, "hardness", after(hardness.hardness, assuming_a_tie))
    shown = invoke("hardness", file)
    assert shown.exit_code == 0
    assert "CONDITIONAL, relative gap" in shown.output and TEXT in shown.output
    assert f"! CONDITIONAL: {SHORT}: {TEXT}" in shown.output
    result = json.loads(invoke("hardness", file, "--json").output)
    assert result["status"] == "CONDITIONAL" and result["assumptions"] == [AS_JSON]
    assert result["solution"]["assumptions"] == [AS_JSON] and result["best_arm_assumptions"] == []
    assert any(TEXT in warning for warning in result["warnings"])
    page = invoke("hardness", file, "--html", file.parent / "r.html")
    assert page.exit_code == 0 and TEXT in (file.parent / "r.html").read_text()


def test_parts_of_the_report_that_are_conditional_themselves_say_so(bandit):
    h = assuming_a_tie(ao.hardness(bandit))
    h.__dict__["best_arm"] = conditional(h.best_arm)
    h._optimistic[1.0] = conditional(h.optimism(1.0))
    added = h.with_arm([0.5, 0.5])
    added = dataclasses.replace(added, solution=conditional(added.solution))
    parts = {s.title: s for s in sections(h, [1.0], [added])}
    assert ("", f"T* is CONDITIONAL: {SHORT}") in parts["Summary"].rows
    assert parts["Price of optimism"].rows[0][-1] == f"CONDITIONAL: {SHORT}"
    assert parts["With one more arm"].rows[0][-1].endswith(f"CONDITIONAL: {SHORT}")
    remarks = [row[-1] for row in parts["Without an arm"].rows if row[1] != "optimal"]
    assert remarks and all(SHORT in remark for remark in remarks)
    result = document(h, [1.0], [added])
    json.dumps(result, allow_nan=False)
    assert result["best_arm_assumptions"] == [AS_JSON] == result["additions"][0]["assumptions"]
    assert result["price_of_optimism"][0]["assumptions"] == [AS_JSON]


def test_an_inaccurate_report_exits_with_1(file, monkeypatch):
    monkeypatch.setattr(hardness, "hardness", after(hardness.hardness, lambda h: assuming_a_tie(h, inaccurate)))
    shown = invoke("hardness", file)
    assert shown.exit_code == 1 and "! INACCURATE: it got tired" in shown.output


def test_a_schedule_of_a_conditional_solution_is_made_and_says_so(file, found, monkeypatch):
    monkeypatch.setattr(schedule, "solve", after(schedule.solve, conditional))
    shown = invoke("schedule", file, "-n", 1000)
    assert shown.exit_code == 0
    assert f"note: the solution is CONDITIONAL, {SHORT}: {TEXT}" in shown.output
    result = json.loads(invoke("schedule", file, "-n", 1000, "--json").output)
    assert result["solution"]["status"] == "CONDITIONAL" and result["solution"]["assumptions"] == [AS_JSON]
    monkeypatch.setattr(schedule, "solve", after(schedule.solve, inaccurate))
    shown = invoke("schedule", file, "-n", 1000)
    assert shown.exit_code == 1 and "the solution is INACCURATE: its cost may be" in shown.output


def test_a_simulation_says_what_its_constant_assumes(file, monkeypatch):
    arguments = ("simulate", file, "-n", 50, "-r", 2, "-p", "UCB")
    assert "CONDITIONAL" not in invoke(*arguments).output
    monkeypatch.setattr(simulate, "solve", after(simulate.solve, conditional))
    shown = invoke(*arguments)
    assert shown.exit_code == 0 and f"c is CONDITIONAL: {SHORT}" in shown.output and TEXT in shown.output
    result = json.loads(invoke(*arguments, "--json").output)
    assert result["c_status"] == "CONDITIONAL" and result["assumptions"] == [AS_JSON]


def test_a_simulation_without_a_constant_says_why(file, monkeypatch, tmp_path):
    def failed(solution):
        return dataclasses.replace(inaccurate(solution), status=Status.FAILED, lower=0.0, upper=float("inf"))

    monkeypatch.setattr(simulate, "solve", after(simulate.solve, failed))
    arguments = ("simulate", file, "-n", 50, "-r", 2, "-p", "UCB")
    assert "c is FAILED: it got tired" in invoke(*arguments).output
    shown = invoke(*arguments, "--json", "--plot", tmp_path / "p.svg")
    assert shown.exit_code == 0 and json.loads(shown.output)["c"] == "inf"


def test_the_demo_says_what_its_rows_assume(monkeypatch):
    result = json.loads(invoke("demo", "--json").output)
    rows = result["counter_example"] + result["price_of_optimism"]
    assert {row["status"] for row in rows} == {"CERTIFIED"} and not any(row["assumptions"] for row in rows)
    monkeypatch.setattr(demo, "solve", after(demo.solve, conditional))
    assert f"a = 2, ε = 0.2 is CONDITIONAL: {TEXT}" in invoke("demo").output


def test_a_conditional_row_of_a_batch_says_what_it_assumes(monkeypatch):
    """Rows that are not compiled: here all, as if they were too large."""
    monkeypatch.setattr("allocopt.solving.batch.MOST_ARMS", 0)
    monkeypatch.setattr(ordinary_rows, "ordinary_solution", after(ordinary_rows.ordinary_solution, conditional))
    batch = ao.solve_many(ARMS, [[0, 1, 0.25]], workers=1)
    assert batch.status[0] is Status.CONDITIONAL and batch.reasons == {0: SHORT}
    assert "CONDITIONAL=1" in repr(batch)


@pytest.fixture
def spec():
    return {
        "family": {"name": "counter-example"}, "grid": {"epsilon": [0.2, 0.01]},
        "quantities": ["c", "ucb", "ratio", "support-size"], "method": "active-set",
    }  # fmt: skip


def test_a_study_counts_conditional_rows_and_names_what_they_assume(tmp_path, spec, monkeypatch):
    monkeypatch.setattr(study_quantities, "solve", after(study_quantities.solve, conditional))
    result = ao.study(spec, tmp_path / "s", workers=1)
    assert result.counts == {"CERTIFIED": 2, "CONDITIONAL": 4, "COUNTED": 2}
    assert (result.certified, result.conditional, result.inaccurate, result.failed) == (2, 4, 0, 0)
    assert [line["conditional"] for line in result.summary()] == [2, 0, 2, 0]
    assert result.assumptions() == {TEXT: 4} and result.reasons() == {}
    assert result.rows("c")["assumptions"].to_pylist() == [TEXT, TEXT]
    assert result.rows("ucb")["assumptions"].to_pylist() == [None, None]
    assert "CONDITIONAL=4" in repr(result)


def test_the_study_command_exits_with_0_and_shows_what_rows_assume(tmp_path, monkeypatch):
    text = '[family]\nname = "counter-example"\n[grid]\nepsilon = [0.2, 0.01]\n'
    (tmp_path / "spec.toml").write_text(f'quantities = ["c", "ratio"]\nmethod = "active-set"\n{text}')
    plain = invoke("study", tmp_path / "spec.toml", "--workers", 1, "--out", tmp_path / "plain")
    assert plain.exit_code == 0 and "conditional" not in plain.output
    monkeypatch.setattr(study_quantities, "solve", after(study_quantities.solve, conditional))
    shown = invoke("study", tmp_path / "spec.toml", "--workers", 1)
    assert shown.exit_code == 0
    assert "conditional" in shown.output and f"4 rows assume: {TEXT}" in shown.output
    result = json.loads(invoke("study", tmp_path / "spec.toml", "--workers", 1, "--json").output)
    assert result["assumptions"] == [{"text": TEXT, "rows": 4}]


def test_gaps_that_are_zero_up_to_rounding_only_make_their_sums_conditional(tmp_path):
    """0.1 + 0.2 and 0.3 tie, but not as doubles: the smallest gap and Σ 2/Δ are those of the tie."""
    nearly = {"arms": [[1, 1, 0], [0, 0, 1], [1, 0, 0]], "theta": [0.1, 0.2, 0.3]}
    exactly = {"arms": [[1, 1, 0], [0, 0, 1], [1, 0, 0]], "theta": [0.25, 0.25, 0.5]}
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(instance) + "\n" for instance in (nearly, exactly)))
    spec = {"family": {"instances": str(tmp_path / "both.jsonl")}, "quantities": ["ucb", "gap-min", "gap-max"]}
    result = ao.study(spec, tmp_path / "s", workers=1)
    for quantity in ("ucb", "gap-min"):
        near, exact = result.rows(quantity).to_pylist()
        assert near["status"] == "CONDITIONAL" and near["reason"] is None
        assert near["assumptions"].startswith("arm 1 is taken as optimal; its exact gap is ")
        assert exact["status"] == "CERTIFIED" and exact["assumptions"] is None
    assert {row["status"] for row in result.rows("gap-max").to_pylist()} == {"CERTIFIED"}


def test_a_quotient_assumes_what_both_parts_do_and_is_as_certain_as_the_worse(monkeypatch):
    certified = study_quantities.Answer(2.0, 2.0, 2.0, "CERTIFIED")
    one = study_quantities.Answer(2.0, 2.0, 2.0, "CONDITIONAL", None, "one")
    two = study_quantities.Answer(2.0, 2.0, 2.0, "INACCURATE", "tired", "two")

    def judged(above, below):
        found = study_quantities._quotient("ucb", above, below)
        return found.status, found.reason, found.assumptions

    assert judged(certified, certified) == ("CERTIFIED", None, None)
    assert judged(certified, one) == judged(one, certified) == judged(one, one) == ("CONDITIONAL", None, "one")
    assert judged(one, two) == ("INACCURATE", "tired", "one; two")
