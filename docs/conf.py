"""The site that `make docs` builds in build/docs: Sphinx over the Markdown pages as they are in the repository.

The repository is the source folder, so that README.md and CONTRIBUTING.md are pages and links between files are links
between pages. What only the site has is put in here, and the files stay readable without it: the navigation, and the
reference where api.md has a comment such as `<!-- api: explain, audit -->`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.errors import SphinxError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docstrings import prepare_docstring
from sphinx.util.typing import stringify_annotation

import veridical
from veridical.core.frames import Tabular
from veridical.core.kinds import without_notes

HERE = Path(__file__).parent
# What a user does first, before what we found. A page without a name here is called what its heading says.
NAVIGATION: Mapping[str, Mapping[str, str]] = {
    "Start": {"/README": "What it is, and how to get it"},
    "Tutorials": {f"tutorials/{notebook.stem}": "" for notebook in sorted(HERE.glob("tutorials/*.ipynb"))},
    "Use": {
        **{"cli": "Command line", "playground": "", "notebooks": "", "api": "", "data": "", "training": ""},
        **{"trainer": "", "prompted": "Prompted models, LoRA", "cluster": "Clusters", "options": "All options"},
    },
    "What is measured": {
        **{"methods": "Methods", "metrics": "", "statistics": "Statistics"},
        **{"shortcuts": "Shortcuts", "decomposition": "Decompositions", "decoders": ""},
    },
    "What we found": {
        **{
            "scorecard": "The scorecard",
            "validation": "",
            "explanation-regularisation": "Explanation regularisation",
            "regex": "REGEX",
        },
        **{"saloss": "SaLoss", "recursive-roar": "Recursive ROAR", "fresh": "FRESH"},
        **{"measurable": "Measurable models"},
        **{"soft-faithfulness": "Soft erasure", "benchmarks": ""},
    },
    "Take part": {"/CONTRIBUTING": "", "/CHANGELOG": ""},
}
MADE_BY_USERS = {"Classifier", "Dataset", "Example", "FaithfulnessCallback", "TrainConfig", "VeridicalTrainer"}
HOOKED = {"FaithfulnessCallback", "VeridicalTrainer"}  # transformers calls their methods, users do not

project = "Veridical"
release = version = veridical.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

root_doc = "docs/index"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/tutorials/*.ipynb"]
exclude_patterns = [".*", "*.egg-info", "benchmarks", "build", "demo", "dist", "recipes", "runs", "src", "tests"]
smartquotes = False  # what is shown is what is typed
default_role = "code"  # docstrings have single backticks around code

myst_heading_anchors = 4
nb_execution_mode = "off"  # the tutorials hold their outputs
nb_merge_streams = True

autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_typehints_description_target = "documented_params"  # a record's fields are told once
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"Veridical {release}"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_extra_path = ["site/root"]  # index.html, which leads to docs/index.html
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
nb_ipywidgets_js: Mapping[str, Any] = {}  # it would be fetched from elsewhere


def setup(app: Any) -> None:
    app.connect("source-read", _completed)
    app.connect("autodoc-process-docstring", _with_fields, priority=400)  # before napoleon reads it
    app.connect("autodoc-process-docstring", _with_returns, priority=400)
    app.connect("autodoc-process-docstring", _as_written, priority=600)  # after it
    app.connect("doctree-read", _worded)
    app.connect("build-finished", _insist_on_own_files)


# -- pages ---------------------------------------------------------------------------------------------------


def _completed(app: Any, page: str, source: list[str]) -> None:
    """A page with what only the site has."""
    if page == root_doc:
        source[0] += "".join(_toctree(caption, pages) for caption, pages in NAVIGATION.items() if pages)
    if page == "docs/api":
        source[0] = re.sub(r"<!-- api: (.+?) -->", lambda found: _reference(found[1].split(", ")), source[0])


def _toctree(caption: str, pages: Mapping[str, str]) -> str:
    entries = (f"{name} <{page}>" if name else page for page, name in pages.items())
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""])


def _worded(app: Any, tree: nodes.document) -> None:
    """Sphinx's words in the reference, in ours."""
    for text in list(tree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.field_name) and text == "Variables":
            text.parent.replace(text, nodes.Text("Fields"))
        if text == " -- ":
            text.parent.replace(text, nodes.Text(": "))


