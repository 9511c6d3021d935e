"""A saved simulation comes back to the bit; what is no simulation is named."""

import json

import numpy as np
import pytest
from simulating import BANDIT, ExploreThenCommit, same

import allocopt as ao
from allocopt.base.errors import InvalidFile
from allocopt.play.simulation.result import load_simulation
from allocopt.play.simulation.simulate import simulate
from allocopt.policies import UCB, EndOfOptimism, LinUCB


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_a_saved_result_comes_back_to_the_bit(tmp_path, ending):
    labels = ("<script>", "[red]", 'ü"')
    bandit = ao.LinearBandit(BANDIT.arms, BANDIT.theta, 0.3, labels=labels)
    for policy in (EndOfOptimism(constant=0.1), LinUCB(radius="theoretical"), ExploreThenCommit()):
        r = simulate(policy, bandit, 300, 5)
        path = tmp_path / f"{type(policy).__name__}{ending}"
        r.save(path)
        back = load_simulation(path)
        same(r, back)
        assert back.parameters == r.parameters
        assert back.bandit.labels == labels
        assert back.bandit.noise_variance == 0.3
        np.testing.assert_array_equal(back.bandit.gaps, bandit.gaps)
        content = path.read_bytes()
        with pytest.raises(InvalidFile, match="exists already"):
            r.save(path)
        assert path.read_bytes() == content
        r.save(path, overwrite=True)


def test_files_that_are_no_simulations_are_named(tmp_path):
    r = simulate(UCB(), BANDIT, 100, 4)
    with pytest.raises(InvalidFile, match=r"expected a name that ends in \.parquet or \.json"):
        r.save(tmp_path / "x.csv")
    with pytest.raises(InvalidFile, match="cannot write"):
        r.save(tmp_path / "nowhere" / "x.json")
    for name, content in (
        ("a.json", b"{}"),
        ("b.json", b"[1, 2]"),
        ("c.json", b"not json"),
        ("d.parquet", b"not parquet"),
        ("e.json", json.dumps({"format": "allocopt-simulation", "version": 1, "bandit": {"arms": 3}}).encode()),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidFile, match=name):
            load_simulation(tmp_path / name)
    with pytest.raises(InvalidFile, match="no such file"):
        load_simulation(tmp_path / "z.json")
    with pytest.raises(InvalidFile, match=r"expected a .parquet or .json file"):
        load_simulation(tmp_path / "z.csv")
