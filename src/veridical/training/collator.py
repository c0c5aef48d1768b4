"""Encodings from token ids alone, and the collator that carries them beside a batch of the user's own trainer.

A dataset that was tokenised elsewhere holds ids and no text. That is enough for the terms: which tokens are the text's
own is told by the tokenizer's template, and a text to name in errors and to look words up in is spelt from the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.core.seed import seed_of
from veridical.core.text import align, trim

CARRIED = "veridical"  # the key of the encodings in a batch
EXTRA = ("special_tokens_mask", "rationale")  # columns that are ours to read and nothing to the model


class Carrier:
    """A data collator around another: what that one returns, with the encodings of its rows under `veridical`.

    Of a row it reads `input_ids` and, where there are, `attention_mask` (padding is left out), `token_type_ids`,
    `special_tokens_mask`, and `rationale`: 0 or 1 for each token. Of a pair the part numbered `segment` (0 or 1) is the
    text, the other its context.
    """

    def __init__(self, tokenizer: Any, inner: Callable[[list[Any]], Any] | None = None, *, segment: Literal[0, 1] = 0):
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"Encodings are made with a fast tokenizer, and this is {type(tokenizer).__name__}; pass the one that "
                "made the ids (processing_class=AutoTokenizer.from_pretrained(...))."
            )
        if segment not in (0, 1):
            raise InputError(f"segment is {segment!r}; it is 0 or 1, the part of a pair that is explained.")
        if inner is None:
            from transformers import DataCollatorWithPadding

            inner = DataCollatorWithPadding(tokenizer)
        self.tokenizer, self.inner, self.segment = tokenizer, inner, segment
        sample = tokenizer("a", "a", return_special_tokens_mask=True)
        added = zip(sample["input_ids"], sample["special_tokens_mask"], strict=True)
        # What the template adds. An unknown word or a mask is a special token too, but stands for text.
        self.template = frozenset(i for i, special in added if special) | {tokenizer.pad_token_id}
        self._spelt: dict[tuple[str | None, str], str] = {}

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        plain = [{key: value for key, value in row.items() if key not in EXTRA} for row in rows]
        return {**self.inner(plain), CARRIED: tuple(self.encode(row) for row in rows)}

    def encode(self, row: Mapping[str, Any]) -> Encoded:
        """The encoding of one row of a tokenised dataset."""
        if "input_ids" not in row:
            raise InputError(
                f"A row of the dataset has no input_ids (it has: {', '.join(row)}); tokenise the dataset first."
            )
        attended = _list(row.get("attention_mask", [1] * len(row["input_ids"])))
        length = sum(attended)
        if attended[:length] != [1] * length:
            raise InputError("A row is padded on the left; set tokenizer.padding_side='right', as classifiers read it.")
        ids = _list(row["input_ids"])[:length]
        free = self._free(ids, row)
        if not any(free):
            raise InputError(f"A row holds no text, only special tokens ({ids}); leave it out of the dataset.")
        text, spans = self._spell(ids, free)
        words = iter(align(text, [span for span, own in zip(spans, free, strict=True) if own]))
        rationale = _list(row.get("rationale", []))[:length]
        if rationale and not (len(rationale) == length and set(rationale) <= {0, 1}):
            raise InputError(
                f"The rationale of a row of {length} tokens has {len(rationale)} entries; give 0 or 1 for each token."
            )
        return Encoded(
            example=Example(
                id=f"{seed_of(*ids):016x}",  # by what it holds: the same row is the same example wherever it stands
                text=text,
                rationale=tuple(span for span, mark, own in zip(spans, rationale, free, strict=False) if mark and own),
            ),
            ids=tuple(ids),
            types=tuple(_list(row.get("token_type_ids", [0] * length))[:length]),
            spans=tuple(spans),
            words=tuple(next(words) if own else -1 for own in free),
            free=tuple(free),
        )

    def _free(self, ids: Sequence[int], row: Mapping[str, Any]) -> list[bool]:
        """The tokens of the explained part: the first or second run of tokens that the template did not add."""
        special = [i in self.template for i in ids]
        if "special_tokens_mask" in row:
            special = [bool(mark) for mark in _list(row["special_tokens_mask"])[: len(ids)]]
        part, parts = -1, []
        for index, is_special in enumerate(special):
            part += not is_special and (index == 0 or special[index - 1])
            parts.append(part)
        wanted = min(self.segment, part)  # a single text has no second part
        return [not is_special and own == wanted for is_special, own in zip(special, parts, strict=True)]

    def _spell(self, ids: Sequence[int], free: Sequence[bool]) -> tuple[str, list[tuple[int, int]]]:
        """A text in the tokenizer's own spelling, and where each token stands in it; (0, 0) off the text."""
        text, spans, before = "", [], None
        for token, own in zip(self.tokenizer.convert_ids_to_tokens(list(ids)), free, strict=True):
            if not own:
                spans.append((0, 0))
                continue
            start = len(text)
            text += self._adds(before, token)
            spans.append((start, len(text)))
            before = token
        return text, [trim(text, span) for span in spans]

    def _adds(self, before: str | None, token: str) -> str:
        """What a token adds to the one before it, the space between them included."""
        key = (before, token)
        if key not in self._spelt:
            decode = self.tokenizer.convert_tokens_to_string
            self._spelt[key] = decode([token]) if before is None else decode([before, token])[len(decode([before])) :]
        return self._spelt[key]


def _list(values: Any) -> list[Any]:
    """A column's value as plain numbers: datasets give lists, arrays or tensors."""
    return values.tolist() if hasattr(values, "tolist") else list(values)