def _insist_on_own_files(app: Any, failed: Exception | None) -> None:
    """No page may load anything from elsewhere: not from the theme, and not from what a notebook displays."""
    loads = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^>]*>|@import\b""")
    for page in sorted(Path(app.outdir).rglob("*.html")) if failed is None else ():
        found = loads.search(page.read_text(encoding="utf-8"))
        if found is not None:
            raise SphinxError(f"{page} would load something from elsewhere: {found[0]}")


# -- functions -----------------------------------------------------------------------------------------------


def _reference(names: list[str]) -> str:
    return "\n".join(["```{eval-rst}", *(line for name in names for line in _directive(name)), "```"])


def _directive(name: str) -> list[str]:
    public = getattr(veridical, name)
    if not inspect.isclass(public):
        _simplify(public)
        return [f".. autofunction:: veridical.{name}", ""]
    kind = "exception" if issubclass(public, Exception) else "class"
    signature = "" if name in MADE_BY_USERS else "()"
    inherited = ["   :inherited-members: list, dict"] if issubclass(public, Tabular) else []
    members = [] if name in HOOKED else ["   :members:", *inherited]
    return [f".. auto{kind}:: veridical.{name}{signature}", *members, ""]


def _simplify(function: Any) -> None:
    """One signature for all overloads, which leave most arguments out, and types in place of their names."""
    analyzer = ModuleAnalyzer.for_module(function.__module__)
    analyzer.analyze()
    analyzer.overloads.clear()
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError:  # of a type that is imported for type checkers only
        signature = inspect.signature(function)
    parameters = [one.replace(annotation=without_notes(one.annotation)) for one in signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=parameters)
    function.__annotations__ |= {one.name: one.annotation for one in parameters if one.name in function.__annotations__}


def _with_returns(app: Any, what: str, name: str, public: Any, options: Any, lines: list[str]) -> None:
    """What a function returns as a field: napoleon would take what stands before a colon for its type."""
    if what == "function" and "Returns:" in lines:
        place = lines.index("Returns:")
        lines[place : place + 2] = [f":returns: {lines[place + 1].strip()}"]


# -- records -------------------------------------------------------------------------------------------------


def _with_fields(app: Any, what: str, name: str, public: Any, options: Any, lines: list[str]) -> None:
    """A record's docstring with its fields, told by the comments beside them."""
    if what == "class" and dataclasses.is_dataclass(public):
        told = {field: comment for kind in reversed(inspect.getmro(public)) for field, comment in _comments(kind)}
        types = _types(public)
        rows = [f"    {name} ({kind}): {told.get(name, '')}".rstrip() for name, kind in types.items()]
        lines[:] = [*lines, "", "Attributes:", *rows, ""]


def _types(record: type) -> dict[str, str]:
    """Each field of a record with its type, as short as it can be said."""
    try:
        hints = typing.get_type_hints(record)
    except NameError:  # of a type that is imported for type checkers only
        hints = {}
    return {
        field.name: stringify_annotation(hints[field.name], "smart", short_literals=True) if hints else str(field.type)
        for field in dataclasses.fields(record)
    }


def _comments(kind: type) -> Iterator[tuple[str, str]]:
    """Each field of a record with the comment behind it, if it has one."""
    if not dataclasses.is_dataclass(kind):
        return
    field = ""
    for line in inspect.getsource(kind).splitlines():
        found = re.match(r"    (?:(\w+): [^#]*|\)) *(?:# (.*))?$", line)
        if found is not None:
            field = found[1] or field
            if found[2]:
                yield field, found[2]


def _as_written(app: Any, what: str, name: str, public: Any, options: Any, lines: list[str]) -> None:
    """Of a property napoleon takes what stands before a colon for its type."""
    if what == "property":
        lines[:] = prepare_docstring(inspect.getdoc(public) or "")
