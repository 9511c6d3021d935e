"""Tables are read piece by piece: the same numbers wherever the pieces end, little memory, and errors with their place."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import allocopt as ao
from allocopt.insight.instances import tables
from allocopt.insight.instances.files import read_instance, read_vector

ROOT = Path(__file__).parents[3]


def as_csv(rows, header=""):
    return header + "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())


@pytest.mark.parametrize("piece", [1, 7, 64, 1000, 1 << 23])
@pytest.mark.parametrize("packed", [False, True])
def test_the_same_numbers_wherever_a_piece_ends(tmp_path, monkeypatch, piece, packed):
    monkeypatch.setattr(tables, "_PIECE", piece)
    rows = np.random.default_rng(0).normal(size=(50, 3)) * 10.0 ** np.arange(50)[:, None]  # beyond 2^53, too
    text = as_csv(rows, "a,b,c\n\n").encode()
    path = tmp_path / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(text) if packed else text)
    assert np.array_equal(read_instance(path).arms, rows)


@pytest.mark.parametrize("piece", [1, 20, 1 << 23])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("1,2", "expected 3 numbers, got 2"),
        ("1,2,x", "expected finite numbers, got '1,2,x'"),
        ("1,2,nan", "expected finite numbers"),
        ("1,2,1_0", "expected finite numbers, got '1,2,1_0'"),
        ("1,2,9007199254740993", "numbers that are doubles, got 9007199254740993"),
        ("1,2," + "3" * 140_000, "a field has more than 131072 characters"),
    ],
)
def test_a_bad_row_is_named_wherever_a_piece_ends(tmp_path, monkeypatch, piece, bad, words):
    monkeypatch.setattr(tables, "_PIECE", piece)
    good = as_csv(np.random.default_rng(0).normal(size=(30, 3)))
    (tmp_path / "a.csv").write_text(f"x,y,z\n{good}{bad}\n{good}")
    with pytest.raises(ao.InvalidFile, match=rf"a\.csv: row 32: .*{words}"):
        read_instance(tmp_path / "a.csv")


def test_progress_rises_to_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_PIECE", 500)
    (tmp_path / "a.csv").write_text(as_csv(np.random.default_rng(0).normal(size=(100, 3))))
    told = []
    read_instance(tmp_path / "a.csv", told.append)
    assert len(told) > 5 and told == sorted(told) and told[-1] == 1.0


def test_a_packed_file_that_is_cut_or_no_such_file_is_said(tmp_path):
    path = tmp_path / "a.csv.gz"
    whole = gzip.compress(as_csv(np.random.default_rng(0).normal(size=(3000, 3))).encode())
    for content in (whole[:-20], whole[:100] + b"x" * 200 + whole[300:], b"1,2\n3,4\n", b""):
        path.write_bytes(content)
        with pytest.raises(
            ao.InvalidFile, match=r"a\.csv\.gz: expected (a file packed by gzip|at least one row|CSV text|numbers)"
        ):
            read_instance(path)


def test_nulls_of_a_parquet_file_have_a_row_and_a_column(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    monkeypatch.setattr(tables, "_BATCH_ENTRIES", 20)
    x = np.random.default_rng(0).normal(size=100)
    y = [None if i in (73, 74) else float(i) for i in range(100)]
    parquet.write_table(pa.table({"x": x, "y": y}), tmp_path / "a.parquet")
    with pytest.raises(ao.InvalidFile, match=r"column 'y', row 73: expected numbers without gaps, got null"):
        read_instance(tmp_path / "a.parquet")
    parquet.write_table(pa.table({"x": x, "y": np.arange(100)}), tmp_path / "b.parquet")
    assert np.array_equal(read_instance(tmp_path / "b.parquet").arms, np.column_stack([x, np.arange(100.0)]))
    parquet.write_table(pa.table({"x": x.astype(np.float32)}), tmp_path / "c.parquet")
    assert read_instance(tmp_path / "c.parquet").arms[5, 0] == x.astype(np.float32)[5]


def test_a_number_with_an_underscore_is_none_anywhere():
    with pytest.raises(ao.InvalidInstance, match="theta: expected numbers separated by commas"):
        read_vector("theta", "1_0,2")


MEMORY = """
import resource, sys
from allocopt.insight.instances.files import read_instance
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
arms = read_instance(sys.argv[1]).arms
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / arms.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="units of ru_maxrss")
def test_reading_takes_little_more_memory_than_the_array(tmp_path):
    rows = as_csv(np.random.default_rng(0).normal(size=(5000, 8)))
    with (tmp_path / "a.csv").open("w") as out:
        for _ in range(240):  # 180 MB of text, 77 MB of numbers
            out.write(rows)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path / "a.csv")], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert float(done.stdout) < 1.8  # lists of Python's floats took ten times the array
