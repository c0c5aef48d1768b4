"""A prompt around the text, held by the tokenizer: its tokens count as special ones, so that the text alone is
explained, erased and cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from veridical.core.errors import InputError
from veridical.core.readable import insist_on_characters, shown

FIELD = "{text}"
PLAIN = "the film"  # stands for a text where the tokens around one are looked for
# Texts as people write them, by which it is tried whether the tokens of prompt and text are those of the whole.
OPENINGS = ("A film", "the plot", "It's", "I'd say", "Not bad", '"Great"', "10 out", "Über", "(yes)", "...and", "— no")
ENDINGS = ("", ".", "!", "...", '"', " 7/10", ")", "?!")
SAMPLES = tuple(f"{first} of sorts{last}" for first, last in product(OPENINGS, ENDINGS))


@dataclass(frozen=True)
class Template:
    """The tokens before and after a text, and the token of each label as it follows them."""

    before: str
    after: str
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    labels: tuple[int, ...]


def insist_on_prompt(prompt: Any, labels: Any, *, chat: bool = False) -> None:
    """Refuse what cannot be a prompt with labels, before anything is loaded."""
    if not isinstance(prompt, str) or prompt.count(FIELD) != 1:
        raise InputError(f"prompt is {shown(prompt)}; it must be a text in which {FIELD} stands once.")
    insist_on_characters(prompt, "The prompt")
    if not chat and not prompt.partition(FIELD)[2]:  # a chat goes on with the assistant's turn
        raise InputError(
            f"prompt is {shown(prompt)}, and nothing follows {FIELD}; end it with words that a label answers, such as "
            f"'Review:\\n{FIELD}\\nSentiment:'."
        )
    usual = "{'negative': ' negative', 'positive': ' positive'}"
    named = isinstance(labels, Mapping) and all(
        isinstance(name, str) and name.strip() and isinstance(word, str) and word for name, word in labels.items()
    )
    if not named or len(labels) < 2:
        raise InputError(
            f"labels is {shown(labels)}; with a prompt it must name the word that stands for every class, of which "
            f"there are two or more, such as {usual}."
        )
    for name, word in labels.items():
        insist_on_characters(name, "A class in labels")
        insist_on_characters(word, "A word in labels")
    first: dict[str, str] = {}
    for name, word in labels.items():
        if word in first:
            raise InputError(
                f"The labels of {first[word]!r} and {name!r} are both {shown(word)}; every class needs a word of its "
                "own, so choose another for one of them."
            )
        first[word] = name


def as_chat(tokenizer: Any, prompt: str) -> str:
    """The prompt as the user's turn, up to where the assistant's begins."""
    if getattr(tokenizer, "chat_template", None) is None:
        raise InputError("This model's tokenizer has no chat template; leave chat out.")
    turns = [{"role": "user", "content": prompt}]
    written = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    if written.count(FIELD) != 1:
        raise InputError(f"The chat template does not keep {FIELD} as it stands; leave chat out.")
    return written


def template_of(tokenizer: Any, prompt: str, labels: Mapping[str, str]) -> Template:
    """The tokens of a prompt, as they stand around a plain text."""
    before, _, after = prompt.partition(FIELD)
    special = _special(tokenizer, before)
    if not after:
        raise InputError(f"Nothing follows {FIELD} in the chat that the template makes of the prompt; leave chat out.")
    prefix = tokenizer(before, add_special_tokens=False)["input_ids"] if before else []
    suffix = _suffix(tokenizer, before + PLAIN, after)
    words = tuple(_label(tokenizer, before + PLAIN + after, name, word) for name, word in labels.items())
    _insist_on_distinct(labels, words)
    return Template(before, after, (*special, *prefix), tuple(suffix), words)


def _suffix(tokenizer: Any, head: str, after: str) -> list[int]:
    """The tokens behind a text: as they stand there, since some tokenizers begin a text with a space of their own;
    where the text's last token reaches into them, those that they are alone."""
    raw = tokenizer(head + after, add_special_tokens=False, return_offsets_mapping=True)
    spans = raw["offset_mapping"]
    behind = [place for place, (start, end) in enumerate(spans) if end > len(head)]
    if spans[behind[0]][0] < len(head):
        return tokenizer(after, add_special_tokens=False)["input_ids"]
    return raw["input_ids"][behind[0] :]


