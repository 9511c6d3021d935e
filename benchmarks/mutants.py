"""Mutation testing of the certificate: small changes to its code, one at a time, that the tests must notice.

    python benchmarks/mutants.py                       everything that is not in the results yet
    python benchmarks/mutants.py --file canonical --most 50 --seed 1
    python benchmarks/mutants.py --report              write MUTANTS.md from the results

Results are kept line by line in mutants.jsonl, so a run can be stopped and taken up again; a change of a function makes its
mutants new, one elsewhere in the file does not, nor does moving the file. Why survivors are harmless is written by hand into
mutants_harmless.json. The code as it is is judged first, and what each test reaches is noted: a mutant is judged by the tests that
reach its line. Needs os.fork (Linux, macOS).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutants_judges import JUDGES, PROPOSALS
from mutants_reach import ELSEWHERE, Only, Reach, tests_that_reach

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS, HARMLESS, REPORT = HERE / "mutants.jsonl", HERE / "mutants_harmless.json", HERE / "MUTANTS.md"
TIMEOUT = 20  # seconds of processor time; the judges take a quarter of that
MEMORY = 6 * 2**30
_TESTS = "not missing and not without_a_margin and not without_its_margins"  # tests of the tests themselves
_TESTS += " and not longer_horizon and not other_units_scale and not pay_more_elsewhere and not copies_of_arms_and_their_order"  # slow
_INTERPRETED = ("compiled_certificate",)  # files that numba compiles: judged as plain Python, which is the same text
_LATE = "pytest.PytestAssertRewriteWarning"  # plugins that are loaded before the fork

LOADED = (
    "numpy",
    "scipy.linalg",
    "flint",
    "pytest",
    "hypothesis",
    "cloudpickle",
    "threadpoolctl",
    "_pytest.assertion.rewrite",
)


@dataclass(frozen=True)
class Mutant:
    """One change: bytes from start to stop of a file become ``after``."""

    file: str
    line: int
    where: str
    before: str
    after: str
    start: int
    stop: int
    owner: str
    """The class that it is in."""
    within: int
    """Where the function (or other statement) that it is in begins."""
    text: str
    """The text of that function."""

    @property
    def name(self) -> str:
        """What `mutants_harmless.json` calls it; line numbers and folders change, names of functions less often."""
        return f"{Path(self.file).name}:{self.where}: {self.before} → {self.after}"

    @property
    def place(self) -> str:
        """The same with the line that it is in: for names that a function has several of."""
        raw = self.text.encode()
        at = self.start - self.within
        first, last = raw.rfind(b"\n", 0, at) + 1, raw.find(b"\n", at)
        return f"{self.name} in: {raw[first : last if last >= 0 else None].decode().strip()}"

    def reached_by(self, reached: dict[int, set[str]]) -> set[str] | None:
        """The tests that reach it; None where all may."""
        raw = (ROOT / self.file).read_bytes()
        last = raw.count(b"\n", 0, self.stop) + 1
        return tests_that_reach(raw.decode(), self.line, last, reached)

    @property
    def key(self) -> str:
        """Of one change of one function, wherever that is."""
        spot = f"{Path(self.file).name}:{self.start - self.within}:{self.stop - self.within}:{self.after}:"
        return hashlib.sha256(f"{spot}{self.owner and self.owner + '.'}{self.text}".encode()).hexdigest()[:16]


_ARITHMETIC: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}  # fmt: skip
_COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "fmin": "fmax", "any": "all", "all": "any",
    "argmax": "argmin", "root_up": "root_down",
}  # fmt: skip


class _Finder(ast.NodeVisitor):
    """Collects what may be changed; annotations, docstrings, messages and exports are left alone."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.raw = text.encode()
        self.lines = [0]
        for line in self.raw.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.scope: list[str] = []
        self.unit = ("", 0, "")
        self.found: list[Mutant] = []
        self._statements(ast.parse(text).body)

    def _span(self, node: Any) -> tuple[int, int]:
        return (
            self.lines[node.lineno - 1] + node.col_offset,
            self.lines[node.end_lineno - 1] + node.end_col_offset,
        )

    def _statements(self, body: list[ast.stmt]) -> None:
        """Of a module or a class: each is a text of its own."""
        for statement in body:
            start, stop = self._span(statement)
            self.unit = (".".join(self.scope), start, self.raw[start:stop].decode())
            self.visit(statement)

    def _add(self, node: Any, after: str) -> None:
        start, stop = self._span(node)
        before = self.raw[start:stop].decode()
        where = ".".join(self.scope) or "module"
        self.found.append(
            Mutant(self.file, node.lineno, where, " ".join(before.split()), after, start, stop, *self.unit)
        )

    def _change(self, node: Any, **fields: Any) -> None:
        old = {name: getattr(node, name) for name in fields}
        for name, value in fields.items():
            setattr(node, name, value)
        self._add(node, f"({ast.unparse(node)})")
        for name, value in old.items():
            setattr(node, name, value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]:
            self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        self._statements(node.body)
        self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(t, ast.Name) and t.id in ("__all__", "Row") for t in node.targets):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None: ...

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None: ...

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "pass")

    def visit_Assert(self, node: ast.Assert) -> None: ...

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = _ARITHMETIC.get(type(node.op))
        if other is not None:
            self._change(node, op=other())
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for i, op in enumerate(node.ops):
            self._change(node, ops=[*node.ops[:i], _COMPARISONS[type(op)](), *node.ops[i + 1 :]])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._change(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.Invert | ast.USub):
            self._add(node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def _condition(self, node: Any) -> None:
        if not isinstance(node.test, ast.UnaryOp | ast.Compare):  # for these there are changes of their own
            self._add(node.test, f"(not ({ast.unparse(node.test)}))")
        self.generic_visit(node)

    visit_If = visit_While = visit_IfExp = _condition

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _NAMES and isinstance(function, ast.Attribute):
            self._change(function, attr=_NAMES[name])
        elif name in _NAMES:
            self._add(function, _NAMES[name])
        elif name == "abs" and len(node.args) == 1:
            self._add(node, f"({ast.unparse(node.args[0])})")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add(node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        self._add(node, "pass")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, str(not value))
        elif isinstance(value, int):
            for other in {value + 1, value - 1, 0} - {value}:
                self._add(node, f"({other})")
        elif isinstance(value, float):
            for changed in {2.0 * value, 0.5 * value, 0.0 if value else 1.0} - {value}:
                self._add(node, f"({changed!r})")


def test_file(name: str) -> str:
    """The path of the tests of that name, in whatever folder they are."""
    paths = list((ROOT / "tests").rglob(f"test_{name}.py"))
    if len(paths) != 1:
        raise SystemExit(f"expected one test_{name}.py in tests/, found {len(paths)}")
    return paths[0].relative_to(ROOT).as_posix()


def mutants(file: str) -> list[Mutant]:
    """All changes of a file that are syntax at all."""
    return mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))


