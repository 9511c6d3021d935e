"""Instance files: what was written comes back; what is wrong gets one line that names the file and the place."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest

import allocopt as ao
from allocopt.insight.instances.files import read_instance, read_vector

ARMS = np.array([[1.0, 0.0], [0.1, 1.0 / 3.0], [-2.5e-17, 3e200]])
THETA = np.array([0.1, -1e-5])
GAPS = np.array([0.0, 0.3, 2.0])
EXTENSIONS = (".json", ".npz", ".csv", ".parquet", ".npy")
JUNK = bytes(range(256)) * 4


def write(path, content):
    """Write text or bytes."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content, encoding="utf-8")
    return path


def write_parquet(path, columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    names, arrays = zip(*columns, strict=True) if columns else ((), ())
    parquet.write_table(pa.Table.from_arrays([pa.array(a) for a in arrays], list(names)), path)
    return path


def csv_rows(rows):
    return "".join(",".join(repr(float(x)) for x in row) + "\n" for row in rows)


def refused(path, *words):
    """One line that starts with the file's name and has every word."""
    with pytest.raises(ao.InvalidFile) as caught:
        read_instance(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for word in words:
        assert word in message
    return message


WRITERS = {
    "json with theta": (
        "i.json",
        lambda p: write(p, json.dumps({"arms": ARMS.tolist(), "theta": THETA.tolist(), "noise_variance": 2.5})),
        {"theta": THETA, "noise_variance": 2.5},
    ),
    "json with gaps": (
        "i.json",
        lambda p: write(p, json.dumps({"arms": ARMS.tolist(), "gaps": GAPS.tolist(), "name": "x", "description": ""})),
        {"gaps": GAPS},
    ),
    "json of arms": ("i.json", lambda p: write(p, json.dumps({"arms": ARMS.tolist()})), {}),
    "npz with theta": ("i.npz", lambda p: np.savez(p, arms=ARMS, theta=THETA), {"theta": THETA}),
    "npz with noise": (
        "i.npz",
        lambda p: np.savez_compressed(p, arms=ARMS, theta=THETA, noise_variance=0.5),
        {"theta": THETA, "noise_variance": 0.5},
    ),
    "npz with gaps": ("i.npz", lambda p: np.savez(p, arms=ARMS, gaps=GAPS), {"gaps": GAPS}),
    "csv without header": ("i.csv", lambda p: write(p, csv_rows(ARMS)), {}),
    "csv with header": ("i.csv", lambda p: write(p, "x,y\n" + csv_rows(ARMS)), {}),
    "csv from a spreadsheet": (
        "i.csv",
        lambda p: write(p, "\ufeff" + '"x","y"\n\n' + csv_rows(ARMS).replace("\n", "\r\n") + "\r\n"),
        {},
    ),
    "csv with capitals": ("I.CSV", lambda p: write(p, csv_rows(ARMS)), {}),
    "parquet": ("i.parquet", lambda p: write_parquet(p, [("x", ARMS[:, 0]), ("y", ARMS[:, 1])]), {}),
    "npy": ("i.npy", lambda p: np.save(p, ARMS), {}),
    "npy in Fortran's order": ("i.npy", lambda p: np.save(p, np.asfortranarray(ARMS)), {}),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_gives_back_the_same_arrays(tmp_path, kind):
    name, writer, rest = WRITERS[kind]
    path = tmp_path / name
    writer(path)
    for given in (path, str(path)):
        instance = read_instance(given)
        assert instance.arms.dtype == np.float64
        np.testing.assert_array_equal(instance.arms, ARMS)
        for entry in ("theta", "gaps"):
            if entry in rest:
                np.testing.assert_array_equal(getattr(instance, entry), rest[entry])
            else:
                assert getattr(instance, entry) is None
        assert instance.noise_variance == rest.get("noise_variance")


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, np.float16])
def test_other_number_types_are_read_as_doubles(tmp_path, dtype):
    arms = np.array([[1, 2], [3, 4]], dtype=dtype)
    np.save(tmp_path / "a.npy", arms)
    np.savez(tmp_path / "a.npz", arms=arms)
    write_parquet(tmp_path / "a.parquet", [("x", arms[:, 0].copy()), ("y", arms[:, 1].copy())])
    for extension in ("npy", "npz", "parquet"):
        read = read_instance(tmp_path / f"a.{extension}").arms
        assert read.dtype == np.float64
        np.testing.assert_array_equal(read, arms)


def test_a_large_npy_file_stays_mapped_all_the_way_into_the_program(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.random.default_rng(0).normal(size=(700_000, 3)))
    arms = read_instance(path).arms
    on_disk = np.load(path, mmap_mode="r")
    base = arms
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert np.shares_memory(arms, ao.LinearBandit(arms, [1, 0, 0]).arms)
    np.testing.assert_array_equal(arms, on_disk)


def test_a_small_npy_file_may_be_written_to_once_it_is_read(tmp_path):
    path = tmp_path / "small.npy"
    before = np.random.default_rng(0).normal(size=(1000, 3))
    np.save(path, before)
    arms = read_instance(path).arms
    np.load(path, mmap_mode="r+")[:] = 0.0
    np.testing.assert_array_equal(arms, before)


# extension → content → words of the message
MALFORMED = {
    ".json": {
        "": ["not valid JSON", "line 1"],
        "{": ["not valid JSON", "line 1"],
        '{"arms": [[1, 0],\n [0, 1]': ["not valid JSON", "line 2"],
        "[[1, 0], [0, 1]]": ["JSON object", "arms"],
        "3": ["JSON object"],
        "null": ["JSON object"],
        '"arms"': ["JSON object"],
        "{}": ["arms"],
        '{"theta": [1, 0]}': ["arms"],
        '{"arms": [[1, 0]], "thetas": [1, 0]}': ["unknown", "thetas", "theta"],
        '{"arms": null}': ["arms", "None"],
        '{"arms": "x"}': ["arms", "'x'"],
        '{"arms": []}': ["arms"],
        '{"arms": [[]]}': ["arms"],
        '{"arms": [1, 2]}': ["arms", "dimension"],
        '{"arms": [[1, 2], [3]]}': ["arms", "row 1"],
        '{"arms": [[1, "x"], [3, 4]]}': ["arms"],
        '{"arms": [[1, null], [3, 4]]}': ["arms"],
        '{"arms": [[1, NaN], [3, 4]]}': ["arms", "row 0", "column 1", "nan"],
        '{"arms": [[1, 2], [-Infinity, 4]]}': ["arms", "row 1", "column 0", "inf"],
        '{"arms": [[1, 1e999], [3, 4]]}': ["arms", "row 0", "column 1", "inf"],
        '{"arms": [[1, 2], [3, 4]], "theta": [[1, 2]]}': ["theta"],
        '{"arms": [[1, 2], [3, 4]], "theta": "1,2"}': ["theta"],
        '{"arms": [[1, 2], [3, 4]], "theta": [1, NaN]}': ["theta", "entry 1"],
        '{"arms": [[1, 2], [3, 4]], "theta": [1]}': ["theta", "2"],
        '{"arms": [[1, 2], [3, 4]], "gaps": [1]}': ["gaps", "2"],
        '{"arms": [[1, 2], [3, 4]], "gaps": {"0": 1}}': ["gaps"],
        '{"arms": [[1, 2], [3, 4]], "theta": [1, 0], "noise_variance": "x"}': ["noise_variance"],
        '{"arms": [[1, 2], [3, 4]], "theta": [1, 0], "noise_variance": -1}': ["noise_variance"],
        '{"arms": [[1, 2], [3, 4]], "theta": [1, 0], "noise_variance": NaN}': ["noise_variance"],
        '{"arms": [[1, %s], [3, 4]]}' % ("9" * 400): ["arms"],
        '{"arms": [[1, %s], [3, 4]]}' % ("9" * 5000): [],
        "[" * 100_000: ["not valid JSON"],
        '{"arms": [[1, 0]]}'.encode("utf-16"): ["UTF-8"],
        JUNK: ["UTF-8"],
    },
    ".csv": {
        "": ["at least one row"],
        "\n\n\n": ["at least one row"],
        "x,y\n": ["at least one row"],
        "1,2\n3\n5,6\n": ["row 2", "2", "1"],
        "x,y\n1,2\n3,4,5\n": ["row 3", "2", "3"],
        "1,2\n3,four\n5,6\n": ["row 2", "3,four"],
        "1,2\n\n3,\n": ["row 3"],
        "x,y\na,b\n1,2\n": ["row 2", "a,b"],
        "1,2\n3,nan\n": ["nan", "row 2"],
        "1,2\ninf,4\n": ["inf", "row 2"],
        "1,2O\n3,4\n5,6\n": ["row 1", "1,2O"],  # a typo, not a header: dropping the arm would change the answer
        "1,2,\n3,4,\n": ["row 1"],
        "1;2\n3;4\n": ["row"],
        "1,2\n1_0,4\n": ["row 2", "1_0,4"],
        "1,2\n3," + "4" * 200_000 + "\n": ["row 2", "a field has more than 131072 characters"],
        "1,2\n3,\u00e9\n".encode("latin-1"): ["not text"],
        "1,2\n3,4\n".encode("utf-16"): ["not text"],
        JUNK: ["not text"],
        b"\x00\x01\x02,\x03\n": [],
    },
    ".npy": {b"": ["NumPy"], JUNK: ["NumPy"], b"\x93NUMPY": ["NumPy"], b"\x93NUMPY\x01\x00v\x00{'descr'": ["NumPy"]},
    ".npz": {b"": ["NumPy"], JUNK: ["NumPy"], b"PK\x03\x04" + JUNK: ["NumPy"], b"PK\x05\x06" + b"\x00" * 18: ["arms"]},
    ".parquet": {b"": ["Parquet"], JUNK: ["Parquet"], b"PAR1" + JUNK + b"PAR1": []},
}


@pytest.mark.parametrize(
    ("extension", "number"), [(e, n) for e, contents in MALFORMED.items() for n in range(len(contents))]
)
def test_a_malformed_file_gets_one_line_with_its_name_and_the_place(tmp_path, extension, number):
    content, words = list(MALFORMED[extension].items())[number]
    refused(write(tmp_path / f"bad{extension}", content), *words)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_missing_files_directories_and_impossible_names_are_refused(tmp_path, extension):
    refused(tmp_path / f"none{extension}", "no such file")
    refused(tmp_path / "no folder" / f"none{extension}", "no such file")
    (tmp_path / f"folder{extension}").mkdir()
    refused(tmp_path / f"folder{extension}", "directory")
    refused(tmp_path / ("x" * 300 + extension))


@pytest.mark.parametrize("name", ["i.txt", "i", "i.xlsx", "i.json.gz", "i.npy.gz", ".json", "i.pkl"])
def test_other_extensions_are_refused_with_the_known_ones(tmp_path, name):
    refused(write(tmp_path / name, "1,2\n3,4\n"), *EXTENSIONS)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_file_that_may_not_be_read_is_refused(tmp_path, extension, monkeypatch):
    """As root every file may be read, so opening is made to fail."""
    path = write(tmp_path / f"secret{extension}", b"x")

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", forbidden)
    monkeypatch.setattr("numpy.load", forbidden)
    monkeypatch.setattr("builtins.open", forbidden)
    if extension == ".parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        monkeypatch.setattr(parquet, "ParquetFile", forbidden)
    with pytest.raises(ao.InvalidFile, match="Permission denied"):
        read_instance(path)
    if extension in (".json", ".csv", ".npy"):
        with pytest.raises(ao.InvalidFile, match="Permission denied"):
            read_vector("--theta", str(path))


class Bomb:
    """Unpickling it makes a directory, which would leave a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (os.mkdir, (str(self.trace),))


def bombs(folder, trace):
    """Every file that a careless reader would unpickle."""
    objects = np.array([[Bomb(trace), Bomb(trace)]], dtype=object)
    np.save(folder / "array.npy", objects, allow_pickle=True)
    np.savez(folder / "array.npz", arms=objects)
    np.savez(folder / "theta.npz", arms=np.eye(2), theta=objects[0])
    np.savez(folder / "noise.npz", arms=np.eye(2), theta=np.ones(2), noise_variance=np.array(Bomb(trace), dtype=object))
    for extension in EXTENSIONS:
        write(folder / f"plain{extension}", pickle.dumps(Bomb(trace)))
    with zipfile.ZipFile(folder / "member.npz", "w") as archive:
        archive.writestr("arms.npy", pickle.dumps(Bomb(trace)))
    with zipfile.ZipFile(folder / "raw.npz", "w") as archive:
        archive.writestr("arms", pickle.dumps(Bomb(trace)))
    return sorted(folder.iterdir())


def test_nothing_is_ever_unpickled(tmp_path):
    (tmp_path / "files").mkdir()
    trace = tmp_path / "exploded"
    paths = bombs(tmp_path / "files", trace)
    assert len(paths) == 11
    for path in paths:
        refused(path)
        if path.suffix in (".npy", ".json", ".csv"):
            with pytest.raises(ao.InvalidFile):
                read_vector("--theta", str(path))
        with pytest.raises(ao.InvalidFile):
            ao.load_solution(path)
    assert not trace.exists()
    pickle.loads((tmp_path / "files" / "plain.npy").read_bytes())
    assert trace.exists()  # the bombs were real


def test_python_objects_in_numpy_files_are_called_that(tmp_path):
    np.save(tmp_path / "o.npy", np.array([["x", None]], dtype=object), allow_pickle=True)
    refused(tmp_path / "o.npy", "Python objects")
    np.savez(tmp_path / "o.npz", arms=np.array([["x", None]], dtype=object))
    refused(tmp_path / "o.npz", "Python objects")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.eye(2)}, ["arms", "x"]),
        ({}, ["arms", "none"]),
        ({"arms": np.array([["a", "b"]])}, ["arms"]),
        ({"arms": np.ones(3)}, ["arms", "(3,)"]),
        ({"arms": np.array(3.0)}, ["arms"]),
        ({"arms": np.zeros((0, 2))}, ["arms"]),
        ({"arms": np.array([[1j, 0]])}, ["arms", "complex"]),
        ({"arms": np.array([[1, np.nan]])}, ["arms", "row 0", "column 1"]),
        ({"arms": np.eye(2), "theta": np.eye(2)}, ["theta"]),
        ({"arms": np.eye(2), "theta": np.array(["a", "b"])}, ["theta"]),
        ({"arms": np.eye(2), "theta": np.ones(3)}, ["theta", "2", "3"]),
        ({"arms": np.eye(2), "gaps": np.ones(3)}, ["gaps", "2", "3"]),
        ({"arms": np.eye(2), "noise_variance": np.ones(3)}, ["noise_variance", "2 arms"]),
        ({"arms": np.eye(2), "noise_variance": np.array("x")}, ["noise_variance"]),
        ({"arms": np.eye(2), "thetas": np.ones(2)}, ["thetas"]),
    ],
    ids=lambda x: "-".join(x)[:40],
)
def test_npz_entries_are_checked_by_name(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    refused(tmp_path / "a.npz", *words)


def test_numpy_files_under_each_others_name_are_refused_or_read(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(2))
    np.savez(tmp_path / "b.npz", arms=np.eye(2))
    (tmp_path / "a.npy").rename(tmp_path / "a.npz")
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    refused(tmp_path / "a.npz")
    refused(tmp_path / "b.npy")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([("x", ["a", "b"])], ["'x'", "string"]),
        ([("x", [1.0, 2.0]), ("label", ["a", None])], ["'label'", "row 1", "null"]),
        ([("x", [1.0, None])], ["'x', row 1", "gaps", "null"]),
        ([("x", [1, None])], ["'x'", "row 1"]),
        ([("x", [None, None])], ["'x'"]),
        ([("x", [True, False])], ["'x'", "bool"]),
        ([("x", [[1.0], [2.0]])], ["'x'", "list"]),
        ([("x", [1.0, float("nan")])], ["row 1", "column 0", "nan"]),
        ([("x", np.zeros(0))], ["arm"]),
        ([], ["column"]),
    ],
    ids=str,
)
def test_parquet_columns_must_be_numbers_without_gaps(tmp_path, columns, words):
    refused(write_parquet(tmp_path / "a.parquet", columns), *words)


def test_columns_of_the_same_name_are_named(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", [("y", [0.0, 0.0]), ("x", [1.0, 2.0]), ("x", [3.0, 4.0])])
    refused(path, "columns 2 and 3 are both called 'x'")
    refused(write(tmp_path / "a.csv", "x,y,x\n1,2,3\n"), "columns 1 and 3 are both called 'x'")


def good_files(folder):
    np.save(folder / "i.npy", np.random.default_rng(0).normal(size=(20, 3)))
    np.savez(folder / "i.npz", arms=np.eye(3), theta=np.ones(3))
    np.savez_compressed(folder / "c.npz", arms=np.random.default_rng(0).normal(size=(20, 3)), theta=np.ones(3))
    write_parquet(folder / "i.parquet", [("x", np.arange(30.0)), ("y", np.arange(30.0) ** 2)])
    write(folder / "i.json", json.dumps({"arms": [[1, 0], [0, 1]], "theta": [1, 0]}))
    write(folder / "i.csv", "x,y\n1,0\n0,1\n")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("number", range(6))
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path, number):
    """Bytes changed or cut off at random: nothing but InvalidFile, whatever library is underneath."""
    path = good_files(tmp_path)[number]
    whole = path.read_bytes()
    rng = np.random.default_rng(number)
    for _ in range(300):
        damaged = bytearray(whole)
        reach = len(damaged) if path.suffix != ".npy" else 128  # of an .npy file, the header
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(0, reach)] = rng.integers(0, 256)
        if rng.random() < 0.25:
            damaged = damaged[: rng.integers(0, len(damaged))]
        path.write_bytes(damaged)
        try:
            arms = read_instance(path).arms
        except ao.InvalidFile as error:
            message = str(error)
            if "\n" in message or not message.startswith(str(path)):
                pytest.fail(f"not one line with the file's name: {message!r}")
        else:
            assert np.isfinite(arms).all()


@pytest.mark.parametrize(
    ("text", "values"),
    [("1,2,-3", [1, 2, -3]), (" 0.5 , 1e-3 ", [0.5, 1e-3]), ("7", [7]), ("-1,+2,.5", [-1, 2, 0.5])],
)
def test_a_vector_can_be_given_inline(text, values):
    np.testing.assert_array_equal(read_vector("--theta", text), values)


@pytest.mark.parametrize("text", ["", ",", "1,,2", "a,b", "1;2", "1 2", "nan,1", "1,inf", "1e400", "[1,2]", "é"])
def test_inline_junk_is_refused_with_the_option_it_was_given_to(text):
    with pytest.raises(ao.AllocoptError, match=r"^--theta: expected"):
        read_vector("--theta", text)


VECTORS = {
    "theta.txt": ("# θ of the paper\n0.1 -2\t3\n", None),
    "theta": ("0.1;\n-2;\n3\n", None),
    "theta.dat": ("theta\n0.1\n-2  # the second\n\n3\n", None),
    "row.csv": ("0.1,-2,3\n", None),
    "column.csv": ("0.1\n-2\n3\n", None),
    "header.csv": ("theta\n0.1\n-2\n3\n", None),
    "v.json": ("[0.1, -2, 3]", None),
    "v.npy": (None, np.array([0.1, -2, 3])),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_can_be_given_as_a_file(tmp_path, name):
    text, array = VECTORS[name]
    path = tmp_path / name
    if array is None:
        write(path, text)
    else:
        np.save(path, array)
    np.testing.assert_array_equal(read_vector("--theta", str(path)), [0.1, -2, 3])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *[(f"junk{e}", JUNK) for e in (".json", ".csv", ".npy")],
        *[(f"empty{e}", b"") for e in (".json", ".csv", ".npy")],
        ("object.json", '{"theta": [1, 2]}'),
        ("matrix.json", "[[1, 2]]"),
        ("nan.json", "[1, NaN]"),
        ("string.json", '"1,2"'),
        ("null.json", "[1, null]"),
        ("matrix.csv", "1,2\n3,4\n"),
        ("text.csv", "1\nx\n"),
        ("nan.csv", "1\nnan\n"),
    ],
)
def test_vector_files_of_something_else_are_refused_by_name(tmp_path, name, content):
    path = write(tmp_path / name, content)
    with pytest.raises(ao.InvalidFile) as caught:
        read_vector("--theta", str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("extension", [".json", ".csv", ".npy"])
def test_missing_vector_files_are_refused_by_name(tmp_path, extension):
    for path in (tmp_path / f"none{extension}", tmp_path / ("x" * 300 + extension)):
        with pytest.raises(ao.InvalidFile, match="--theta"):
            read_vector("--theta", str(path))
