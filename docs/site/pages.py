"""Pages of the repository as pages of a site.

A link that shows the name of a file shows the title of that page instead. Pages that docs/topics.md does not name yet are its last
ones.
"""

import re
from pathlib import Path

_FILE = re.compile(r"\[[\w./-]+\.md\](?=\([\w./-]+\.md\))")


def setup(app):
    app.connect("source-read", _titles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _titles(app, name, source):
    source[0] = _FILE.sub("[]", source[0])
    if name == "docs/topics":
        source[0] += _others(Path(app.srcdir) / "docs", source[0])


def _others(folder, topics):
    """A table of contents for the pages of the folder that no other one names."""
    named = {"index", "topics", "architecture", *topics.splitlines()}
    rest = sorted(page.stem for page in folder.glob("*.md") if page.stem not in named)
    return "\n```{toctree}\n:caption: More\n:maxdepth: 1\n\n" + "\n".join(rest) + "\n```\n" if rest else ""
