"""What a shell offers when Tab is pressed: names of methods, metrics, datasets, terms and models, and allowed words.

It has to answer at once, so nothing that takes seconds is imported: names are read from the files that register them.
Where nothing fits, shells offer files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from veridical.core.options import Checked, Option
from veridical.core.spec import Spec

DECORATORS = {  # rooms of registered things, and what registers them
    "veridical.attribution": "method",
    "veridical.metric": "metric",
    "veridical.training.term": "term",
}
WORDS = {  # of options that take more than these
    "device": ("cpu", "cuda", "mps", "auto"),
    "target": ("predicted", "gold"),
    "contrast": ("second",),
}


def completion(option: Option) -> Callable[[str], list[str]] | None:
    """What completes an option's value; nothing for one that may be anything."""
    if not option.words and not option.notes and not option.help.keys and option.name not in WORDS:
        return None

    def complete(incomplete: str) -> list[str]:
        # Of several values, the last one is completed.
        several = option.help.commas and (option.item is not None or option.name == "objective")
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        names = _options(option, last) if ":" in last else _names(option)
        return [f"{before}{comma}{name}" for name in sorted(set(names)) if name.startswith(last)]

    return complete


def _options(option: Option, spec: str) -> Iterable[str]:
    """`lime:samples=` and its like, for a method, metric or term with its options behind it."""
    from veridical.core.registry import declared, declared_options

    name, before = Spec.read(spec).head[0], spec[: spec.rindex(":")]  # behind the last colon it is still typed
    for note in option.notes:
        modules = declared(note.module, DECORATORS[note.module])[0] if note.module in DECORATORS else {}
        if name in modules:
            known = declared_options(modules[name], DECORATORS[note.module], name)
            yield from (f"{before}:{key}=" for key in known or ())


def _names(option: Option) -> Iterable[str]:
    if option.help.keys:
        return option.help.keys
    if option.name in WORDS:
        return WORDS[option.name]
    return [*map(str, option.words), *(name for note in option.notes for name in _known(note))]


def _known(note: Checked) -> Iterable[str]:
    """The names that the room which checks a value knows."""
    from veridical.core.registry import declared

    if note.module in DECORATORS:
        return declared(note.module, DECORATORS[note.module])[0]
    if note.module == "veridical.data":  # some are made of a table: that room imports nothing that takes long
        from veridical.core.assets import ASSETS
        from veridical.data import datasets

        return [*(source.name for source in datasets), *(ASSETS if note.function == "insist_on_fetchable" else ())]
    if note.module == "veridical.model.names":
        from veridical.model.names import ENCODERS

        return [*ENCODERS, "bilstm"]
    return ()