def mutants_of(file: str, text: str) -> list[Mutant]:
    result = []
    for mutant in _Finder(file, text).found:
        try:
            compile(changed(text, mutant), file, "exec")
        except SyntaxError:
            continue
        result.append(mutant)
    return result


def changed(text: str, mutant: Mutant) -> str:
    raw = text.encode()
    return (raw[: mutant.start] + mutant.after.encode() + raw[mutant.stop :]).decode()


def copy_of_the_package(folder: Path) -> None:
    """What the judges need, without machine code that may be stale."""
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc", ".hypothesis")
    for name in ("allocopt", "solvers", "tests"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)


class Order:
    """A plugin of pytest: the tests that noticed most changes nearby come first. Which of them run does not depend on it."""

    def __init__(self, kills: Counter[str]) -> None:
        self.kills = kills

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items.sort(key=lambda item: -self.kills[item.name])


def kills(results: Iterable[dict[str, Any]], file: str, where: str) -> Counter[str]:
    """How often each test noticed a change of this file, those of this function above all."""
    count: Counter[str] = Counter()
    for result in results:
        if Path(result["file"]).name == Path(file).name:
            count[result["by"]] += 1000 if result["where"] == where else 1
    return count


class Judge:
    """A copy of the package, and a process that tries the judges on it and inherits what is slow to import."""

    def __init__(self, folder: Path, like: Judge | None = None) -> None:
        self.folder = folder
        self.log = folder / "log.txt"
        if like is None:
            folder.mkdir()
            copy_of_the_package(folder)
        else:  # with its machine code, which begins to be written when the code is judged as it is
            shutil.copytree(like.folder, folder, symlinks=True)
        self.mutant: Mutant | None = None

    def begin(self, file: str, mutant: Mutant | None, first: Counter[str], only: set[str] | None = None) -> None:
        """Start judging a mutant of a file, or the file as it is; the tests in ``first`` come first, ``only`` these if given."""
        self.file, self.mutant = file, mutant
        if mutant is not None:
            text = (ROOT / file).read_text(encoding="utf-8")
            (self.folder / file).write_text(changed(text, mutant), encoding="utf-8")
        self.start = time.perf_counter()
        self.child = os.fork()
        if self.child == 0:
            sys.dont_write_bytecode = mutant is not None
            _run_judges(self, file, mutant is None, first, only)

    def done(self) -> tuple[str, float, str] | None:
        """The verdict, the seconds it took and the test that failed; None while the judges are still at it."""
        ended, status = os.waitpid(self.child, os.WNOHANG)
        spent = time.perf_counter() - self.start
        if not ended:
            return None
        if self.mutant is not None:
            shutil.copy(ROOT / self.file, self.folder / self.file)
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return "timeout", spent, ""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        failed = [
            line.split(" - ")[0].split("::", 1)[-1]
            for line in text.splitlines()
            if line.startswith(("FAILED", "ERROR"))
        ]
        result = "survived" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else "killed"
        return result, spent, failed[0] if failed else ""


