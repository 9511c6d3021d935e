"""study: one certified table, whatever the workers, the interruptions and the family's own mistakes."""

import errno
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from strategies import bandits
from typer.testing import CliRunner

import allocopt as ao
from allocopt.cli import study as command
from allocopt.cli.app import app
from allocopt.insight.instances import counter_example, optimism_example, random_unit
from allocopt.insight.study import quantities as study_quantities
from allocopt.insight.study import store as study_store
from allocopt.insight.study import workers as study_workers
from allocopt.insight.study.quantities import COUNTED, QUANTITIES
from allocopt.insight.study.study import StudySpec, study

ROOT = Path(__file__).parents[3]
BASIC = {"family": {"name": "counter-example"}, "grid": {"epsilon": [0.2, 0.01]}, "quantities": ["c", "ucb", "ratio"]}
RANDOM = {
    "family": {"name": "random-unit"},
    "grid": {"dim": [2, 4], "n_arms": [5, 8]},
    "repeats": 40,
    "quantities": ["c", "ratio"],
}
FAMILY = """
import sys
import numpy as np
import allocopt as ao

def family(kind, seed):
    arms = np.random.default_rng(seed).normal(size=(5, 2))
    theta = [1.0, 0.5]
    if kind == "raises": raise ValueError("no such\\n  thing")
    if kind == "exits": sys.exit("leaving")
    if kind == "memory": raise MemoryError
    if kind == "text": return "rubbish"
    if kind == "none": return None
    if kind == "nan": return arms * np.nan, theta
    if kind == "shape": return arms, [1.0]
    if kind == "entry": return {"arms": arms, "tehta": theta}
    if kind == "one arm": return arms[:1], theta
    if kind == "ties": return {"arms": np.eye(2), "theta": [1.0, 1.0]}
    if kind == "gaps": return {"arms": arms, "gaps": [0, 1, 2, 1, 1]}
    if kind == "noisy": return ao.LinearBandit(arms, theta, noise_variance=3.0)
    return arms, theta
"""


def as_dicts(result, quantity=None):
    return (result.table if quantity is None else result.rows(quantity)).to_pylist()


def values(result, quantity):
    return result.rows(quantity)["value"].to_numpy()


def invoke(*arguments):
    runner = CliRunner()
    return runner.invoke(app, ["study", *map(str, arguments)], env={"COLUMNS": "100", "NO_COLOR": "1"})


def toml(path, text):
    path.write_text(text, encoding="utf-8")
    return path


# --- what is in the table ---------------------------------------------------------------------------------------------


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


# --- designs ----------------------------------------------------------------------------------------------------------


def test_a_random_design_is_within_its_ranges_and_reproducible():
    content = {
        "family": {"name": "counter-example"}, "quantities": ["c"],
        "random": {"n": 500, "epsilon": {"loguniform": [1e-4, 0.1]}, "a": {"uniform": [1, 2]}, "dim": {"integer": [2, 4]},
                   "informative": {"choice": [True, False]}},
    }  # fmt: skip
    spec, again = StudySpec.from_dict(content), StudySpec.from_dict(content)
    points = [spec.design[i] for i in range(500)]
    assert points == [again.design[i] for i in range(500)]
    assert {p["dim"] for p in points} == {2, 3, 4} and {p["informative"] for p in points} == {True, False}
    assert all(1 <= p["a"] <= 2 and 1e-4 <= p["epsilon"] <= 0.1 for p in points)
    assert 0.3 < np.mean([p["epsilon"] < 10**-2.5 for p in points]) < 0.7  # half of them on the log scale
    other = StudySpec.from_dict({**content, "seed": 1})
    assert other.design[0] != points[0]
    del content["random"]["a"]
    fewer = StudySpec.from_dict(content)  # the draws of a parameter do not depend on the others
    assert [fewer.design[i]["epsilon"] for i in range(500)] == [p["epsilon"] for p in points]