def _special(tokenizer: Any, before: str) -> list[int]:
    """What the tokenizer puts before every text, unless the prompt says it itself; what it puts behind is left out,
    since the model is to go on from there."""
    raw = tokenizer(PLAIN, return_special_tokens_mask=True)
    first = raw["special_tokens_mask"].index(0)
    lead = raw["input_ids"][:first]
    written = "".join(tokenizer.convert_ids_to_tokens(lead))
    return [] if written and before.startswith(written) else lead


def _label(tokenizer: Any, whole: str, name: str, word: str) -> int:
    """The one token that a label is, behind the prompt."""
    alone, followed = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in (whole, whole + word))
    added = followed[len(alone) :]
    if followed[: len(alone)] != alone or not added:
        raise InputError(
            f"The label {shown(word)} of {name!r} is joined with the end of the prompt to other tokens; let the prompt "
            "end without a space, and the label begin with one."
        )
    if len(added) > 1:
        parts = ", ".join(repr(part) for part in tokenizer.convert_ids_to_tokens(added))
        raise InputError(
            f"The label {shown(word)} of {name!r} is {len(added)} tokens behind this prompt ({parts}), and only one "
            "token is a class of its own; choose a word that is one token, and mind the space before it."
        )
    return added[0]


def _insist_on_distinct(labels: Mapping[str, str], ids: Sequence[int]) -> None:
    """Words that differ may yet be one token, of a tokenizer that passes over what they differ in."""
    first: dict[int, str] = {}
    for name, token in zip(labels, ids, strict=True):
        if token in first:
            raise InputError(f"The labels of {first[token]!r} and {name!r} are the same token; choose others.")
        first[token] = name


def boundary(tokenizer: Any, template: Template, texts: Sequence[str] = SAMPLES) -> float:
    """The share of texts that have the same tokens within the prompt as by themselves. `tokenizer` is the model's
    own, without the prompt."""
    inner = template.prefix[len(template.prefix) - _length(tokenizer, template) :]
    same = 0
    for text in texts:
        whole, alone = (
            tokenizer(written, add_special_tokens=False)["input_ids"]
            for written in (template.before + text + template.after, text)
        )
        same += whole == [*inner, *alone, *template.suffix]
    return same / len(texts)


def _length(tokenizer: Any, template: Template) -> int:
    """Tokens of the prefix that the prompt itself says."""
    return len(template.prefix) - len(_special(tokenizer, template.before))


def with_template(tokenizer: Any, template: Template) -> Any:
    """A copy of the tokenizer that puts the prompt around every text. Saved and loaded it does so too: it is of the
    class that takes its file as it stands."""
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    pieces = [("P", template.prefix), ("S", template.suffix)]
    pieces = [(name, ids) for name, ids in pieces if ids]
    named = {name for name, _ in pieces}
    around = " ".join(part for part in ("P:0" if "P" in named else "", "$A:0", "S:0") if part)
    special = [
        {"id": name, "ids": list(ids), "tokens": [f"{name}{place}" for place in range(len(ids))]}
        for name, ids in pieces
    ]
    core.post_processor = TemplateProcessing(single=around, pair=f"{around} $B:0", special_tokens=special)
    names = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
    held = {name: getattr(tokenizer, name, None) for name in names}
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        model_max_length=tokenizer.model_max_length,
        padding_side="right",
        model_input_names=["input_ids", "attention_mask"],
        **{name: token for name, token in held.items() if token is not None},
    )
