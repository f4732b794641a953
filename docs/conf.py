"""Sphinx: the chapters, the notebooks and the API pages as one site that reads without a network."""

import shutil
from importlib.resources import files
from pathlib import Path

import llminfer

project = "llminfer"
author = "The llminfer authors"
copyright = "2026, the llminfer authors. Text: CC BY 4.0. Code: Apache-2.0"
version = release = llminfer.__version__

root_doc = "docs/index"
include_patterns = ["chapters/**", "notebooks/**", "docs/**"]
exclude_patterns = ["**/.ipynb_checkpoints", "docs/results/**", "_build"]
templates_path = []

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# `make book` has executed the notebooks into this cache; what is missing there runs now, and a failing cell ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent.parent / "_build" / "jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

default_role = "code"  # docstrings write `names` as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True

html_theme = "sphinx_book_theme"
html_title = "llminfer"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_copy_source = False
html_theme_options = {
    "show_toc_level": 2,
    "home_page_in_toc": True,
    "use_download_button": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
mathjax_path = "mathjax/tex-svg-full.js"  # one file, glyphs as paths: no web fonts, no network


def _bundle_mathjax(app, _exception=None) -> None:
    """Copy MathJax from its Python package into the site."""
    source = Path(str(files("mathjax"))) / "static" / "mathjax" / "es5" / "tex-svg-full.js"
    target = Path(app.outdir) / "_static" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


def _write_top_index(app, _exception=None) -> None:
    """The site's front page lies in docs/; a reader opens index.html at the top."""
    head = '<meta charset="utf-8"><title>llminfer</title><meta http-equiv="refresh" content="0; url=docs/index.html">'
    link = '<a href="docs/index.html">llminfer</a>'
    (Path(app.outdir) / "index.html").write_text(f"<!doctype html>{head}{link}\n")


def setup(app) -> None:
    app.connect("build-finished", _bundle_mathjax)
    app.connect("build-finished", _write_top_index)