def test_the_last_axis_runs_fastest_and_whole_numbers_among_fractions_become_fractions():
    spec = StudySpec.from_dict({**BASIC, "grid": {"epsilon": [0.1, 0.2], "a": [1, 2.5]}})
    assert [tuple(spec.design[i].values()) for i in range(4)] == [(0.1, 1.0), (0.1, 2.5), (0.2, 1.0), (0.2, 2.5)]
    assert dict(spec.parameters) == {"epsilon": float, "a": float}


# --- the same table, whatever happens ---------------------------------------------------------------------------------


def test_the_table_is_the_same_bytes_for_any_number_of_workers_and_any_cut(tmp_path, monkeypatch):
    one = study(RANDOM, tmp_path / "one", workers=1)
    monkeypatch.setattr(study_workers, "_BLOCK_SECONDS", 1e-9)  # blocks of one
    study(RANDOM, tmp_path / "single", workers=1)
    monkeypatch.setattr(study_workers, "_BLOCK_SECONDS", 0.02)
    monkeypatch.setattr(study_workers, "_ALONE_SECONDS", 0.0)
    monkeypatch.setattr(study_workers, "_POOL_SECONDS", 0.0)
    two = study(RANDOM, tmp_path / "two", workers=2)
    assert one.computed == two.computed == 160
    assert len({(tmp_path / x / "table.parquet").read_bytes() for x in ("one", "single", "two")}) == 1
    assert not (tmp_path / "two" / "parts").exists()


def test_what_is_finished_is_not_computed_again(tmp_path):
    calls = tmp_path / "calls"
    calls.touch()

    def family(seed):
        with calls.open("a") as out:
            out.write(f"{seed}\n")
        return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 30, "quantities": ["c"]}

    def stop(progress):
        if progress.done >= 10:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        study(spec, tmp_path / "s", workers=1, callback=stop)
    result = study(spec, tmp_path / "s", workers=1)
    assert 0 < result.computed <= 20
    assert sorted(map(int, calls.read_text().split())) == list(range(30))
    again = study(spec, tmp_path / "s", workers=1)
    assert again.computed == 0 and again.table.equals(result.table)
    assert len(calls.read_text().split()) == 30


def test_killed_three_times_at_random_moments_the_table_is_that_of_an_uninterrupted_study(tmp_path):
    spec = toml(tmp_path / "k.toml", 'quantities = ["c", "ucb"]\nrepeats = 1500\n[family]\nname = "random-unit"\n'
                "[fixed]\ndim = 4\nn_arms = 12\n")  # fmt: skip
    script = (
        "from allocopt.insight.study import workers as w; w._BLOCK_SECONDS = w._ALONE_SECONDS = w._POOL_SECONDS = 0.05\n"
        "from allocopt.cli import study\nfrom allocopt.cli.main import main\nmain()"
    )
    start = [sys.executable, "-c", script, "study", str(spec), "--out", str(tmp_path / "killed"), "--workers", "2"]
    rng = np.random.default_rng()
    parts = tmp_path / "killed" / "parts"
    for kill in range(3):
        process = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
        seen = len(list(parts.glob("0*"))) if parts.exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if parts.exists() and len(list(parts.glob("0*"))) > seen:
                break
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if kill == 0:
            assert not (tmp_path / "killed" / "table.parquet").exists()
            (parts / ".allocopt-left.tmp").write_bytes(b"half")
    resumed = study(spec, tmp_path / "killed")
    assert resumed.computed < 1500
    study(spec, tmp_path / "whole", workers=1)
    killed, whole = (tmp_path / x / "table.parquet" for x in ("killed", "whole"))
    assert killed.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in (tmp_path / "killed").iterdir()) == [".allocopt-lock", "study.json", "table.parquet"]


