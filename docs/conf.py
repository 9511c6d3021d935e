"""The documentation site. ``make docs`` builds it, offline; the source folder is the whole checkout, so that links between pages,
measurements and the changelog are the same here and in the repository."""

import os
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site"))  # the small extensions below

import elsewhere  # noqa: E402
import numpy  # noqa: E402
import reference  # noqa: E402

import allocopt  # noqa: E402
import allocopt.base.validation as validation  # noqa: E402

validation.Array = validation.IntArray = numpy.ndarray  # signatures say `ndarray`, not what its entries are made of
# public modules by the name that users write: `allocopt.graphs` is allocopt/actions/graphs.py
for name in allocopt._MODULES:
    sys.modules[f"allocopt.{name}"] = getattr(allocopt, name)
# what a module loads for type checkers alone (its maker is above it), so that its signatures have links
allocopt.policies.Player.__init__.__globals__.update(Policy=allocopt.policies.Policy, Setting=allocopt.policies.Setting)

project = "allocopt"
author = "The allocopt developers"
copyright = "The allocopt developers"
release = version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

suppress_warnings = ["myst.header"]  # generated pages and measurements begin where they begin
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "mathml",
    "docstrings",
    "pages",
    "commands",
]

# pages: the folder docs/, what was measured, and what the project says of itself
root_doc = "docs/index"
include_patterns = ["docs/**", "benchmarks/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [
    ".*", "**/.*", "allocopt", "benchmarks/*/**", "build", "dist", "docs/gallery", "docs/generated/gallery/**.ipynb",
    "docs/generated/gallery/**.py", "docs/site", "solvers", "tests", "**/__pycache__", "*.egg-info",
]  # fmt: skip
templates_path = [str(ROOT / "docs" / "site" / "templates")]

# Markdown and notebooks
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# a kernel of these notebooks talks to this process alone; that it does so over TCP need not be said each time
kernel_settings = Path(tempfile.mkdtemp(prefix="allocopt-docs-")) / "profile_default"
kernel_settings.mkdir()
(kernel_settings / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 'ERROR'\n", encoding="utf-8")
os.environ.setdefault("IPYTHONDIR", str(kernel_settings.parent))
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # where nothing is compiled yet, allocopt says that it compiles

# the reference
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "py:obj"
python_use_unqualified_type_names = True
toc_object_entries = False

# names of other projects: a table of this folder is made an inventory, so that no build asks the network
intersphinx_mapping = elsewhere.mapping(ROOT / "build" / "inventories")

reference.write(ROOT)

# the gallery
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "docs" / "gallery"),
    "gallery_dirs": str(ROOT / "docs" / "generated" / "gallery"),
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("figures",),
    "reset_modules": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "thumbnail_size": (400, 280),
    "doc_module": ("allocopt",),
    "backreferences_dir": "docs/generated/examples-of",
    "write_computation_times": False,
}

# how it looks
html_theme = "pydata_sphinx_theme"
html_title = "allocopt"
html_static_path = ["site/static"]
html_css_files = ["allocopt.css"]
html_extra_path = ["site/root"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "allocopt"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"docs/index": [], "CHANGELOG": [], "CONTRIBUTING": []}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
