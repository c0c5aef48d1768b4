"""What is given to `explain` by a name that it does not have, and what is told while it works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.registry import options_of
from veridical.core.spec import base_name
from veridical.model.classifier import Classifier

ARGUMENTS = ("method", "target", "contrast", "context", "overlap", "budget", "device", "progress")  # of `explain`


def insist_on_options(specs: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse what is no method's option but nearly an argument of `explain` itself, with that one's name."""
    for key in options:
        near = get_close_matches(key, ARGUMENTS, n=1, cutoff=0.75)
        if near and not any(key in options_of(methods[base_name(spec)].run) for spec in specs):
            several = ", which may be a list of names" if near == ["method"] else ""
            raise InputError(f"explain takes no {key}=; write {near[0]}={several}.")


def told_of(clf: Classifier, methods: int) -> dict[str, Any]:
    """How a report names what is counted, and shows movement while one text takes long."""
    begun = clf.forwards
    return {
        "unit": "texts x methods" if methods > 1 else "texts",
        "moving": lambda: f"{clf.forwards - begun:,} passes through the model",
    }