def test_a_damaged_part_is_computed_again_and_said_so(tmp_path):
    def stop(progress):
        if progress.done >= 20:
            raise KeyError

    with pytest.raises(KeyError):
        study(RANDOM, tmp_path / "s", workers=1, callback=stop)
    part = sorted((tmp_path / "s" / "parts").glob("0*"))[1]
    part.write_bytes(part.read_bytes()[:-50])
    result = study(RANDOM, tmp_path / "s", workers=1)
    assert result.damaged == (part.name,)
    study(RANDOM, tmp_path / "t", workers=1)
    assert (tmp_path / "s" / "table.parquet").read_bytes() == (tmp_path / "t" / "table.parquet").read_bytes()


def test_a_dask_cluster_gives_the_same_table(tmp_path):
    distributed = pytest.importorskip("distributed")
    spec = {"family": {"function": f"{toml(tmp_path / 'f.py', FAMILY)}:family"}, "grid": {"kind": ["fine", "raises"]},
            "repeats": 20, "quantities": ["c"]}  # fmt: skip
    local = study(spec, tmp_path / "local", workers=1)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        remote = study(spec, tmp_path / "dask", dask=cluster.scheduler_address)
    assert remote.computed == 40
    assert local.path.read_bytes() == remote.path.read_bytes()


# --- families that misbehave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "quantity", "reason"),
    [
        ("raises", "c", "ValueError: no such thing"),
        ("exits", "c", "SystemExit: leaving"),
        ("memory", "c", "not enough memory"),
        ("text", "c", "returned a str; expected a LinearBandit, (arms, theta)"),
        ("none", "c", "returned a NoneType"),
        ("nan", "c", "arms: expected finite numbers"),
        ("shape", "c", "theta: expected 2 entries"),
        ("entry", "c", "unknown entry 'tehta'"),
        ("one arm", "c", "with one arm there is nothing to choose"),
        ("ties", "c", "every arm is optimal"),
        ("ties", "ratio", "no ucb: every one of the 2 arms is optimal"),
        ("gaps", "best-arm", "best-arm needs theta"),
    ],
)
def test_a_row_that_cannot_be_is_a_failed_row_with_its_reason_and_the_others_are_untouched(
    tmp_path, kind, quantity, reason
):
    spec = {"family": {"function": f"{toml(tmp_path / 'f.py', FAMILY)}:family"}, "grid": {"kind": ["fine", kind]},
            "repeats": 2, "quantities": [quantity]}  # fmt: skip
    rows = as_dicts(study(spec, tmp_path / "s", workers=1))
    alone = as_dicts(study({**spec, "grid": {"kind": ["fine"]}}, tmp_path / "alone", workers=1))
    assert rows[:2] == alone
    for row in rows[2:]:
        assert (row["status"], row["value"], row["lower"], row["upper"]) == ("FAILED", None, None, None)
        assert reason in row["reason"] and "\n" not in row["reason"]


def broken_text(kind):
    if kind == 0:
        raise ValueError("half a character: \ud800")
    if kind == 1:
        raise GeneratorExit
    if kind == 2:
        raise Unspeakable
    return counter_example(0.1)


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


def test_whatever_a_function_raises_becomes_a_reason_that_can_be_stored(tmp_path):
    spec = {"family": broken_text, "grid": {"kind": [0, 1, 2, 3]}, "quantities": ["c"]}
    rows = as_dicts(study(spec, tmp_path / "s", workers=1))
    assert [row["reason"] for row in rows] == [
        "ValueError: half a character: \\ud800", "GeneratorExit", "Unspeakable", None,
    ]  # fmt: skip


def test_a_file_of_functions_that_exits_is_said(tmp_path):
    file = toml(tmp_path / "f.py", "import sys\nsys.exit(7)\n")
    with pytest.raises(ao.InvalidOption, match="importing it raises SystemExit: 7"):
        study({"family": {"function": f"{file}:f"}, "quantities": ["c"]}, tmp_path / "s")


