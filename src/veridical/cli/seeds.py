"""One convention for seeds: `--seed` names them, `--seeds N` is the first N.

    --seed 3    --seed 0,1,2    --seed 0-4    --seeds 5 (0 to 4)    --seeds 0-4 (these, as they are named)

A verb with several seeds has an option for one of the two spellings; the other one is added here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from veridical.core.errors import InputError
from veridical.core.options import Help, Option
from veridical.core.readable import shown
from veridical.core.spec import MOST_SEEDS, listed, seeds_in

OTHER = "other_seeds"  # what the added option is called
NAMED, COUNTED = "--seed", "--seeds"


def other_spelling(options: Sequence[Option]) -> list[Option]:
    """The option that is added to a verb with several seeds."""
    seeds = next((option for option in options if option.name == "seeds" and not option.help.hidden), None)
    if seeds is None:
        return []
    if seeds.spelling == COUNTED:
        note = Help("The seeds by name instead: 3, 0,1,2 or 0-4.", "SEEDS", NAMED)
    else:
        note = Help("How many instead: the first N, from 0.", "N", COUNTED)
    return [Option(OTHER, Annotated[Sequence[str], note], note, None)]


def read_seeds(option: Option, typed: Mapping[str, Any]) -> Any:
    """The value of `seeds` from what was typed under either spelling."""
    others = NAMED if option.spelling == COUNTED else COUNTED
    if OTHER in typed and option.name in typed:
        raise InputError(f"{option.spelling} and {others} both say which seeds; leave one of them out.")
    spelling, given = (others, typed[OTHER]) if OTHER in typed else (option.spelling, typed[option.name])
    texts = [given] if isinstance(given, str) else list(given)
    if spelling == COUNTED and len(texts) == 1 and "".join(listed(texts)).isdecimal() and "," not in texts[0]:
        return _first(option, texts[0])
    seeds = option.help.reads(texts) if option.help.reads is not None else seeds_in(texts, spelling)
    option.check(seeds, spelling)
    return seeds


def _first(option: Option, text: str) -> Any:
    count = int(text) if len(text) < 10 else 0
    if not 1 <= count <= MOST_SEEDS:
        raise InputError(f"--seeds is {shown(text)}; it must be a number of seeds, 1 to {MOST_SEEDS:,}.")
    return tuple(range(count)) if option.item is not None else count
