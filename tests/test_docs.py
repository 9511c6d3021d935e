"""Every Python block of README.md and docs/*.md runs as printed: block after block, one namespace a page, no warnings."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# not `python script.py`: worker processes would run such a script again
RUN = "import sys; name = sys.argv[1]; exec(compile(open(name).read(), name, 'exec'), {'__name__': '__main__'})"


def code(text):
    """The Python of a page, on the lines that it has there, so that an error names the line of the page."""
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(1))
        inside = block[1].splitlines()
        lines[first : first + len(inside)] = inside
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "page", [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8"))], ids=lambda p: p.stem
)
def test_the_python_of_a_page_runs_as_printed(page, tmp_path):
    script = tmp_path / f"page_{page.stem}.py"  # numba keeps compiled code beside a file, so there must be one
    script.write_text(code(page.read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", RUN, str(script)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in path:
            continue
        other = page.parent / path if path else page
        assert other.exists(), f"{page.name} links to {target}"
        if anchor and other.suffix == ".md":
            assert anchor in anchors(other.read_text(encoding="utf-8")), f"{page.name} links to {target}"


def anchors(text):
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


NAMED = re.compile(r"`(?:allocopt/)?([\w/]+\.py)(?::([\w.]+))?`")


def defined(tree, dotted):
    """Whether a module defines a function, a class or a name of its own, or ``Class.method``."""
    first, _, rest = dotted.partition(".")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == first:
            return not rest or defined(node, rest)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not rest and any(isinstance(t, ast.Name) and t.id == first for t in targets):
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_files_and_functions_that_a_page_names_are_there(page):
    for path, name in NAMED.findall(page.read_text(encoding="utf-8")):
        found = [place for place in (ROOT / path, ROOT / "allocopt" / path, ROOT / "solvers" / path) if place.exists()]
        if "/" not in path and not name:  # `exact.py` where the folder was said before
            found = [
                f for room in ("allocopt", "solvers", "benchmarks", "tests") for f in (ROOT / room).glob(f"**/{path}")
            ]
        assert found, f"{page.name} names {path}"
        if name:
            assert defined(ast.parse(found[0].read_text(encoding="utf-8")), name), f"{page.name} names {path}:{name}"


@pytest.mark.slow
def test_a_users_type_checker_accepts_every_example(tmp_path):
    """mypy --strict, but for functions that a page defines without annotations and packages that have none."""
    pytest.importorskip("mypy")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if BLOCK.search(text):
            (tmp_path / f"page_{page.stem.replace('-', '_')}.py").write_text(code(text), encoding="utf-8")
    relaxed = ("untyped-defs", "untyped-calls", "incomplete-defs", "redefinition", "untyped-decorators")
    command = [sys.executable, "-m", "mypy", "--strict", *(f"--allow-{x}" for x in relaxed), "--ignore-missing-imports",
               "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), *map(str, tmp_path.glob("page_*.py"))]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(ROOT)}
    )
    wrong = [line for line in done.stdout.splitlines() if line.startswith("page_")]
    assert done.returncode == 0 and not wrong, "\n".join(wrong) or done.stdout + done.stderr
