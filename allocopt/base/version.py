"""The version, where every room can read it, and how to cite it."""

import time

__version__ = "0.1.0"
LOADED_AT = time.time()
"""When this process began to load allocopt: sources that are younger are not what it runs."""


def bibtex() -> str:
    """BibTeX entries for a paper: of allocopt, and of the paper whose lower bound and algorithm it computes.

    Examples
    --------
    >>> print(bibtex())  # doctest: +ELLIPSIS
    @software{allocopt,
      title = {allocopt: certified optimal allocations in linear bandits},
    ...
    """
    return f"""@software{{allocopt,
  title = {{allocopt: certified optimal allocations in linear bandits}},
  author = {{{{The allocopt developers}}}},
  version = {{{__version__}}},
  year = {{2026}},
}}

@inproceedings{{lattimore2017end,
  title = {{The End of Optimism? An Asymptotic Analysis of Finite-Armed Linear Bandits}},
  author = {{Lattimore, Tor and Szepesv{{\\'a}}ri, Csaba}},
  booktitle = {{Proceedings of the 20th International Conference on Artificial Intelligence and Statistics}},
  series = {{Proceedings of Machine Learning Research}},
  volume = {{54}},
  pages = {{728--737}},
  year = {{2017}},
}}
"""
