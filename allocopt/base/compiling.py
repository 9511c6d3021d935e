"""Compiling with numba, where it is installed, and keeping the machine code on disk.

Two things here go beyond ``numba.njit``. Loops over rounds of a policy do not count references to the arrays of the state, which makes
them several times faster. And cached machine code is made anew when anything that it was made from changes.
"""

from __future__ import annotations

import functools
import gc
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar, cast, overload

from allocopt.base.errors import CompilingWarning, SlowWarning, warn_caller

try:
    import numba
except ImportError:  # then everything is interpreted
    numba = None  # type: ignore[assignment]

__all__ = ["COMPILED", "compiled", "entry", "garbage_collection_off", "kept_on_disk", "loaded", "on_disk", "say_before"]

COMPILED = numba is not None
"""Whether numba is installed."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _add_reachable_code(function: Any, seen: dict[str, str]) -> None:
    """Add to ``seen`` the bytecode of a function and of all compiled ones that it calls, and the constants they take from outside."""
    code: CodeType = function.__code__
    key = f"{function.__module__}.{function.__name__}"
    if key in seen:
        return
    constants = [repr(x) for x in code.co_consts if isinstance(x, int | float | str | bool | None.__class__ | tuple)]
    seen[key] = code.co_code.hex() + ",".join((*constants, *code.co_names, *code.co_varnames))
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, int | float | tuple):  # a named tuple of numbers is a constant to the compiler too
            seen[f"{key}:{name}"] = repr(value)
        elif hasattr(value, "py_func"):
            seen[f"{key}:{name}"] = repr(sorted(value.targetoptions.items()))
            _add_reachable_code(value.py_func, seen)
        elif isinstance(value, ModuleType) and value.__name__ not in ("math", "numpy"):
            raise TypeError(
                f"{key}: takes something from the module {name}; import it by its own name to have it noticed"
            )


def kept_on_disk(function: _Function, **options: Any) -> _Function:
    """`numba.njit` whose machine code is kept, and is made anew when *any* compiled function that it reaches changes.

    numba itself only watches the file of the outermost function, so the rest goes into the name of the cached file.
    """
    seen: dict[str, str] = {}
    _add_reachable_code(function, seen)
    digest = hashlib.sha256(repr((sorted(seen.items()), sorted(options.items()))).encode()).hexdigest()[:10]
    function.__qualname__ = f"{function.__qualname__}_{digest}"
    try:
        kept = numba.njit(cache=True, **options)(function)
    except (RuntimeError, OSError):  # "cannot cache function: no locator available", or a disk that takes no file
        return cast(_Function, numba.njit(**options)(function))
    _ignore_disk_errors(kept)
    return cast(_Function, kept)


def _ignore_disk_errors(kept: Any) -> None:
    """A full or read-only disk must not stop what is compiled already: then the machine code is simply not kept."""
    cache = getattr(kept, "_cache", None)
    for name in ("save_overload", "load_overload"):
        ask = getattr(cache, name, None)
        if ask is not None:
            setattr(cache, name, _without_disk_errors(ask))


def _without_disk_errors(ask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(ask)
    def asked(*arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except OSError:
            return None  # as numba does where nothing is kept

    return asked


def on_disk(function: Any) -> bool:
    """Whether there is machine code of a function that is `kept_on_disk` (or no place to keep it)."""
    folder = function.stats.cache_path
    return folder is None or any(Path(folder).glob(f"*{function.__qualname__}*.nbi"))


def say_before(what: str, *functions: Any) -> None:
    """Warn, before something starts, that it will first compile these functions, or that it is slow because nothing is compiled."""
    if numba is None or getattr(numba.config, "DISABLE_JIT", False):
        why = "numba is not installed" if numba is None else "numba is switched off (NUMBA_DISABLE_JIT)"
        warn_caller(f"{what} is interpreted, hundreds of times slower than compiled: {why}", SlowWarning)
        return
    missing = [f for f in functions if hasattr(f, "overloads") and not f.overloads and not on_disk(f)]
    if missing:
        warn_caller(f"{what} compiles, this once; it takes some seconds", CompilingWarning)


def loaded(function: Any, signature: tuple[Any, ...]) -> bool:
    """Load the machine code of a function that is `kept_on_disk`; False, and nothing is compiled, where there is none."""
    if tuple(signature) in function.overloads:
        return True
    cache = getattr(function, "_cache", None)
    ask = getattr(cache, "load_overload", None)
    found = None if ask is None else ask(signature, function.targetctx)
    if found is None:
        return False
    cast(Any, cache).load_overload = lambda *_: found  # so that it is not read twice
    try:
        function.compile(signature)
    finally:
        cast(Any, cache).load_overload = ask
    return True


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    """Switch garbage collection off while compiling: it would take a tenth of the time and free next to nothing."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _options(memory: bool) -> dict[str, Any]:
    """numba's options; without ``memory`` no array is counted, which makes the loops several times faster."""
    options = {"nogil": True, "error_model": "numpy", "forceinline": True}
    return {**options, "_nrt": memory} if _CAN_SWITCH_COUNTING else options


def _can_switch_counting() -> bool:
    """Whether this numba knows the option that switches the counting of references off (it is not a documented one)."""
    if numba is None:
        return False
    options: Any = {"_nrt": False}
    try:
        numba.njit(**options)(lambda: None)
    except Exception:  # then it is only slower
        return False
    return True


_CAN_SWITCH_COUNTING = _can_switch_counting()


@overload
def compiled(function: _Function) -> _Function: ...
@overload
def compiled(*, memory: bool) -> Callable[[_Function], _Function]: ...
def compiled(function: Any = None, *, memory: bool = False) -> Any:
    """Compile a function that compiled ones call; the function itself where numba is not installed.

    Its arrays come from the state. One that makes arrays, or calls something that does, says ``@compiled(memory=True)``.
    """
    if function is None:
        return lambda f: _inlined(f, memory)
    return _inlined(function, False)


def _inlined(function: _Function, memory: bool) -> _Function:
    if numba is None:
        return function
    only_inside: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # a quarter less to compile
    return cast(_Function, numba.njit(**_options(memory), **only_inside)(function))


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep its machine code on disk; also of one that is `compiled` already.

    References are counted here, or every call would leave one to its Generator behind.
    """
    if numba is None:
        return function
    return cast(_Function, kept_on_disk(getattr(function, "py_func", function), **_options(memory=True)))
