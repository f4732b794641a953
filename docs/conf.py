"""Sphinx: the chapters, the notebooks and the API pages as one site that reads without a network."""

import importlib
import inspect
import re
import shutil
from importlib.resources import files
from pathlib import Path

import llminfer
from llminfer.core.public_names import all_places, written_chapters

ARGUMENT = re.compile(r"[a-z_][a-z0-9_]*(, [a-z_][a-z0-9_]*)*: ")

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

# `make book` has executed the notebooks into this cache. What is missing there runs now; a failing cell ends the build.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent.parent / "_build" / "jupyter_cache")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

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


def _api_entry(module: str, name: str) -> str:
    """What autodoc is to say of a public name."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value):
        return f".. autoclass:: {module}.{name}\n   :members:\n"
    kind = "autofunction" if callable(value) else "autodata"
    return f".. {kind}:: {module}.{name}\n" + ("   :no-value:\n" if kind == "autodata" else "")


def _write_api_pages(app) -> None:
    """One page a chapter, from the table of sections in its package."""
    folder = Path(app.srcdir) / "docs" / "api"
    folder.mkdir(exist_ok=True)
    places = all_places()
    for number, chapter in written_chapters().items():
        lines = [f"# Chapter {number}: `{chapter.__name__}`", "", chapter.__doc__.strip(), ""]
        for section in chapter.SECTIONS:
            entries = [_api_entry(place.module, place.name) for place in places if place.section == section.number]
            lines += [f"## {section.number} {section.title}", "", "```{eval-rst}", *entries, "```", ""]
        (folder / f"{number}-{chapter.__name__.split('.')[-1]}.md").write_text("\n".join(lines), encoding="utf-8")


def _as_restructured_text(app, what, name, value, options, lines: list[str]) -> None:
    """Docstrings are written for the eye: "name: meaning" lines become a list, and | and * lose their power."""
    if what == "data":
        return lines.clear()  # the text there is that of the type, dict's or tuple's
    blocks = "\n".join(lines).strip().split("\n\n")
    lines[:] = _escaped("\n\n".join(_as_list(block) for block in blocks)).splitlines()


def _escaped(text: str) -> str:
    """`names` as literals; outside of them no character means more than itself."""
    parts = text.split("`")
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"``{part}``" + ("\\ " if parts[place + 1][:1].isalnum() else "")
        else:
            parts[place] = re.sub(r"(?<=\w)_(?!\w)|[|*]", r"\\\g<0>", part)
    return "".join(parts)


def _as_list(block: str) -> str:
    """A paragraph as it is, without indentation; one that starts with "name: meaning" as a list of such lines."""
    if not ARGUMENT.match(block):
        return "\n".join(line.strip() for line in block.splitlines())
    items: list[str] = []
    for line in block.splitlines():
        if ARGUMENT.match(line) or not items:
            items.append(f"- {line.strip()}")
        else:
            items.append(f"  {line.strip()}")
    return "\n".join(items)


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
    (Path(app.outdir) / "index.html").write_text(f"<!doctype html>{head}{link}\n", encoding="utf-8")


def setup(app) -> None:
    app.connect("config-inited", lambda app, _config: _write_api_pages(app))
    app.connect("autodoc-process-docstring", _as_restructured_text)
    app.connect("build-finished", _bundle_mathjax)
    app.connect("build-finished", _write_top_index)
