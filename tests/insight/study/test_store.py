"""The folder of a study: another study's folder, a user's files and a full disk lose nothing."""

import errno
import functools
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from studies import BASIC, FAMILY, RANDOM, toml

import allocopt as ao
from allocopt.base import atomic_files
from allocopt.base.long_runs import store
from allocopt.insight.instances import random_unit
from allocopt.insight.study.study import study


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        ({"tol": 1e-6}, "tol is 1e-08 there and 1e-06 here"),
        ({"quantities": ["c"]}, 'quantities is ["c", "ucb", "ratio"] there'),
        ({"grid": {"epsilon": [0.2, 0.02]}}, "grid.epsilon[1] is 0.01 there and 0.02 here"),
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
    with pytest.raises(ao.InvalidFile, match=r"family\.is\.file is .* the code of family\.is has changed"):
        study(spec, tmp_path / "s")

    def make(dim):
        return lambda seed: random_unit(dim, 4, seed)

    study({"family": make(2), "repeats": 2, "quantities": ["c"]}, tmp_path / "t")
    with pytest.raises(ao.InvalidFile, match=r"family\.is\.dim is 2 there and 3 here"):
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
    with pytest.raises(ao.InvalidFile, match=r"the content of family\.is\.arms has changed"):
        study({"family": functools.partial(fixed_arms, arms=other), **spec}, tmp_path / "s")


def test_a_users_own_files_are_never_touched(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "table.parquet").write_bytes(b"my own")
    with pytest.raises(ao.InvalidFile, match=r"holds 'table\.parquet' and no results\.sqlite; nothing was changed"):
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
    with pytest.raises(ao.InvalidFile, match="expected this study's table, but the file is damaged or something else"):
        study(BASIC, tmp_path / "s")
    (tmp_path / "file").write_text("")
    with pytest.raises(ao.InvalidFile, match="it is a file"):
        study(BASIC, tmp_path / "file")


def test_a_full_disk_keeps_what_is_finished(tmp_path, monkeypatch):
    whole = study(RANDOM, tmp_path / "whole", workers=1).path.read_bytes()
    prepare = store._prepare

    def on_a_small_disk(connection, folder, kind):
        prepare(connection, folder, kind)
        connection.execute("PRAGMA max_page_count = 14")  # SQLite says then what it says on a full disk

    monkeypatch.setattr(store, "_prepare", on_a_small_disk)
    with pytest.raises(ao.InvalidFile, match="No space left on device; what is finished is kept"):
        study(RANDOM, tmp_path / "s", workers=1)
    monkeypatch.undo()
    result = study(RANDOM, tmp_path / "s", workers=1)
    assert 0 < result.computed < 160
    assert result.path.read_bytes() == whole


def test_a_full_disk_while_the_table_is_written_leaves_no_half_of_it(tmp_path, monkeypatch):
    whole = study(RANDOM, tmp_path / "whole", workers=1).path.read_bytes()

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic_files.os, "fsync", full)
    with pytest.raises(ao.InvalidFile, match=r"cannot write the table; what is finished is kept: No space left"):
        study(RANDOM, tmp_path / "s", workers=1)
    monkeypatch.undo()
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == [".allocopt-lock", "results.sqlite"]
    result = study(RANDOM, tmp_path / "s", workers=1)
    assert result.computed == 0 and result.path.read_bytes() == whole


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
        with pytest.raises(
            ao.InvalidFile, match=r"another process is working in this folder: process [0-9]+ on .*, since 20"
        ):
            study(spec, tmp_path / "s", workers=1)
        return random_unit(2, 4, seed)

    spec = {"family": family, "repeats": 1, "quantities": ["c"]}
    assert study(spec, tmp_path / "s", workers=1).failed == 0


def test_without_pyarrow_it_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ao.MethodUnavailable, match=r"needs pyarrow: pip install 'allocopt\[files\]'"):
        study(BASIC, tmp_path / "s")
    assert not (tmp_path / "s").exists()
