"""Saving proofs: whole files or none, whatever the disk does, under any name."""

import errno
import os
from pathlib import Path

import pytest
from proofs import reload

import allocopt as ao


def failing(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("tempfile.mkstemp", errno.EACCES),
        ("tempfile.mkstemp", errno.EROFS),
        ("os.fdopen", errno.ENOSPC),
        ("pathlib.Path.replace", errno.EACCES),
        ("pathlib.Path.chmod", errno.EPERM),
    ],
)
def test_a_failed_save_leaves_the_old_file_and_nothing_else(solutions, function, code, tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    solutions["exact"].save(path)
    old = path.read_bytes()
    monkeypatch.setattr(function, failing(code))
    with pytest.raises(ao.InvalidFile) as caught:
        solutions["regret"].save(path, overwrite=True)
    monkeypatch.undo()
    assert str(caught.value).startswith(f"{path}: ")
    assert os.strerror(code) in str(caught.value)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(solutions, tmp_path, monkeypatch):
    path = tmp_path / "p.json"
    solutions["exact"].save(path)
    old = path.read_bytes()
    fdopen = os.fdopen

    def full(handle, *rest, **named):
        stream = fdopen(handle, *rest, **named)
        stream.write = failing(errno.ENOSPC)
        return stream

    monkeypatch.setattr("os.fdopen", full)
    with pytest.raises(ao.InvalidFile, match=os.strerror(errno.ENOSPC)):
        solutions["regret"].save(path, overwrite=True)
    monkeypatch.undo()
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def test_saving_where_nothing_can_be_is_refused_by_name(solutions, tmp_path):
    s = solutions["exact"]
    (tmp_path / "folder.json").mkdir()
    for path in (tmp_path / "none" / "p.json", tmp_path / "folder.json", tmp_path / ("x" * 300), Path("/proc/p.json")):
        with pytest.raises(ao.InvalidFile) as caught:
            s.save(path)
        assert str(caught.value).startswith(f"{path}: ")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.json"]


def test_saving_follows_the_umask_and_replaces_files_only_if_asked(solutions, tmp_path):
    path = tmp_path / "p.json"
    mask = os.umask(0o027)
    try:
        solutions["general"].save(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(ao.InvalidFile, match="exists already"):
        solutions["exact"].save(path)
    assert ao.load_solution(path).program.kind == "general"
    solutions["exact"].save(path, overwrite=True)
    assert ao.load_solution(path).program.kind == "regret"


@pytest.mark.parametrize(
    "name", ["with space.json", "ünïcode é.json", "[red]x.json", "no extension", ".hidden", "%s{}.json"]
)
def test_any_file_name_will_do(solutions, name, tmp_path):
    assert reload(solutions["exact"], tmp_path / name).verify() == solutions["exact"].verify()
    assert [p.name for p in tmp_path.iterdir()] == [name]
