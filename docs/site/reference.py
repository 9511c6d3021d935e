"""Pages of the reference that are made when the site is built, so that they hold every public name, also the newest.

The pages in docs/reference list names by what they are for. What they do not list, and the names of the public modules, are here.
"""

import re

import allocopt

PLACE = "docs/generated/reference"


def listed(root):
    """The names that the pages of docs/reference list."""
    pages = (root / "docs" / "reference").glob("*.md")
    return {
        n for page in pages for n in re.findall(r"^   allocopt\.(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }


def pages(root):
    """File name → title, introduction, names."""
    found = {}
    for module in sorted(allocopt._MODULES):
        code = getattr(allocopt, module)
        own = [n for n in code.__all__ if n not in allocopt.__all__]
        summary = (code.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        found[module] = (f"allocopt.{module}", summary, [f"allocopt.{module}.{n}" for n in own])
    rest = sorted(set(allocopt.__all__) - listed(root) - {*allocopt._MODULES, "__version__"})
    if rest:
        found["more"] = ("More", "What the other pages do not list.", [f"allocopt.{n}" for n in rest])
    return found


def write(root):
    """Write these pages, and remove those of names that are no longer public."""
    folder = root / PLACE
    folder.mkdir(parents=True, exist_ok=True)
    made = pages(root)
    for old in folder.glob("*.md"):
        if old.stem not in made:
            old.unlink()
    for name, (title, introduction, names) in made.items():
        rows = "".join(f"   {n}\n" for n in names)
        text = f"# {title}\n\n{introduction}\n\n```{{eval-rst}}\n.. autosummary::\n   :toctree: ../api\n\n{rows}```\n"
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
