"""Every block of Python and of commands in README.md and docs/ runs as printed, one namespace a page, no warnings."""

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import allocopt as ao

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(page for page in (ROOT / "docs").glob("**/*.md") if "generated" not in page.parts)
BLOCK = re.compile(r"^```(python|\{code-cell\}|sh|toml)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# not `python script.py`: worker processes would run such a script again
RUN = """
import sys, warnings
warnings.filterwarnings("ignore", ".*compiles.*this once")  # said where nothing is compiled yet
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), {"__name__": "__main__"})
"""
SHELL = "import subprocess as _s; _s.run(['bash', '-euo', 'pipefail', '-c', {!r}], check=True)"


def name_of(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


def code(text):
    """The Python of a page, on the lines that it has there, so that an error names the line of the page.

    A block of commands (```sh) becomes one line that runs them in a shell, and fails with them.
    """
    lines = [""] * text.count("\n")
    for block in BLOCK.finditer(text):
        first = text.count("\n", 0, block.start(2))
        if block[1] == "sh":
            lines[first] = SHELL.format(block[2])
        elif block[1] != "toml":
            inside = ["" if line.startswith(":tags:") else line for line in block[2].splitlines()]
            lines[first : first + len(inside)] = inside
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("page", [p for p in PAGES if code(p.read_text(encoding="utf-8")).strip()], ids=name_of)
def test_the_code_of_a_page_runs_as_printed(page, tmp_path):
    script = tmp_path / f"page_{page.stem}.py"  # numba keeps compiled code beside a file, so there must be one
    script.write_text(code(page.read_text(encoding="utf-8")), encoding="utf-8")
    command = [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", RUN, str(script)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])  # `allocopt` of this Python
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_toml_of_a_page_can_be_read(page):
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block[1] == "toml":
            tomllib.loads(block[2])


def test_a_page_that_fails_is_noticed():
    """Commands and cells are run in their place: the line after a failed command is not reached."""
    page = "```python\nx = 1\n```\n```sh\ntrue\nfalse\n```\n```{code-cell}\nx = 2\n```\n"
    space = {}
    with pytest.raises(subprocess.CalledProcessError):
        exec(code(page), space)
    assert space["x"] == 1
    exec(code(page.replace("false", "true")), space)
    assert space["x"] == 2


def test_the_readme_can_be_read_in_one_go():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_reference_has_every_public_name_once():
    path = ROOT / "docs" / "site" / "reference.py"
    reference = runpy.run_path(str(path))
    named = [f"allocopt.{n}" for n in reference["listed"](ROOT)]
    named += [n for _, _, names in reference["pages"](ROOT).values() for n in names]
    public = {f"allocopt.{n}" for n in ao.__all__ if n not in ao._MODULES and n != "__version__"}
    for module in ao._MODULES:
        public |= {f"allocopt.{module}.{n}" for n in getattr(ao, module).__all__ if n not in ao.__all__}
    assert sorted(named) == sorted(public)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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
        name = re.sub(r"\W", "_", name_of(page))
        (tmp_path / f"page_{name}.py").write_text(code(page.read_text(encoding="utf-8")), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\n[mypy-cvxpy.*]\nfollow_imports = skip\n"
    )  # its names are made at run time
    relaxed = ("untyped-defs", "untyped-calls", "incomplete-defs", "redefinition", "untyped-decorators")
    command = [sys.executable, "-m", "mypy", "--strict", *(f"--allow-{x}" for x in relaxed), "--ignore-missing-imports",
               "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), *map(str, tmp_path.glob("page_*.py"))]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ, "MYPYPATH": str(ROOT)}
    )
    wrong = [line for line in done.stdout.splitlines() if line.startswith("page_")]
    assert done.returncode == 0 and not wrong, "\n".join(wrong) or done.stdout + done.stderr