@pytest.mark.skipif(sys.platform != "linux", reason="only there may names of files be any bytes")
def test_names_of_files_that_are_no_text_are_spelled_out(tmp_path):
    folder = tmp_path / "instances"
    folder.mkdir()
    good = json.dumps({"arms": [[1, 0], [0, 1]], "theta": [1, 0]})
    for name, content in ((b"a\xff.json", good), (b"b\xfe.json", "{")):
        with open(os.fsencode(folder) + b"/" + name, "w") as out:
            out.write(content)
    rows = as_dicts(study({"family": {"instances": str(folder)}, "quantities": ["c"]}, tmp_path / "s"))
    assert [row["source"] for row in rows] == ["a\\udcff.json", "b\\udcfe.json"]
    assert [row["status"] for row in rows] == ["CERTIFIED", "FAILED"]


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
    assert study(spec, tmp_path / "s", workers=1).certified == 1
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


def test_a_worker_that_dies_ends_the_study_in_words_and_keeps_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(study_workers, "_ALONE_SECONDS", 0.0)
    monkeypatch.setattr(study_workers, "_POOL_SECONDS", 0.0)
    main = os.getpid()

    def family(seed):
        if os.getpid() != main:
            os.kill(os.getpid(), signal.SIGKILL)
        return random_unit(2, 4, seed)

    with pytest.raises(ao.SolverFailed, match=r"one of the 2 processes died.*next start goes on"):
        study({"family": family, "repeats": 30, "quantities": ["c"]}, tmp_path / "s", workers=2)
    assert list((tmp_path / "s" / "parts").glob("0*"))


def test_instances_from_a_folder_and_from_json_lines(tmp_path):
    folder = tmp_path / "instances"
    folder.mkdir()
    b = counter_example(0.1)
    good = {"arms": b.arms.tolist(), "theta": b.theta.tolist(), "labels": ["<script>", "[red]x", "c"]}
    (folder / "a.json").write_text(json.dumps(good))
    np.savez(folder / "b.npz", arms=b.arms, gaps=b.gaps)
    (folder / "c.json").write_text("{")
    np.save(folder / "d.npy", b.arms)
    (folder / "README.md").write_text("not an instance")
    rows = as_dicts(study({"family": {"instances": str(folder)}, "quantities": ["c"]}, tmp_path / "s"))
    assert [row["source"] for row in rows] == ["a.json", "b.npz", "c.json", "d.npy"]
    assert [row["status"] for row in rows] == ["CERTIFIED", "CERTIFIED", "FAILED", "FAILED"]
    assert "not valid JSON" in rows[2]["reason"] and "theta or gaps, got neither" in rows[3]["reason"]
    lines = tmp_path / "i.jsonl"
    lines.write_text("\n".join([json.dumps(good), "", "[1", json.dumps({**good, "noise_variance": 2})]))
    rows = as_dicts(study({"family": {"instances": str(lines)}, "quantities": ["c"]}, tmp_path / "t"))
    assert [row["source"] for row in rows] == ["i.jsonl:1", "i.jsonl:3", "i.jsonl:4"]
    assert rows[0]["value"] == pytest.approx(8) and rows[2]["value"] == pytest.approx(16)
    assert "i.jsonl:3: not valid JSON" in rows[1]["reason"]
    lines.write_text(json.dumps(good))
    with pytest.raises(ao.InvalidFile, match="the content of the instance files has changed"):
        study({"family": {"instances": str(lines)}, "quantities": ["c"]}, tmp_path / "t")


# --- folders and disks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"tol": 1e-6}, "tol is 1e-08 there and 1e-06 here"),
        ({"quantities": ["c"]}, 'quantities is ["c", "ucb", "ratio"] there'),
        ({"grid": {"epsilon": [0.2, 0.02]}}, "grid.epsilon is [0.2, 0.01] there and [0.2, 0.02] here"),
        ({"fixed": {"a": 3.0}}, "fixed has nothing there and a here"),
    ],
)
def test_the_folder_of_another_study_is_refused_with_what_differs(tmp_path, change, difference):
    before = study(BASIC, tmp_path / "s").path.read_bytes()
    with pytest.raises(ao.InvalidFile) as refused:
        study({**BASIC, **change}, tmp_path / "s")
    assert "holds another study" in str(refused.value) and difference in str(refused.value)
    assert (tmp_path / "s" / "table.parquet").read_bytes() == before


