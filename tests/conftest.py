"""Hypothesis settings: hundreds of examples in ``make test``, thousands in ``make torture`` (ALLOCOPT_EXAMPLES)."""

import os

from hypothesis import HealthCheck, settings

_ASKED = os.environ.get("ALLOCOPT_EXAMPLES")

settings.register_profile(
    "allocopt",
    max_examples=int(_ASKED or 150),
    deadline=None,
    derandomize=_ASKED is None,  # the ordinary run is reproducible; torture looks for something new each time
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("allocopt")


def pytest_configure(config):
    """Machine code before the first test, so that the road that `solve` takes does not depend on the order of the tests."""
    if hasattr(config, "workerinput"):
        return
    from allocopt.solving.roads.machine_code import precompile, why_no_machine_code

    if why_no_machine_code() is None:
        precompile()
