"""Hypothesis settings: hundreds of examples in ``make test``, thousands in ``make torture`` (ALLOCOPT_EXAMPLES)."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

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
    _make_tests_importable(config)
    if hasattr(config, "workerinput"):
        return
    from allocopt.solving.roads.machine_code import precompile, why_no_machine_code

    if why_no_machine_code() is None:
        precompile()


def _make_tests_importable(config):
    """Let processes that tests start find test modules by name, also where an installed allocopt is tested (``python -P -m pytest``).

    The folder of the project is then not on the path, since its own allocopt would be found before the installed one.
    """
    root = Path(__file__).parents[1]
    if any(Path(place or ".").resolve() == root for place in sys.path):
        return
    shim = Path(tempfile.mkdtemp(prefix="allocopt-tests-"))
    (shim / "tests").mkdir()
    (shim / "tests" / "__init__.py").write_text(f"__path__ = [{str(root / 'tests')!r}]\n", encoding="utf-8")
    sys.path.insert(0, str(shim))
    config.add_cleanup(lambda: shutil.rmtree(shim, ignore_errors=True))