def test_a_function_whose_code_changed_is_another_study(tmp_path):
    file = toml(tmp_path / "f.py", FAMILY)
    spec = {"family": {"function": f"{file}:family"}, "fixed": {"kind": "fine"}, "repeats": 2, "quantities": ["c"]}
    study(spec, tmp_path / "s")
    toml(file, FAMILY.replace("size=(5, 2)", "size=(6, 2)"))
    with pytest.raises(ao.InvalidFile, match="the function's code has changed"):
        study(spec, tmp_path / "s")

    def make(dim):
        return lambda seed: random_unit(dim, 4, seed)

    study({"family": make(2), "repeats": 2, "quantities": ["c"]}, tmp_path / "t")
    with pytest.raises(ao.InvalidFile, match="the function's code has changed"):
        study({"family": make(3), "repeats": 2, "quantities": ["c"]}, tmp_path / "t")


def fixed_arms(scale, arms):
    return arms, [scale] + [0.0] * (arms.shape[1] - 1)


def test_a_function_with_another_large_array_is_another_study(tmp_path):
    arms = np.random.default_rng(0).normal(size=(600, 3))
    spec = {"fixed": {"scale": 1.0}, "quantities": ["gap-max"]}
    first = study({"family": functools.partial(fixed_arms, arms=arms), **spec}, tmp_path / "s")
    again = study({"family": functools.partial(fixed_arms, arms=arms.copy()), **spec}, tmp_path / "s")
    assert again.computed == 0 and first.computed == 1
    other = arms.copy()
    other[300] *= 2  # where the repr of the array has dots
    with pytest.raises(ao.InvalidFile, match="the function's code has changed"):
        study({"family": functools.partial(fixed_arms, arms=other), **spec}, tmp_path / "s")


def test_a_users_own_files_are_never_touched(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "table.parquet").write_bytes(b"my own")
    with pytest.raises(ao.InvalidFile, match=r"holds 'table\.parquet' and no study\.json; nothing was changed"):
        study(BASIC, mine)
    assert [p.name for p in mine.iterdir()] == ["table.parquet"]
    assert (mine / "table.parquet").read_bytes() == b"my own"
    result = study(BASIC, tmp_path / "s")
    result.path.write_bytes(b"damaged")
    with pytest.raises(ao.InvalidFile, match="damaged or something else; nothing was changed"):
        study(BASIC, tmp_path / "s")
    assert result.path.read_bytes() == b"damaged"
    other = study({**BASIC, "tol": 1e-5}, tmp_path / "other")
    result.path.write_bytes(other.path.read_bytes())
    with pytest.raises(ao.InvalidFile, match="holds the table of another study"):
        study(BASIC, tmp_path / "s")
    (tmp_path / "file").write_text("")
    with pytest.raises(ao.InvalidFile, match="it is a file"):
        study(BASIC, tmp_path / "file")


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    whole = study(RANDOM, tmp_path / "whole", workers=1).path.read_bytes()
    sync, count = os.fsync, 0

    def full(handle):
        nonlocal count
        count += 1
        if count > 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    monkeypatch.setattr(study_store.os, "fsync", full)
    with pytest.raises(ao.InvalidFile, match="No space left on device; what is finished is kept"):
        study(RANDOM, tmp_path / "s", workers=1)
    monkeypatch.undo()
    assert not list((tmp_path / "s").rglob("*.tmp"))
    kept = len(list((tmp_path / "s" / "parts").glob("0*")))
    assert kept > 0
    result = study(RANDOM, tmp_path / "s", workers=1)
    assert result.computed < 160
    assert result.path.read_bytes() == whole


