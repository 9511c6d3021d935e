"""What a result depends on, as plain data: a long run is resumed only where this is the same, and told what differs.

A description covers whatever a user may pass: numbers, arrays, partials, closures, objects with their private attributes,
functions with their code, their defaults and the globals they use, classes with their methods. Code of installed packages is
described by its name and version, a user's own by its bytecode. In doubt two things are different: a refusal costs a new
folder, a mixture costs the result.
"""

from __future__ import annotations

import builtins
import copyreg
import dis
import functools
import hashlib
import importlib.metadata
import importlib.util
import math
import sys
import types
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from allocopt.base.errors import InvalidOption, MethodUnavailable
from allocopt.base.long_runs.differences import MOST_LISTED, canonical_text, differences
from allocopt.base.long_runs.own_code import code_digest
from allocopt.base.version import __version__

__all__ = ["check_same", "described", "installed", "versions"]

_BLOCK_BYTES = 1 << 24  # of an array, hashed at a time: a memory-mapped one need not fit into memory
_NOT_MEMBERS = (
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate_func__",
    "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__slots__", "__abstractmethods__", "_abc_impl",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__parameters__", "__orig_bases__",
)  # fmt: skip
"""Entries of a class that decide nothing, or nothing that its methods do not say."""


def described(name: str, value: Any) -> Any:
    """A value as JSON data that is the same in the next process, and differs where the value does.

    `InvalidOption`, with ``name``, for what no other process could recognise, such as a lock or an open file.

    Examples
    --------
    >>> described("x", [1, 2.5, "a"])
    {'list': [1, 2.5, 'a']}
    >>> described("x", np.zeros(3))["array"]
    'float64 of shape (3,)'
    >>> scale = functools.partial(divmod, 3)
    >>> described("f", scale)
    {'partial': {'function': 'builtins:divmod'}, 'arguments': [3]}
    """
    try:
        return _Describer().of(value, name)
    except RecursionError:
        raise InvalidOption(f"{name}: nested too deeply to be recognised when it is resumed") from None