def _run_judges(judge: Judge, file: str, unchanged: bool, first: Counter[str], only: set[str] | None) -> None:
    """In the child: never returns."""
    code, folder = 99, judge.folder
    try:
        if not unchanged:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT, TIMEOUT + 5))
        out = os.open(judge.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(folder)
        interpreted = Path(file).stem in _INTERPRETED
        if interpreted:
            os.environ["NUMBA_DISABLE_JIT"] = "1"  # numba is loaded after this
        sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() not in (ROOT, HERE))]
        import pytest

        tests = [test_file(name) for name in JUDGES[file]]
        plugins: list[Any] = [Order(first)]
        if unchanged:
            plugins.append(Reach(folder / file, folder / "reached.json"))
        elif only is not None:
            plugins.append(Only(only))
            tests = [test for test in tests if any(name.startswith(f"{test}::") for name in only)]
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", f"ignore::{_LATE}"]
        options += ["-W", "ignore::RuntimeWarning"] if interpreted else []
        likely = sorted(only or (), key=lambda test: -first[test.split("::")[-1]])[:3]
        if (
            likely and first[likely[0].split("::")[-1]]
        ):  # those that noticed most changes nearby, before the others are loaded
            files = sorted({test.split("::")[0] for test in likely})
            code = int(pytest.main([*options, *files], plugins=[Order(first), Only(set(likely))]))
            if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
                return
        code = int(pytest.main([*options, "-k", _TESTS, *tests], plugins=plugins)) if tests else 0
        code = 0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code
    finally:
        sys.stdout.flush()
        os._exit(code)