def test_an_unwritable_folder_is_said_before_anything_is_computed(tmp_path, monkeypatch):
    def refuse(self, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    def family():
        raise AssertionError("computed")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(ao.InvalidFile, match="cannot keep the study there: Permission denied"):
        study({"family": family, "quantities": ["c"]}, tmp_path / "s")


def test_two_processes_do_not_work_on_one_study(tmp_path):
    def family(seed):
        with pytest.raises(ao.InvalidFile, match="another process is working on this study"):
            study(spec, tmp_path / "s", workers=1)
        return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 1, "quantities": ["c"]}
    assert study(spec, tmp_path / "s", workers=1).failed == 0


def test_without_pyarrow_it_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ao.MethodUnavailable, match=r"needs pyarrow: pip install 'allocopt\[files\]'"):
        study(BASIC, tmp_path / "s")
    assert not (tmp_path / "s").exists()


# --- specs that are refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": {"name": "counter-exampel"}}, "family.name: 'counter-exampel' is unknown (did you mean 'counter-example'?)"),
        ({"family": None}, "family: expected a table with one of"),
        ({"family": {"function": "nowhere.py:f"}}, "family.function: nowhere.py: cannot be read: No such file"),
        ({"family": {"function": "no_such_module:f"}}, "No module named 'no_such_module'"),
        ({"family": {"function": "math:no"}}, "expected a function, but there is no such name in it"),
        ({"family": {"function": "math"}}, 'expected "module:function"'),
        ({"family": {"instances": "nowhere"}}, "family.instances: nowhere: no such file or folder"),
        ({"grid": {"epsilon": [0.1, 2.0]}}, "grid.epsilon: out of range: epsilon: expected a number in (0, 1]"),
        ({"fixed": {"a": -1}}, "fixed.a: out of range: a: expected a positive"),
        ({"grid": {"epsilom": [0.1]}}, "grid.epsilom: family 'counter-example' has no such parameter (it has: epsilon"),
        ({"grid": {}}, "epsilon: family 'counter-example' needs this parameter"),
        ({"grid": {"epsilon": 0.1}}, "grid.epsilon: expected a list of values"),
        ({"grid": {"epsilon": []}}, "grid.epsilon: expected at least one value"),
        ({"grid": {"epsilon": [0.1, "b"]}}, "grid.epsilon: expected values of one kind, got float and str"),
        ({"grid": {"epsilon": [0.1, 0.1]}}, "grid.epsilon: expected different values, got 0.1 twice"),
        ({"grid": {"epsilon": [float("nan")]}}, "grid.epsilon[0]: expected a finite number"),
        ({"grid": {"epsilon": {"logspace": [-3, -1], "n": 3}}}, "not their exponents"),
        ({"grid": {"epsilon": {"linspace": [0.1, 0.2]}}}, "grid.epsilon.n: expected the number of values"),
        ({"grid": {"epsilon": {"linspace": [0.2, 0.1], "n": 2}}}, "in rising order"),
        ({"grid": {"epsilon": {"linspace": [0.1, 0.2], "n": 2, "step": 1}}}, "grid.epsilon.step: unknown key"),
        ({"grid": {"epsilon": {"arange": [0.1, 0.2]}}}, "two whole numbers"),
        ({"grid": {"epsilon": [0.1], "value": [1]}}, "grid.value: the table has a column of its own"),
        ({"fixed": {"epsilon": 0.1}}, "fixed.epsilon: the parameter varies too, in [grid]"),
        ({"random": {"n": 2}}, "expected either [grid] or [random], got both"),
        ({"repeats": 2}, "repeats: family 'counter-example' takes no parameter seed"),
        ({"repeats": 0}, "repeats: expected a whole number >= 1, got 0"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
        ({"quantities": []}, "quantities: expected a list of names"),
        ({"quantities": ["cc"]}, "quantities: 'cc' is unknown (did you mean c?)"),
        ({"quantities": ["c", "c"]}, "quantities: expected each once"),
        ({"quantities": [["c"]]}, "quantities: ['c'] is unknown"),
        ({"method": ["auto"]}, "method: expected auto or one of"),
        ({"fixed": {"a": "\ud800"}}, "fixed.a: expected a text that UTF-8 can hold"),
        ({"quantities": ["price"]}, "width: expected the confidence width of 'price'"),
        ({"quantities": ["price"], "width": "b"}, "width: expected a number or the name of a parameter (epsilon), got 'b'"),
        ({"width": 1.0}, "width: only optimism and price have a width"),
        ({"tol": 0}, "tol: expected a positive"),
        ({"method": "magic"}, "method: expected auto or one of"),
        ({"toll": 1}, "toll: unknown key (did you mean tol?)"),
    ],
)  # fmt: skip
def test_a_wrong_spec_is_refused_with_its_key(tmp_path, change, message):
    with pytest.raises(ao.InvalidOption) as refused:
        study({**BASIC, **change}, tmp_path / "s")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers"),
        ({"workers": 2, "dask": "tcp://x:1"}, "not both"),
        ({"dask": 3}, "dask: expected an address"),
        ({"dask": "no address"}, "dask: expected an address such as .*port"),
        ({"callback": 3}, "callback"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    with pytest.raises(ao.InvalidOption, match=message):
        study(BASIC, tmp_path / "s", **options)


def test_a_design_too_large_for_memory_is_refused_before_it_is_made():
    with pytest.raises(ao.InvalidOption, match="repeats: expected at most 10000000 instances in all, got 4000000000"):
        StudySpec.from_dict({**RANDOM, "repeats": 10**9})
    with pytest.raises(ao.InvalidOption, match="expected at most 10000000 values"):
        StudySpec.from_dict({**BASIC, "grid": {"epsilon": {"linspace": [0.1, 0.2], "n": 10**12}}})


# --- the command ------------------------------------------------------------------------------------------------------

SPEC = """
quantities = ["c", "ratio"]
[family]
name = "counter-example"
[grid]
epsilon = { logspace = [1e-3, 1e-1], n = 3 }
"""


def test_the_command_writes_the_table_and_says_where(tmp_path):
    spec = toml(tmp_path / "paper.toml", SPEC)
    first = invoke(spec)
    assert first.exit_code == 0
    assert "3 instances in" in first.stdout and "ratio" in first.stdout
    path = tmp_path / "paper-study" / "table.parquet"
    assert f"table: {path}" in first.stdout
    assert parquet.read_table(path).num_rows == 6
    again = invoke(spec)
    assert "nothing left to do: all 3 instances were there" in again.stdout
    document = json.loads(invoke(spec, "--json").stdout)
    assert document["counts"] == {"CERTIFIED": 6} and document["computed"] == 0
    assert document["quantities"][0]["median"] == pytest.approx(8)


def test_failed_rows_are_counted_by_reason_and_the_exit_code_is_1(tmp_path):
    toml(tmp_path / "f.py", FAMILY)
    spec = toml(tmp_path / "s.toml", 'quantities = ["c"]\nrepeats = 2\n[family]\nfunction = "f.py:family"\n'
                '[grid]\nkind = ["fine", "raises"]\n')  # fmt: skip
    result = invoke(spec, "--out", tmp_path / "o")
    assert result.exit_code == 1
    assert "2 rows: ValueError: no such thing" in result.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("quantities = [", "not valid TOML"),
        (SPEC.replace("counter-example", "nothing"), "family.name: 'nothing' is unknown"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, message):
    spec = tmp_path / "s.toml"
    if text is not None:
        toml(spec, text)
    result = invoke(spec)
    assert isinstance(result.exception, ao.InvalidFile)
    assert message in str(result.exception) and str(spec) in str(result.exception)


def test_ctrl_c_says_that_the_next_start_goes_on(tmp_path, monkeypatch):
    def interrupted(*_, **how):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "study", interrupted)
    result = invoke(toml(tmp_path / "s.toml", SPEC))
    assert result.exit_code == 130
    assert "the same command goes on from there" in result.stderr