@functools.cache
def versions() -> dict[str, Any]:
    """Of what the last digits, and the random numbers, of a result depend on; of allocopt itself also its code."""
    found: dict[str, Any] = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "allocopt": {"version": __version__, "code": code_digest()},
    }
    for name in ("numpy", "scipy", "numba"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def check_same(expected: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Refuse to work in a process, perhaps on another machine, whose versions or code are not those of whoever asks for it."""
    if here != expected:
        what = "; ".join(differences(expected, here))
        raise MethodUnavailable(
            f"workers: expected the same allocopt, Python and numpy as in the process that started them, but {what} "
            "(there: that process; here: a worker)"
        )


class _Describer:
    """One walk through a value and all that it refers to."""

    def __init__(self) -> None:
        self._named: dict[int, str] = {}  # functions, classes and modules that were described, and where
        self._open: dict[int, str] = {}  # what is being described: it may contain itself
        self._kept: list[Any] = []  # so that no number of an object is used twice

    def of(self, value: Any, path: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind in (float, np.float64):
            return float(value) if math.isfinite(value) else {"float": repr(float(value))}
        if isinstance(value, np.bool_ | np.int64):
            return value.item()
        if isinstance(value, np.generic):
            return {"scalar": f"{value.dtype}", "sha256": _sha(value.tobytes())}
        if kind in (bytes, bytearray):
            return {"bytes": len(value), "sha256": _sha(bytes(value))}
        if isinstance(value, np.ndarray) and kind in (np.ndarray, np.memmap):
            return self._array(value, path)
        if id(value) in self._open:
            return {"within": self._open[id(value)]}
        self._open[id(value)] = path
        self._kept.append(value)
        try:
            return self._compound(value, path)
        finally:
            del self._open[id(value)]

    def _compound(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind in (list, tuple):
            return self._entries(kind.__name__, (self.of(x, f"{path}[{i}]") for i, x in enumerate(value)), len(value))
        if kind in (dict, types.MappingProxyType):
            return self._mapping(value, path)
        if isinstance(value, Set) and kind in (set, frozenset):
            return self._entries("set", iter(sorted((self.of(x, path) for x in value), key=canonical_text)), len(value))
        if isinstance(value, functools.partial):
            return self._partial(value, path)
        if isinstance(value, types.MethodType):
            return {"method": self.of(value.__func__, path), "of": self.of(value.__self__, f"{path}.__self__")}
        if isinstance(value, staticmethod | classmethod):
            return {kind.__name__: self.of(value.__func__, path)}
        if isinstance(value, property):
            return {"property": [self.of(f, path) for f in (value.fget, value.fset, value.fdel)]}
        if isinstance(value, functools.cached_property):
            return {"cached_property": self.of(value.func, path)}
        inner = getattr(value, "py_func", None) or (getattr(value, "__wrapped__", None) if callable(value) else None)
        if isinstance(inner, types.FunctionType) and not isinstance(value, types.FunctionType | type):
            return {"wrapped": kind.__name__, "function": self.of(inner, path)}  # compiled by numba, or cached
        if isinstance(value, types.FunctionType | type | types.ModuleType):
            return self._once(value, path)
        if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType | types.WrapperDescriptorType):
            return self._builtin(value, path)
        if isinstance(value, types.MethodDescriptorType | types.ClassMethodDescriptorType):
            return {"function": f"{value.__objclass__.__module__}:{value.__qualname__}"}
        return self._instance(value, path)

    # Data

    def _array(self, value: Any, path: str) -> Any:
        if value.dtype.hasobject:
            entries = self._entries("list", (self.of(x, f"{path}[{i}]") for i, x in enumerate(value.flat)), value.size)
            return {"array": f"objects of shape {value.shape}", **entries}
        sha = hashlib.sha256()
        step = max(1, _BLOCK_BYTES // max(1, value.nbytes // max(1, len(value)))) if value.ndim else 1
        for first in range(0, len(value), step) if value.ndim else ():
            sha.update(np.ascontiguousarray(value[first : first + step]).tobytes())
        if not value.ndim:
            sha.update(value.tobytes())
        return {"array": f"{value.dtype} of shape {value.shape}", "sha256": sha.hexdigest()}

    def _entries(self, kind: str, entries: Iterator[Any], count: int) -> Any:
        if count <= MOST_LISTED:
            return {kind: list(entries)}
        sha = hashlib.sha256()
        for entry in entries:
            sha.update(canonical_text(entry).encode() + b"\0")
        return {kind: count, "sha256": sha.hexdigest()}

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        if all(type(key) is str for key in value) and len(value) <= MOST_LISTED:
            return {"dict": {key: self.of(x, f"{path}.{key}") for key, x in value.items()}}
        pairs = ([self.of(key, path), self.of(x, f"{path}[{key!r}]")] for key, x in value.items())
        return self._entries("dict", pairs, len(value))

    def _sorted(self, value: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Attributes and keyword arguments, whose order says nothing."""
        return {str(key): self.of(value[key], f"{path}.{key}") for key in sorted(value, key=str)}

    def _partial(self, value: functools.partial[Any], path: str) -> Any:
        found: dict[str, Any] = {"partial": self.of(value.func, path)}
        if value.args:
            found["arguments"] = [self.of(x, f"{path}.arguments[{i}]") for i, x in enumerate(value.args)]
        if value.keywords:
            found["keywords"] = self._sorted(value.keywords, path)
        return found

    def _instance(self, value: Any, path: str) -> Any:
        """Any other object: its class, and the state that would travel to another process."""
        kind = type(value)
        reducer = copyreg.dispatch_table.get(kind)
        try:
            reduced = reducer(value) if reducer is not None else value.__reduce_ex__(4)
        except Exception:
            raise InvalidOption(
                f"{path}: a {kind.__module__}.{kind.__qualname__} cannot be recognised in another process, so that what is kept "
                "could not be told from another experiment; leave it out, or out of the object's __getstate__"
            ) from None
        if isinstance(reduced, str):
            return {"global": f"{kind.__module__}:{reduced}"}
        made, arguments, state, entries, pairs = (*reduced, None, None, None)[:5]
        found: dict[str, Any] = {"object": self.of(kind, f"{path}.{kind.__name__}")}
        default = getattr(made, "__module__", None) == "copyreg"
        if not default:
            found["made by"] = self.of(made, path)
        if arguments := tuple(x for x in arguments if x is not kind):
            found["arguments"] = [self.of(x, f"{path}.arguments[{i}]") for i, x in enumerate(arguments)]
        if isinstance(state, tuple) and len(state) == 2 and all(isinstance(s, dict | None.__class__) for s in state):
            state = {**(state[0] or {}), **(state[1] or {})}
        if isinstance(state, dict) and all(type(key) is str for key in state):
            kept = {key: x for key, x in state.items() if not _is_computed(kind, key)}
            found["state"] = self._sorted(kept, path)
        elif state is not None:
            found["state"] = self.of(state, path)
        if entries is not None:
            found["entries"] = self.of(list(entries), path)
        if pairs is not None:
            found["pairs"] = self.of([list(pair) for pair in pairs], path)
        return found

    # Code

    def _once(self, value: Any, path: str) -> Any:
        """A function, class or module: described where it is met first."""
        if id(value) in self._named:
            return {"see": self._named[id(value)]}
        self._named[id(value)] = path
        if isinstance(value, types.ModuleType):
            return self._module(value, path)
        if version := installed(_home(value)):
            del self._named[id(value)]
            said = {"function" if isinstance(value, types.FunctionType) else "class": _full_name(value)}
            return said if version == "-" else {**said, "version": version}
        return self._class(value, path) if isinstance(value, type) else self._function(value, path)

    def _builtin(self, value: Any, path: str) -> Any:
        owner = getattr(value, "__self__", None)
        if owner is None or isinstance(owner, types.ModuleType):
            return {"function": _full_name(value)}
        return {"method": value.__name__, "of": self.of(owner, f"{path}.__self__")}

    def _function(self, value: types.FunctionType, path: str) -> Any:
        found: dict[str, Any] = {"function": value.__qualname__, "code": self._code(value.__code__, path)}
        if value.__defaults__:
            found["defaults"] = [self.of(x, f"{path}.defaults[{i}]") for i, x in enumerate(value.__defaults__)]
        if value.__kwdefaults__:
            found["keywords"] = self._sorted(value.__kwdefaults__, path)
        if value.__closure__:
            cells = zip(value.__code__.co_freevars, value.__closure__, strict=True)
            found["closure"] = {name: self._cell(cell, f"{path}.{name}") for name, cell in cells}
        names, imported = _names_used(value.__code__)
        used = {name: value.__globals__[name] for name in names if name in value.__globals__}
        used = {name: x for name, x in used.items() if getattr(builtins, name, self) is not x}
        if used:
            found["globals"] = self._sorted(used, path)
        if imports := {name: _found_module(name, value.__globals__.get("__package__")) for name in imported}:
            found["imports"] = {name: self._import(x, f"{path}.{name}") for name, x in sorted(imports.items())}
        if value.__dict__:
            found["attributes"] = self._sorted(value.__dict__, path)
        return found

    def _cell(self, cell: types.CellType, path: str) -> Any:
        try:
            content = cell.cell_contents
        except ValueError:
            return {"cell": "empty"}
        return self.of(content, path)

    def _code(self, code: types.CodeType, path: str) -> str:
        """A digest of what runs: where it stands in its file, and comments, say nothing."""
        constants = [
            self._code(x, path) if isinstance(x, types.CodeType) else "..." if x is ... else self.of(x, path)
            for x in code.co_consts
        ]
        parts = [
            code.co_names,
            code.co_varnames,
            code.co_freevars,
            code.co_argcount,
            code.co_kwonlyargcount,
            code.co_flags,
        ]
        sha = hashlib.sha256(code.co_code + b"\0" + code.co_exceptiontable)
        sha.update(canonical_text([constants, parts]).encode())
        return sha.hexdigest()

    def _class(self, value: type, path: str) -> Any:
        members = {
            name: x
            for name, x in value.__dict__.items()
            if name not in _NOT_MEMBERS and not isinstance(x, types.MemberDescriptorType | types.GetSetDescriptorType)
        }
        bases = [self.of(base, f"{path}.{base.__name__}") for base in value.__bases__ if base is not object]
        return {"class": value.__qualname__, "bases": bases, "members": self._sorted(members, path)}

    def _module(self, value: types.ModuleType, path: str) -> Any:
        """An installed module by its version; a user's own by its file, and those of his modules that it uses."""
        if version := installed(value.__name__):
            return {"module": value.__name__} if version == "-" else {"module": value.__name__, "version": version}
        try:
            sha256 = _sha(Path(value.__file__ or "").read_bytes())
        except OSError:
            sha256 = None
        used = {id(m): m for x in value.__dict__.values() if (m := _module_of(x)) is not None and m is not value}
        own = sorted((m for m in used.values() if not installed(m.__name__)), key=lambda m: m.__name__)
        return {"module": value.__name__, "sha256": sha256, "uses": [self.of(m, f"{path}.{m.__name__}") for m in own]}

    def _import(self, found: types.ModuleType | str | None, path: str) -> Any:
        if isinstance(found, types.ModuleType):
            return self.of(found, path)
        return {"file": None if found is None else _sha(Path(found).read_bytes())}


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _full_name(value: Any) -> str:
    return f"{getattr(value, '__module__', None) or 'builtins'}:{getattr(value, '__qualname__', value)}"


def _home(value: Any) -> str:
    """The module that a function or class was written in; a decorator may have given a function the name of another."""
    if isinstance(value, types.FunctionType):
        return str(value.__globals__.get("__name__", ""))
    return getattr(value, "__module__", None) or "builtins"


def _is_computed(kind: type, name: str) -> bool:
    """Whether an attribute is a cached property, which is there or not as somebody has asked for it."""
    return any(isinstance(vars(base).get(name), functools.cached_property) for base in kind.__mro__)


def _names_used(code: types.CodeType) -> tuple[list[str], list[str]]:
    """The globals that a function's code and the functions within it read, and the modules that they import."""
    names: set[str] = set()
    imported: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(instruction.argval)
        elif instruction.opname == "IMPORT_NAME":
            imported.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names_used(constant)
            names.update(inner[0])
            imported.update(inner[1])
    return sorted(names), sorted(imported)


def _found_module(name: str, package: str | None) -> types.ModuleType | str | None:
    """A module that a function imports when it is called: loaded, or the file that would be."""
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = importlib.util.find_spec(name if name else ".", package)
    except (ImportError, ValueError, AttributeError):
        return None
    origin = None if spec is None else spec.origin
    return origin if origin is not None and Path(origin).is_file() else None


def _module_of(value: Any) -> types.ModuleType | None:
    if isinstance(value, types.ModuleType):
        return value
    name = getattr(value, "__module__", None) if isinstance(value, types.FunctionType | type) else None
    return sys.modules.get(name) if isinstance(name, str) else None


@functools.cache
def installed(module: str) -> str | None:
    """The version of the package that a module belongs to; "-" for Python's own, None for a user's own code."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return "-"
    package = sys.modules.get(top)
    file = getattr(package, "__file__", None) or next(iter(getattr(package, "__path__", ())), None)
    if top != "allocopt" and (file is None or not {"site-packages", "dist-packages"} & set(Path(file).parts)):
        return None
    version = getattr(package, "__version__", None)
    if isinstance(version, str):
        return version
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
