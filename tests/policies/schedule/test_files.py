"""Files of a schedule: enough to play from, whole or absent, never over a user's file."""

import csv
import dataclasses
import json

import numpy as np
import pytest
from schedules import INSTANCE, LABELS, passes, regret

import allocopt as ao
from allocopt.policies.schedule.play_order import ORDERS
from allocopt.policies.schedule.schedule import Schedule


@pytest.fixture
def small():
    bandit = ao.LinearBandit(INSTANCE["arms"], INSTANCE["theta"], labels=LABELS)
    return Schedule.from_solution(regret(bandit), 500, order="tracking")


def test_csv_has_the_runs_or_the_rounds(small, tmp_path):
    small.to_csv(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(int(r["arm"]), int(r["pulls"])) for r in rows] == list(small.runs())
    assert [int(r["first_round"]) for r in rows] == np.cumsum([1] + [int(r["pulls"]) for r in rows])[:-1].tolist()
    assert {r["label"] for r in rows} == {LABELS[i] for i in np.flatnonzero(small.pulls)}
    small.to_csv(tmp_path / "rounds.csv", per_round=True)
    with (tmp_path / "rounds.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [int(r["arm"]) for r in rows] == list(small)
    assert [int(r["round"]) for r in rows] == list(range(1, 501))


@pytest.mark.parametrize("order", ORDERS)
def test_json_tells_enough_to_play(small, order, tmp_path):
    s = dataclasses.replace(small, order=order)
    s.to_json(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text(), parse_constant=pytest.fail)
    assert document == json.loads(json.dumps(s.document()))
    assert {a["arm"]: a["pulls"] for a in document["arms"]} == {i: int(c) for i, c in enumerate(s.pulls) if c}
    assert document["constraints"]["met"] is True
    quota = [0.0] * 3
    for arm in document["arms"]:
        quota[arm["arm"]] = float(arm["wanted"])
    free = np.array([a["arm"] for a in document["arms"] if a["free"]])
    if order == "interleaved":
        assert passes(quota, free, document["length"]) == list(s)
    if document["runs"] is not None:
        assert [tuple(r) for r in document["runs"]] == list(s.runs())


def test_existing_files_are_kept_unless_forced(small, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("mine")
    for write in (small.to_csv, small.to_json):
        with pytest.raises(ao.InvalidFile, match="exists already; choose another name, or write force=True"):
            write(path)
        assert path.read_text() == "mine"
    small.to_csv(path, force=True)
    assert path.read_text().startswith("first_round,")
    assert [p.name for p in tmp_path.iterdir()] == ["mine.csv"]
    with pytest.raises(ao.InvalidFile, match="cannot write"):
        small.to_csv(tmp_path / "no" / "such.csv")


def test_a_file_that_could_not_be_finished_is_not_left_behind(small, tmp_path, monkeypatch):
    def stop(self):
        yield 0, 1
        raise KeyboardInterrupt

    monkeypatch.setattr(Schedule, "runs", stop)
    with pytest.raises(KeyboardInterrupt):
        small.to_csv(tmp_path / "new.csv")
    old = tmp_path / "old.csv"
    old.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        small.to_csv(old, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["old.csv"]
    assert old.read_text() == "old"
