"""Tables whose rows have names: what data frames write is read back with its index as labels, and never as a coordinate."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import allocopt as ao
from allocopt.insight.instances import tables
from allocopt.insight.instances.files import read_instance

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.75, 0.5]])
NAMES = ("apple", "pear, ripe", 'a "quince"')


def written(frame: pd.DataFrame, folder: Path, ending: str) -> Path:
    path = folder / f"arms{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path)
    return path


def text_tells(index: tuple[object, ...], name: str | None, ending: str) -> bool:
    """A column of numbers with a name of its own is a coordinate, for all that text can say."""
    return ending == ".parquet" or name is None or index == NAMES


CASES = [
    (ending, index, name)
    for ending in (".csv", ".csv.gz", ".parquet")
    for index in (NAMES, (3, 7, 9), (2, 1, 0), ("1", "2", "x"))
    for name in (None, "fruit")
    if text_tells(index, name, ending)
]


@pytest.mark.parametrize(("ending", "index", "name"), CASES)
def test_the_index_of_a_frame_becomes_labels(
    ending: str, index: tuple[object, ...], name: str | None, tmp_path: Path
) -> None:
    frame = pd.DataFrame(ARMS, columns=["x", "y"], index=pd.Index(index, name=name))
    found = read_instance(written(frame, tmp_path, ending))
    assert np.array_equal(found.arms, ARMS)
    assert found.labels == tuple(map(str, index))


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_an_index_that_counts_is_no_label(ending: str, tmp_path: Path) -> None:
    found = read_instance(written(pd.DataFrame(ARMS, columns=["x", "y"]), tmp_path, ending))
    assert np.array_equal(found.arms, ARMS) and found.labels is None


def test_a_column_of_words_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "arms.csv"
    path.write_text("a,1,0\n\n b ,0,1\n3,0.75,0.5\n", encoding="utf-8")
    found = read_instance(path)
    assert np.array_equal(found.arms, ARMS) and found.labels == ("a", "b", "3")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,1,0\nb,x,1\n", "row 2"),
        ("name,x,y\na,1,0\nb,1\n", "row 3"),
        ("name,x,x\na,1,0\n", "both called 'x'"),
        ("a,1,0\nb,nan,1\n", "row 2"),
        ("1,0\na,1\n", "row 2"),
        ("a,b,1\n", "row 1"),
        (",x,y\n", "at least one row"),
        ("fruit,0,1\npear,1.0,2.0\n", "row 1: expected a header or an arm"),
    ],
)
def test_what_is_wrong_beside_names_is_told_with_its_row(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "arms.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ao.InvalidFile, match=says):
        read_instance(path)


def test_two_columns_of_words_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "arms.parquet"
    pd.DataFrame({"a": list("xyz"), "b": list("uvw"), "c": [1.0, 2.0, 3.0]}).to_parquet(path)
    with pytest.raises(ao.InvalidFile, match="column 'a': expected numbers"):
        read_instance(path)


def test_names_in_small_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_PIECE", 40)
    arms = np.random.default_rng(0).normal(size=(100, 3))
    frame = pd.DataFrame(arms, index=[f"arm {i}" for i in range(100)])
    path = tmp_path / "arms.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        frame.to_csv(file)
    found = read_instance(path)
    assert np.array_equal(found.arms, arms) and found.labels == tuple(frame.index)


@settings(deadline=None, max_examples=60)
@given(
    names=st.lists(
        st.text("ab \x0b\u2028,\"'é;", min_size=1).filter(lambda x: x.strip() and x == x.strip()), min_size=2
    )
)
def test_any_names_come_back(names: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("named") / "arms.csv"
    arms = np.arange(2.0 * len(names)).reshape(-1, 2)
    pd.DataFrame(arms, index=names, columns=["x", "y"]).to_csv(path)
    found = read_instance(path)
    assert np.array_equal(found.arms, arms) and found.labels == tuple(names)
