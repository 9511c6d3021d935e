"""Where names of other projects are documented: a table, written as Sphinx inventories when the site is built.

Inventories are usually fetched; a build of these pages needs no network, so that the few names that they use are listed here.
"""

import zlib

_NAMES = {
    "python": (
        "https://docs.python.org/3/",
        {
            "pathlib.Path": ("class", "library/pathlib.html"),
            "os.PathLike": ("class", "library/os.html"),
            "fractions.Fraction": ("class", "library/fractions.html"),
            "collections.abc.Callable": ("class", "library/collections.abc.html"),
            "collections.abc.Iterable": ("class", "library/collections.abc.html"),
            "collections.abc.Iterator": ("class", "library/collections.abc.html"),
            "collections.abc.Mapping": ("class", "library/collections.abc.html"),
            "collections.abc.Sequence": ("class", "library/collections.abc.html"),
            "typing.Any": ("data", "library/typing.html"),
            "bool": ("class", "library/functions.html"),
            "bytes": ("class", "library/stdtypes.html"),
            "dict": ("class", "library/stdtypes.html"),
            "float": ("class", "library/functions.html"),
            "int": ("class", "library/functions.html"),
            "list": ("class", "library/stdtypes.html"),
            "str": ("class", "library/stdtypes.html"),
            "tuple": ("class", "library/stdtypes.html"),
            "KeyboardInterrupt": ("exception", "library/exceptions.html"),
            "RuntimeError": ("exception", "library/exceptions.html"),
            "ValueError": ("exception", "library/exceptions.html"),
        },
    ),
    "numpy": (
        "https://numpy.org/doc/stable/",
        {
            "numpy.ndarray": ("class", "reference/generated/numpy.ndarray.html"),
            "numpy.float64": ("class", "reference/arrays.scalars.html"),
            "numpy.memmap": ("class", "reference/generated/numpy.memmap.html"),
            "numpy.random.Generator": ("class", "reference/random/generator.html"),
            "numpy.typing.ArrayLike": ("data", "reference/typing.html"),
        },
    ),
    "matplotlib": (
        "https://matplotlib.org/stable/",
        {
            "matplotlib.axes.Axes": ("class", "api/_as_gen/matplotlib.axes.Axes.html"),
            "matplotlib.figure.Figure": ("class", "api/_as_gen/matplotlib.figure.Figure.html"),
        },
    ),
    "networkx": (
        "https://networkx.org/documentation/stable/",
        {
            "networkx.DiGraph": ("class", "reference/classes/digraph.html"),
            "networkx.Graph": ("class", "reference/classes/graph.html"),
        },
    ),
}


def mapping(folder):
    """Write the inventories into a folder; Sphinx's ``intersphinx_mapping`` for them."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for project, (address, names) in _NAMES.items():
        rows = [f"{name} py:{kind} 1 {page}#$ -\n" for name, (kind, page) in names.items()]
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: stable\n"
        head += "# The remainder of this file is compressed using zlib.\n"
        path = folder / f"{project}.inv"
        path.write_bytes(head.encode() + zlib.compress("".join(rows).encode()))
        found[project] = (address, str(path))
    return found
