"""What a shell offers when Tab is pressed: names of methods, metrics, datasets, terms and models, and allowed words.

It has to answer at once, so nothing that takes seconds is imported: names are read from the files that register them.
Where nothing fits, shells offer files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from veridical.core.options import Checked, Option

DECORATORS = {  # rooms of registered things, and what registers them
    "veridical.attribution": "method",
    "veridical.metric": "metric",
    "veridical.training.term": "term",
}
DEVICES = ("cpu", "cuda", "mps", "auto")


def completion(option: Option) -> Callable[[str], list[str]] | None:
    """What completes an option's value; nothing for one that may be anything."""
    if not option.words and not option.notes and option.name != "device":
        return None

    def complete(incomplete: str) -> list[str]:
        # Of several values, the last one is completed.
        several = option.help.commas and (option.item is not None or option.name == "objective")
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in sorted(set(_names(option))) if name.startswith(last)]

    return complete


def _names(option: Option) -> Iterable[str]:
    if option.name == "device":
        return DEVICES
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
