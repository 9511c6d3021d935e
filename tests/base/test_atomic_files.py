"""Files appear complete or not at all."""

import os

import pytest

from allocopt.base.atomic_files import whole_file
from allocopt.base.errors import InvalidFile


def write(path, content, then=lambda: None, **options):
    with whole_file(path, **options) as out:
        out.write(content)
        then()


def fail(error):
    raise error


def test_a_file_is_written_and_readable_by_others(tmp_path):
    write(tmp_path / "a.txt", b"one", overwrite=False)
    assert (tmp_path / "a.txt").read_bytes() == b"one"
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o666 & ~mask
    assert os.listdir(tmp_path) == ["a.txt"]


def test_an_existing_file_is_replaced_only_when_asked(tmp_path):
    write(tmp_path / "a", b"one", overwrite=False)
    with pytest.raises(InvalidFile, match=r"exists already; choose another name, or write overwrite=True \(--force\)"):
        write(tmp_path / "a", b"two", overwrite=False)
    assert (tmp_path / "a").read_bytes() == b"one"
    write(tmp_path / "a", b"two", overwrite=True)
    assert (tmp_path / "a").read_bytes() == b"two"


def test_a_name_taken_in_the_meantime_is_not_lost(tmp_path):
    with pytest.raises(InvalidFile, match="exists already"):
        write(tmp_path / "a", b"mine", lambda: (tmp_path / "a").write_bytes(b"somebody else's"), overwrite=False)
    assert (tmp_path / "a").read_bytes() == b"somebody else's"
    assert os.listdir(tmp_path) == ["a"]


def test_a_writer_that_fails_leaves_nothing_and_the_old_file(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError):
        write(tmp_path / "a", b"half", lambda: fail(ZeroDivisionError()), overwrite=True)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_full_disk_is_one_line_and_the_old_file_stays(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    full = OSError(28, "No space left on device")
    with pytest.raises(InvalidFile, match="cannot write the table: No space left"):
        write(tmp_path / "a", b"half", lambda: fail(full), overwrite=True, what="the table")
    assert (tmp_path / "a").read_bytes() == b"old"


@pytest.mark.parametrize("name", ["missing/a", "file/a"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InvalidFile, match="cannot write the file"):
        write(tmp_path / name, b"x", overwrite=False)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InvalidFile, match="folder"):
        write(tmp_path, b"x", overwrite=True)
