"""Docstrings as reStructuredText: the bars of norms are bars, not substitutions, and signatures are short enough to be read."""

import re

_CODE = re.compile(r"``.*?``|^\s*(?:>>>|\.\.\. ).*$")


def setup(app):
    app.connect("autodoc-process-docstring", _bars, priority=100)  # before numpydoc
    app.connect("autodoc-process-signature", _short)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _bars(app, what, name, obj, options, lines):
    indented = None  # the indentation of a literal block
    for number, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if indented is not None and line.strip() and depth <= indented:
            indented = None
        if indented is None:
            lines[number] = _escaped(line)
            if line.rstrip().endswith("::"):
                indented = depth


def _short(app, what, name, obj, options, signature, returned):
    """Defaults that are made by a function as ``...``: ``<factory>`` is no Python, and Sphinx would then print the whole as it is."""
    return (signature.replace("<factory>", "...") if signature else signature), returned


def _escaped(line):
    """The line with its bars escaped, except in code."""
    parts, end = [], 0
    for code in _CODE.finditer(line):
        parts += [line[end : code.start()].replace("|", r"\|"), code[0]]
        end = code.end()
    return "".join([*parts, line[end:].replace("|", r"\|")])
