"""Names that come with data frames: θ goes by those of the columns, labels by any list or array of strings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

import allocopt as ao

pd = pytest.importorskip("pandas")

FRAME = pd.DataFrame({"price": [1.0, 0.0, 0.9], "quality": [0.0, 1.0, 0.2]}, index=list("abc"))


@given(st.permutations(["price", "quality", "size", "age"]))
def test_a_named_parameter_goes_by_the_names_of_the_columns(order):
    frame = pd.DataFrame(np.eye(4), columns=["price", "quality", "size", "age"])
    theta = pd.Series({"price": 4.0, "quality": 3.0, "size": 2.0, "age": 1.0})
    assert ao.LinearBandit(frame, theta[order]).theta.tolist() == [4, 3, 2, 1]
    assert ao.LinearBandit(frame[order], theta).theta.tolist() == theta[order].tolist()


def test_the_constant_does_not_depend_on_the_order_of_a_named_parameter():
    theta = pd.Series([0.0, 1.0], index=["quality", "price"])
    assert ao.regret_constant(FRAME, theta).value == ao.regret_constant(FRAME, [1, 0]).value


def test_without_names_on_both_sides_the_position_counts():
    named = pd.Series([0.0, 1.0], index=["quality", "price"])
    assert ao.LinearBandit(FRAME, pd.Series([0.0, 1.0])).theta.tolist() == [0, 1]
    assert ao.LinearBandit(FRAME.to_numpy(), named).theta.tolist() == [0, 1]
    assert ao.LinearBandit(pd.DataFrame(FRAME.to_numpy()), named).theta.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("word", "frame", "names"),
    [
        ("'quality' is not among", FRAME, ["price", "size"]),
        ("'size' is none", FRAME, ["price", "quality", "size"]),
        ("'quality' is not among", FRAME, ["price"]),
        ("twice", FRAME, ["price", "quality", "price"]),
        ("twice", FRAME[["price", "quality", "price"]], ["quality", "price", "price"]),
        ("'price' is not among", FRAME, [5, 7]),
    ],
)
def test_other_names_are_refused(word, frame, names):
    theta = pd.Series(np.arange(1.0, len(names) + 1), index=names)
    refused(ao.InvalidInstance, ["theta:", word, "to_numpy()"], lambda: ao.LinearBandit(frame, theta))


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Index, pd.Series], ids=lambda make: make.__name__)
def test_labels_may_be_any_list_or_array_of_strings(make):
    assert ao.LinearBandit(FRAME.to_numpy(), [1, 0], labels=make(["x", "y", "z"])).labels == ("x", "y", "z")
    contexts = ao.ContextualBandit([[[1, 0], [0, 1]], [[1, 1]]], [1, 0], labels=make(["x", "y", "z"]))
    assert contexts.labels == ("x", "y", "z")


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (["got a str"], "xyz"),
        (["got a int"], 3),
        (["ndarray", "entry 0", "int"], np.arange(3)),
        (["Index", "entry 1", "int"], pd.Index(["x", 2, "z"])),
        (["got a ndarray"], np.array("xyz")),
        (["ndarray", "entry 0", "list"], np.array([["x"], ["y"], ["z"]])),
        (["got 2"], pd.Index(["x", "y"])),
    ],
    ids=repr,
)
def test_other_labels_are_refused(words, labels):
    refused(ao.InvalidInstance, ["labels:", "3 strings", *words], lambda: ao.LinearBandit(FRAME, [1, 0], labels=labels))
