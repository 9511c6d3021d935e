"""Linear constraints that bind, hardly bind, ask for the impossible, or leave nothing finite to be optimal."""

import itertools

import numpy as np
import pytest

import allocopt as ao
from allocopt.model.programs.elastic import elastic_program

LAW = {
    "features": [[1.0, 1.0], [-2.0, 0.0], [-2.0, 1.0]],
    "costs": [0.21637437978634239, 0.7933537499160935, 1.5271663929125165],
    "targets": [[1.0, 1.0]],
    "radii": [0.4560942504274599],
    "constraints": ([[-0.5, 0.0, 1.0]], [0.018529551337804973]),
}
"""Only the first arm is worth playing, so M is singular at the optimum."""
HARDLY = {
    "features": [[2.0, -2.0, 2.0, -2.0], [0.0, 1.0, 2.0, -1.0], [-1.0, 1.0, 1.0, 2.0], [2.0, 2.0, 2.0, 0.0]],
    "costs": [0.9954439674697932, 1.9937094641233932, 0.6905698384818587, 0.0],
    "targets": [[-1.0, 1.0, 1.0, 2.0]],
    "radii": [0.9542273983033716],
    "constraints": ([[0.5, 0.0, 0.0, 0.1], [0.1, 0.1, 1.0, 0.5]], [3.084512493607137, 8.72111873188689]),
}
"""So is this, with limits that do not bind and an arm that costs nothing."""


def columns(parts, order):
    """The same program with its coordinates in another order."""
    shuffled = {name: np.array(parts[name])[:, list(order)] for name in ("features", "targets")}
    return ao.AllocationProgram(**{**parts, **shuffled})


@pytest.mark.parametrize(
    ("parts", "order"),
    [(p, order) for p in (LAW, HARDLY) for order in itertools.permutations(range(len(p["features"][0])))][::3],
)
def test_arms_that_are_hardly_played_do_not_cost_the_certificate(parts, order):
    """Doubles would enlarge α by 1e-8 to be sure that it is feasible; balls need next to nothing."""
    found = ao.solve(columns(parts, order))
    first = int(np.argmax(np.array(parts["targets"]) @ np.array(parts["targets"][0])))
    played = next(i for i, row in enumerate(parts["features"]) if row == parts["targets"][first])
    value = parts["costs"][played] / parts["radii"][0]  # one arm, which is its own target: α = 1/ρ
    assert found.status is ao.Status.CERTIFIED
    assert found.lower <= value * (1 + 1e-15) and value <= found.upper * (1 + 1e-15)
    proof = found.verify(exact=True)
    assert not proof.problems and found.lower <= proof.lower <= proof.upper <= found.upper
    assert found.program.constraints.met_by(found.allocation)


def test_a_row_that_nothing_can_meet_is_proven_infeasible_beside_rows_that_any_arm_meets():
    """The first row asks for less than nothing of the last arm; the second is met by playing the third without end."""
    program = ao.AllocationProgram(
        [[2.0, 0.0, -2.0, 1.0], [0.0, 1.0, 0.0, -2.0], [2.0, 2.0, -1.0, 2.0], [0.0, -2.0, 2.0, 2.0]], [1.0, 1.5, 1.5, 0.25],
        [[0.0, 1.0, 0.0, -2.0], [2.0, 2.0, -1.0, 2.0], [0.0, -2.0, 2.0, 2.0]], [0.25, 0.5, 1.0],
        constraints=([[0, 0, 0, 0.5], [0, 0, -0.5, 1], [1, 0, 0, 0.5]], [-0.0625, 0.02, 71.0]),
    )  # fmt: skip
    with pytest.raises(ao.Infeasible, match="which is proven"):
        ao.solve(program)


def test_the_elastic_program_keeps_the_rows_that_can_bind():
    """Row 1 is met by arm 2 alone; without it row 2 is met by arm 1 alone; row 0 is not met by any."""
    rows = [[1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 0.0]]
    program = ao.AllocationProgram(np.eye(3), [1, 1, 1], np.eye(3), [1, 1, 1], constraints=(rows, [5.0, -1.0, -1.0]))
    kept = elastic_program(program).constraints
    assert kept.n_rows == 2 and kept.limits.tolist() == [5.0, -1.0]  # arm 1 is limited by row 0, so row 2 stays
    bounded = ao.AllocationProgram(
        np.eye(3), [1, 1, 1], np.eye(3), [1, 1, 1], upper=[9.0] * 3, constraints=(rows, [5, -1, -1])
    )
    assert elastic_program(bounded).constraints.n_rows == 3
    easy = ao.AllocationProgram(
        np.eye(2), [1, 1], np.eye(2), [1, 1], constraints=([[-1.0, 0.0], [1.0, -1.0]], [-2.0, -2.0])
    )
    assert elastic_program(easy).constraints.n_rows == 0
    assert ao.solve(easy).status is ao.Status.CERTIFIED


def test_dropping_rows_never_makes_a_feasible_program_infeasible():
    rng = np.random.default_rng(4)
    for _ in range(40):
        k, d = int(rng.integers(2, 6)), int(rng.integers(1, 4))
        features = rng.integers(-3, 4, (k, d)).astype(float)
        features[0] = rng.integers(1, 4, d)
        rows = np.where(rng.random((2, k)) < 0.6, rng.choice([1.0, -0.5], (2, k)), 0.0)
        alpha = rng.uniform(0.5, 2.0, k)
        information = features.T @ (alpha[:, None] * features)
        norm = features[0] @ np.linalg.pinv(information) @ features[0]
        limits = rows @ alpha + 1e-3  # α meets everything
        program = ao.AllocationProgram(
            features, rng.uniform(0.1, 1, k), features[:1], [norm * 1.001], constraints=(rows, limits)
        )
        found = ao.solve(program)
        assert found.lower <= program.costs @ alpha


def test_arms_without_cost_and_without_limit_are_named():
    program = ao.AllocationProgram(
        [[1.0, -2.0, -1.0], [0.0, 1.0, -2.0], [2.0, 1.0, 1.0]], [0.0, 1.0, 0.0], [[0.0, 1.0, -2.0], [2.0, 1.0, 1.0]], [0.75, 0.5],
        constraints=([[-0.5, 0.0, -0.5]], [3.0]),
    )  # fmt: skip
    found = ao.solve(program)
    assert found.status is ao.Status.INACCURATE and "arms [0, 2] cost nothing" in found.stats["reason"]
    without = ao.AllocationProgram(program.features, program.costs, program.targets, program.radii)
    assert ao.solve(without).status is ao.Status.CERTIFIED  # as the reason advises
