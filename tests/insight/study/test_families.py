"""Families that misbehave: every row that cannot be has its reason, and the others are untouched."""

import json
import os
import sys

import numpy as np
import pytest
from studies import FAMILY, as_dicts, toml

import allocopt as ao
from allocopt.insight.instances import counter_example
from allocopt.insight.study.study import study


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
        with open(os.fsencode(folder) + b"/" + name, "w", encoding="utf-8") as out:
            out.write(content)
    rows = as_dicts(study({"family": {"instances": str(folder)}, "quantities": ["c"]}, tmp_path / "s"))
    assert [row["source"] for row in rows] == ["a\\udcff.json", "b\\udcfe.json"]
    assert [row["status"] for row in rows] == ["CERTIFIED", "FAILED"]


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
    with pytest.raises(ao.InvalidFile, match=r"the content of family\.instances has changed"):
        study({"family": {"instances": str(lines)}, "quantities": ["c"]}, tmp_path / "t")
