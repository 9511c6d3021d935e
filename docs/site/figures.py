"""Figures for the gallery: those that an example binds to a name, as allocopt's do not belong to pyplot."""

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

_drawn: set[int] = set()


def _get_sg_image_scraper():
    return scraper


def scraper(block, block_vars, gallery_conf):
    """Save every Figure that this block made (sphinx-gallery's interface for image scrapers)."""
    found = [value for value in block_vars["example_globals"].values() if isinstance(value, Figure)]
    paths = []
    for figure in dict.fromkeys(found):
        if id(figure) not in _drawn:
            _drawn.add(id(figure))
            path = next(block_vars["image_path_iterator"])
            figure.savefig(path, dpi=180)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])
