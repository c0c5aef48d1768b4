"""Who was audited by whom: the fingerprints, the command and the versions, as the page and the record show them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from veridical.audits.record import CorpusFacts, ModelFacts, Settings

UNKNOWN = "not kept: the audit is from before it was"
SHORT = 12  # digits of a fingerprint at a glance


class Identified(Protocol):
    """What has these fields: a summary, or a record."""

    @property
    def veridical(self) -> str: ...
    @property
    def model(self) -> ModelFacts: ...
    @property
    def corpora(self) -> tuple[CorpusFacts, ...]: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def stamp(self) -> Mapping[str, str | int | Mapping[str, str]]: ...


@dataclass(frozen=True)
class Fact:
    """Something that identifies an audit, in words or, as `code`, to the letter."""

    name: str
    words: str
    code: tuple[str, ...] = ()


def provenance(summary: Identified) -> tuple[Fact, ...]:
    """What was audited and by what, to the last digit."""
    return (*_model(summary), *map(_data, summary.corpora), *_code(summary))


def _model(summary: Identified) -> Iterator[Fact]:
    model = summary.model
    if model.hash is None:
        yield Fact("fingerprint of the model", UNKNOWN)
        return
    yield Fact("fingerprint of the model", "of its weights (BLAKE2b, 64 bits)", (model.hash,))
    if model.files:
        lines = tuple(f"{digest}  {name}" for name, digest in model.files.items())
        yield Fact("files of the model", "SHA-256", lines)


def _data(corpus: CorpusFacts) -> Fact:
    name = f"fingerprint of {corpus.name}"
    if corpus.sha256 is not None:
        words = f"of the {corpus.texts:,} texts that were drawn, with ids, labels and rationales (SHA-256)"
        return Fact(name, words, (corpus.sha256,))
    return Fact(name, UNKNOWN) if corpus.hash is None else Fact(name, "of its texts (32 bits)", (corpus.hash,))


def _code(summary: Identified) -> Iterator[Fact]:
    stamp = summary.stamp
    version = f"Veridical {summary.veridical}"
    if "code" in stamp:
        yield Fact("fingerprint of the code", f"{version}, its Python files (SHA-256)", (str(stamp["code"]),))
    else:
        yield Fact("fingerprint of the code", f"{version}; {UNKNOWN}")
    parts = stamp.get("with")
    if isinstance(parts, dict):
        yield Fact("parts of the user's own", "", tuple(f"{digest}  {name}" for name, digest in parts.items()))
    command = stamp.get("command")
    yield Fact("command", "" if command else UNKNOWN, (str(command),) if command else ())


def glance(summary: Identified) -> tuple[Fact, ...]:
    """The same in a line: the first digits, the seed and the version."""
    home = next((corpus for corpus in summary.corpora if corpus.role == "in"), summary.corpora[0])
    known = {"model": summary.model.hash, "data": home.sha256 or home.hash, "code": summary.stamp.get("code")}
    short = [Fact(name, "", (str(digest)[:SHORT],)) for name, digest in known.items() if digest]
    return (*short, Fact("seed", str(summary.settings.seed)), Fact("Veridical", summary.veridical))


def page_foot(summary: Identified, kind: str = "Veridical audit") -> str:
    """What stands at the foot of every printed page, inside a style sheet: only letters that end nothing there."""
    known = [f"{fact.name} {fact.code[0]}" for fact in glance(summary) if fact.code]
    return re.sub("[^0-9A-Za-z ,]", "", ", ".join([kind, *known]))