def known() -> dict[str, dict[str, Any]]:
    """Results so far, by key."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {record["key"]: record for record in map(json.loads, lines)}


def chosen(files: list[str]) -> Iterator[tuple[str, Mutant]]:
    for file in files:
        for mutant in mutants(file):
            yield mutant.key, mutant


def run(files: list[str], most: int | None, seed: int, again: str | None, processes: int) -> None:
    """Judge what is left to judge, or survivors again: those without a reason, or all of them."""
    before = known()
    if again is not None:
        reasons = harmless() if again == "unexplained" else {}
        survivors = [(k, m) for k, m in chosen(files) if k in before and before[k]["result"] == "survived"]
        left = [(k, m) for k, m in survivors if reason(reasons, m) is None]
    else:
        left = [(k, m) for k, m in chosen(files) if k not in before]
    random.Random(seed).shuffle(left)
    written = (
        harmless()
    )  # a survivor takes ten times as long as one that is noticed: those that have a reason already come last
    left.sort(
        key=lambda pair: (reason(written, pair[1]) is not None, pair[1].where in PROPOSALS, files.index(pair[1].file))
    )
    left = left[:most]
    compiled = not any(
        Path(m.file).stem in _INTERPRETED for _, m in left
    )  # else numba is loaded later, and does nothing
    for name in (*LOADED, "numba") if compiled else LOADED:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as temporary:
        judges = [Judge(Path(temporary) / "0")]
        for file in files:
            print(f"{file}: {sum(m.file == file for _, m in left)} mutants", flush=True)
        reached: dict[str, dict[int, set[str]]] = {}
        for file in dict.fromkeys(m.file for _, m in left):
            found = _reached_as_it_is(judges[0], file)
            if file not in ELSEWHERE:
                reached[file] = found
        judges += [Judge(Path(temporary) / str(n), judges[0]) for n in range(1, processes)]
        _judge_all(judges, left, list(before.values()), reached)


def _reached_as_it_is(judge: Judge, file: str) -> dict[int, set[str]]:
    """Judge the code as it is, which must pass, and note what each test reaches; known where nothing has changed since."""
    folders = ("tests", "allocopt", "solvers")
    texts = [path.read_bytes() for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    digest = hashlib.sha256(b"".join([file.encode(), repr(JUDGES[file]).encode(), *texts])).hexdigest()[:16]
    noted = ROOT / "build" / "mutants" / f"{digest}.json"
    if not noted.exists():
        judge.begin(file, None, Counter())
        while (verdict := judge.done()) is None:
            time.sleep(0.05)
        print(f"unchanged, {verdict[1]:.1f} s: {verdict[0]} {verdict[2]}", flush=True)
        if verdict[0] != "survived":
            print(judge.log.read_text())
            raise SystemExit("the judges do not like the code as it is")
        noted.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(judge.folder / "reached.json", noted)
    lines = json.loads(noted.read_text(encoding="utf-8"))
    return {int(line): set(tests) for line, tests in lines.items()}


def _judge_all(
    judges: list[Judge], left: list[tuple[str, Mutant]], results: list[dict[str, Any]], reached: dict[str, dict[int, set[str]]]
) -> None:  # fmt: skip
    start, done, survivors = time.perf_counter(), 0, 0
    busy: list[Judge] = []
    idle, waiting = list(judges), [m for _, m in reversed(left)]
    with RESULTS.open("a", encoding="utf-8") as out:
        while busy or waiting:
            while idle and waiting:
                judge, mutant = idle.pop(), waiting.pop()
                only = mutant.reached_by(reached[mutant.file]) if mutant.file in reached else None
                judge.begin(mutant.file, mutant, kills(results, mutant.file, mutant.where), only)
                busy.append(judge)
            time.sleep(0.02)
            for judge in list(busy):
                verdict = judge.done()
                if verdict is None:
                    continue
                busy.remove(judge)
                idle.append(judge)
                assert judge.mutant is not None
                results.append(record(judge.mutant, *verdict))
                out.write(json.dumps(results[-1], ensure_ascii=False) + "\n")
                out.flush()
                done += 1
                if verdict[0] == "survived":
                    survivors += 1
                    print(f"  survived: {judge.mutant.line} {judge.mutant.name}", flush=True)
                if done % 25 == 0 or done == len(left):
                    spent = time.perf_counter() - start
                    rest = spent / done * (len(left) - done)
                    print(
                        f"{done} of {len(left)}, {survivors} survived, {spent:.0f} s, about {rest:.0f} s left",
                        flush=True,
                    )


def record(mutant: Mutant, result: str, seconds: float, by: str) -> dict[str, Any]:
    """What is kept of a verdict; results are found by their key, the rest is for people."""
    kept = {name: getattr(mutant, name) for name in ("key", "file", "line", "where", "before", "after")}
    return {**kept, "result": result, "seconds": round(seconds, 2), "by": by}


def reason(reasons: dict[str, str], mutant: Mutant) -> str | None:
    """Why a survivor does no harm: by its line, or by its function."""
    return reasons.get(mutant.place, reasons.get(mutant.name))


def harmless() -> dict[str, str]:
    """Why survivors do no harm, by their names."""
    reasons: dict[str, str] = json.loads(HARMLESS.read_text(encoding="utf-8")) if HARMLESS.exists() else {}
    return reasons


def report() -> str:
    """The results as Markdown; survivors without a reason are named as such."""
    results = known()
    reasons = harmless()
    lines = [
        "# Mutants of the certificate", "",
        "`make mutants` changes the code of the certificate in one place at a time (an operator, a comparison, a number, a",
        "condition, a deleted statement) and asks the tests whether they notice. By `benchmarks/mutants.py`.",
        "Killed includes timeouts.", "",
        "| file | mutants | run | killed | timeouts | survived | not run |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    totals = [0] * 6
    survivors: list[tuple[Mutant, str]] = []
    for file in JUDGES:
        all_of_it = list(chosen([file]))
        ran = [(results[k]["result"], m) for k, m in all_of_it if k in results]
        dead = sum(r != "survived" for r, _ in ran)
        late = sum(r == "timeout" for r, _ in ran)
        row = [len(all_of_it), len(ran), dead, late, len(ran) - dead, len(all_of_it) - len(ran)]
        totals = [x + y for x, y in zip(totals, row, strict=True)]
        lines.append(f"| {file} | " + " | ".join(map(str, row)) + " |")
        survivors += [(m, reason(reasons, m) or "**not looked at yet**") for r, m in ran if r == "survived"]
    lines += ["| all | " + " | ".join(map(str, totals)) + " |", "", "## Survivors", ""]
    lines += [
        "Each with the reason why it can do no harm: no bound becomes wrong and no status better than it should be.",
        "",
    ]
    file = ""
    for mutant, why in survivors:
        if mutant.file != file:
            file = mutant.file
            lines += ["", f"### {file}", "", "| line | in | change | why it is harmless |", "|---|---|---|---|"]
        change = f"`{mutant.before}` → `{mutant.after}`".replace("|", "\\|")
        lines.append(f"| {mutant.line} | {mutant.where} | {change} | {why} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", action="append", help="only files whose path contains this (may be repeated)")
    parser.add_argument("--most", type=int, help="at most so many, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--again", choices=("unexplained", "all"), help="survivors (without a reason, or all), after new tests"
    )
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--report", action="store_true", help="only write MUTANTS.md")
    arguments = parser.parse_args()
    files = [file for file in JUDGES if not arguments.file or any(part in file for part in arguments.file)]
    if not arguments.report:
        run(files, arguments.most, arguments.seed, arguments.again, arguments.processes)
    REPORT.write_text(report(), encoding="utf-8")


if __name__ == "__main__":
    main()
