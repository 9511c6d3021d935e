"""Pages of the repository as pages of a site: a link that shows the name of a file shows the title of that page instead."""

import re

_FILE = re.compile(r"\[[\w./-]+\.md\](?=\([\w./-]+\.md\))")


def setup(app):
    app.connect("source-read", _titles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _titles(app, name, source):
    source[0] = _FILE.sub("[]", source[0])
