"""Machine code of the kernel: whether it is there, and making it, which somebody must have asked for.

`ready` is for calls that nobody should wait for: it takes what is loaded or on disk, and never compiles. `loaded_or_made` is for those
that are worth compiling for; it says so first.
"""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from allocopt.base.errors import CompilingWarning, InvalidOption, MethodUnavailable, SlowWarning, warn_caller
from allocopt.base.spelling import spelled
from allocopt.solvers import newton
from allocopt.solving.roads.helper_process import start_helper

__all__ = ["ROADS", "compiled_kernel", "loaded_or_made", "pinned_road", "precompile", "ready", "say_if_slow"]
__all__ += ["why_no_machine_code", "why_not_compiled"]

ROADS = ("auto", "numpy", "compiled")
"""What ``road`` and the environment variable ALLOCOPT_ROAD may be."""

_COMPILING = (
    "allocopt compiles its kernel, this once; it takes some seconds (`allocopt precompile` or `ao.precompile()` does it "
    "beforehand)"
)
_loaded: dict[str, ModuleType] = {}  # the kernel, for each of its forms whose machine code is loaded
_stale: set[str] = set()  # forms whose machine code on disk has turned out to be another version's
_FILES = {"arms": "iteration.minimise_", "targets": "iteration.minimise_targets_"}  # how the file of a form begins
_DIGEST = "[0-9a-f]" * 10  # which is followed by this, see `base.compiling.kept_on_disk`


def pinned_road(road: str | None = None) -> str:
    """The road that was asked for, by the argument or else by the environment variable ALLOCOPT_ROAD; "auto" by default."""
    if road is None:
        name, asked = "ALLOCOPT_ROAD", os.environ.get("ALLOCOPT_ROAD", "") or "auto"
    else:
        name, asked = "road", road
    if asked not in ROADS:
        raise InvalidOption(f"{name}: expected one of {', '.join(ROADS)}, got {asked!r}")
    return asked


def why_no_machine_code() -> str | None:
    """Why there can be no machine code here; None where there can."""
    if _switched_off():
        return "numba is switched off (NUMBA_DISABLE_JIT)"
    return None if _installed() else "numba is not installed"


@cache
def _installed() -> bool:
    try:
        return find_spec("numba") is not None
    except ValueError:  # it is a module that was put in the way of the real one
        return False


def _switched_off() -> bool:
    known: Any = getattr(sys.modules.get("numba.core.config"), "DISABLE_JIT", None)
    if known is not None:  # another thread may be importing that module at this moment
        return bool(known)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def say_if_slow(what: str) -> None:
    """Warn, before something starts, where it has to do without machine code though nobody asked for that."""
    why = None if pinned_road() == "numpy" else why_no_machine_code()
    if why is not None:
        warn_caller(f"{what} takes milliseconds where compiled code takes microseconds: {why}", SlowWarning)


def ready(form: str = "arms") -> ModuleType | None:
    """`allocopt.solving.kernel` if the machine code of a form is loaded, or on disk and so loaded at once; else None."""
    if form in _loaded:
        return _loaded[form]
    if form in _stale or why_no_machine_code() is not None or not _seems_on_disk(form):
        return None
    from allocopt.solving import kernel

    if not kernel.load(form):
        _stale.add(form)
        return None
    _loaded[form] = kernel
    return kernel


def why_not_compiled(road: str | None = None) -> str:
    """Why `compiled_kernel` gives None."""
    pinned = (pinned_road() if road is None else road) == "numpy"
    return "ALLOCOPT_ROAD is numpy" if pinned else why_no_machine_code() or "numba does not work here"


def compiled_kernel(road: str | None = None) -> ModuleType | None:
    """`loaded_or_made`, unless the road is numpy: ``road``, or else what the environment says."""
    if (pinned_road() if road is None else road) == "numpy":
        return None
    return _loaded.get("arms") or loaded_or_made()  # in a loop of microseconds looking once more would be seen


def loaded_or_made(*forms: str) -> ModuleType | None:
    """`allocopt.solving.kernel` with the machine code of some forms, compiled if need be; None where there can be none."""
    if why_no_machine_code() is not None:
        return None
    missing = [form for form in forms or ("arms",) if form not in _loaded]
    if missing:
        # now: it starts while this process loads numba
        helper = None if all(map(_seems_on_disk, missing)) else start_helper(*missing)
        try:
            kernel = _kernel()
            if kernel is None:
                return None
            missing = [form for form in missing if not kernel.load(form)]
            if missing:
                warn_caller(_COMPILING, CompilingWarning)
                helper = helper or start_helper(*missing)
                kernel.make(helper, *missing)
        finally:
            if helper is not None:
                helper.stop()
        _loaded.update(dict.fromkeys(forms or ("arms",), kernel))
    return _loaded[forms[0] if forms else "arms"]


def _kernel() -> ModuleType | None:
    """`allocopt.solving.kernel`; None where numba is there but does not work."""
    try:
        from allocopt.solving import kernel
    except ImportError:
        return None
    return kernel


@spelled
def precompile() -> None:
    """Make the machine code of the compiled road now; without it `solve` takes the numpy road. Nothing is done where it is on disk.

    Examples
    --------
    >>> import allocopt as ao
    >>> ao.precompile()
    >>> ao.regret_constant([[1, 0], [0, 1], [0.99, 0.02]], [1, 0]).stats["road"]
    'compiled'
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompilingWarning)  # it was asked for
        if loaded_or_made("arms", "targets") is None:
            raise MethodUnavailable(f"there is no compiled road: {why_no_machine_code() or 'numba does not work here'}")


def _seems_on_disk(form: str) -> bool:
    """Whether the places where numba keeps machine code have some of this form: a look at folders, without numba."""
    own = f"{_FILES[form]}{_DIGEST}*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return any(Path(given).glob(f"*/{own}"))
    beside = (Path(folder) / "__pycache__" for folder in newton.__path__)
    return any(any(folder.glob(own)) for folder in beside) or any(_users_cache().glob(f"*/{own}"))


def _users_cache() -> Path:
    """Where numba keeps the machine code of files whose folders are not writable."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "numba" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "numba"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
