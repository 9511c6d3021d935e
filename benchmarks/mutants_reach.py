"""Which tests reach which lines of a file: a mutant in a line is judged by these tests alone."""

from __future__ import annotations

import ast
import json
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

ELSEWHERE = ("allocopt/certify/referee.py",)
"""Files that tests also run in processes of their own, where nobody watches: all judges judge them."""


class Reach:
    """A plugin of pytest that notes the lines of one file that each test runs."""

    def __init__(self, file: Path, out: Path) -> None:
        self.file, self.out = os.path.realpath(file), out
        self.tests: dict[int, set[str]] = defaultdict(set)
        self.lines: set[int] = set()

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != self.file:
            return None
        self.lines.add(frame.f_lineno)
        return self._trace

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.lines.clear()
        sys.settrace(self._trace)
        threading.settrace(self._trace)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        sys.settrace(None)
        threading.settrace(None)
        for line in self.lines:
            self.tests[line].add(nodeid)

    def pytest_sessionfinish(self) -> None:
        self.out.write_text(json.dumps({line: sorted(tests) for line, tests in self.tests.items()}))


class Only:
    """A plugin of pytest that leaves out all tests but some."""

    def __init__(self, tests: set[str]) -> None:
        self.tests = tests

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if item.nodeid in self.tests]


def statement_lines(text: str) -> dict[int, range]:
    """For each line in a function: those of the innermost statement from its beginning, which run before the line does.

    Lines that run when the file is loaded have none: every test may depend on them.
    """
    found: dict[int, range] = {}

    def visit(body: list[ast.stmt], inside: bool) -> None:
        for statement in body:
            assert statement.end_lineno is not None
            if inside:
                for line in range(statement.lineno, statement.end_lineno + 1):
                    found[line] = range(statement.lineno, line + 1)
            within = inside or isinstance(statement, ast.FunctionDef)
            for name in ("body", "orelse", "finalbody"):
                visit(getattr(statement, name, []), within)
            for handler in getattr(statement, "handlers", []):
                visit(handler.body, within)

    visit(ast.parse(text).body, False)
    return found


def tests_that_reach(text: str, first: int, last: int, reached: dict[int, set[str]]) -> set[str] | None:
    """The tests that run any of these lines of a file, or the statement that they are in; None where all may."""
    lines = statement_lines(text)
    if first not in lines:
        return None
    return set().union(*(reached.get(line, set()) for line in range(lines[first].start, last + 1)))
