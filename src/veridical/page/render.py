"""Self-contained HTML pages: everything inline, nothing fetched, every text escaped, no script but a page's own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("veridical", ""),
        autoescape=True,
        undefined=StrictUndefined,  # a value a template misses is an error, not a blank
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **values: Any) -> str:
    """A page from a template, named by its room and file: `audits/audit.html`."""
    return _environment().get_template(template).render(**values)
