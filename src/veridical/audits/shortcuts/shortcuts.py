"""Which words a model relies on: those that believed explanations point to across a corpus, class by class, and what
the model does when they are erased wherever they stand.

    AUDIT/shortcuts/spec.json                  of which audit
    AUDIT/shortcuts/shortcuts.json words.csv   what was found (record.py); every word in every class
    AUDIT/shortcuts/explained/                 explanations beyond those of the audit, where more texts were asked for
    AUDIT/report.html                          the audit's page, with a section on it

A word that matters is not by itself a shortcut. `flagged` is a word that stands out (standing.py); a *candidate* one
that the model relies on besides (erasing.py) and that is no part of what is marked in the data as deciding. Where the
data was made by a rule that is known, a word beside the rule is a shortcut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from veridical.attribution import methods as registered
from veridical.audits import likeness
from veridical.audits.corpora import corpora_of, insist_on_split
from veridical.audits.evaluate import evaluate
from veridical.audits.finished import ranking
from veridical.audits.options import PART, ShortcutsOptions
from veridical.audits.oracles import ORACLES
from veridical.audits.record import SUMMARY, AuditSummary, read_examples, read_summary
from veridical.audits.shortcuts import telling
from veridical.audits.shortcuts.corpus import Said, read, said_of
from veridical.audits.shortcuts.erasing import before
from veridical.audits.shortcuts.record import (
    FILE,
    FOLDER,
    WORDS,
    Shortcuts,
    WordRow,
)
from veridical.audits.shortcuts.singled_out import Work, flagged_words, leads_among
from veridical.audits.shortcuts.standing import standings
from veridical.audits.sources import read_sources
from veridical.core import store, stored, tables
from veridical.core.errors import InputError, unknown
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.readable import shown_path
from veridical.core.records import Dataset, Example
from veridical.core.spec import base_name
from veridical.core.wording import option
from veridical.data import load_data
from veridical.grid.claim import claimed
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of

Key = tuple[str, str]  # a text's id and wording


@takes(ShortcutsOptions)
def shortcuts(options: ShortcutsOptions) -> Shortcuts:
    """Which words the model of a finished audit relies on, from the explanations that the audit believes.

    Words are looked at on the audit's own domain. Without `out` the result lies in the audit's folder, and its page has
    a section on it.

    Returns:
        Every word in every class (`.words`, and `.to_pandas()`), those that stand out (`.flagged`), those of them that
        may be shortcuts (`.candidates`), and all of it in a sentence (`.sentence`). It displays itself in a notebook.

    Example:
        >>> found = veridical.shortcuts("audit")
        >>> [flagged.word for flagged in found.candidates]
    """
    folder = Path(options.audit)
    insist_on_audit(folder)
    summary = read_summary(folder)
    home = summary.corpora[0].name
    on_file = likeness.stored(folder / "corpora" / store.slug(home) / "attributions")
    names = _methods(folder, summary, on_file, options)
    sources = read_sources(folder)
    given = _given(options.data, sources.data, "data", folder)
    data = load_data(given)
    insist_on_split(data, summary.settings.split)
    clf = classifier_of(_given(options.model, sources.model, "model", folder))
    _insist_on_model(clf, summary, folder)
    texts = _texts(clf, data, summary, on_file[names[0]])
    place = folder / FOLDER if options.out is None else Path(options.out)
    # Only what else lies there must be of: with other options the same explanations are looked at anew.
    with claimed(place, {"shortcuts": {"model": clf.fingerprint(), "texts": summary.corpora[0].hash}}):
        work = Work(clf, data, texts, summary, names, options, place)
        found = _found(work, {name: on_file[name] for name in names})
        _write(found, place)
        if options.out is None:
            write_page(folder, summary)
    return found


# -- what is asked for --------------------------------------------------------------------------------------


def insist_on_audit(folder: str | Path) -> None:
    if not os.path.isfile(os.path.join(folder, SUMMARY)):  # which is content with any name
        raise InputError(f"{shown_path(folder)} has no {SUMMARY}; name the folder of a finished audit.")


def _methods(
    folder: Path, summary: AuditSummary, on_file: Mapping[str, likeness.Readings], options: ShortcutsOptions
) -> list[str]:
    """Those that were named, or those that the verdict at home believes, or the first that beats chance: an audit
    refuses a verdict on a model that is no better than guessing, which a model that learnt a shortcut may well be where
    the shortcut does not hold. What is told says so."""
    known = [name for name in on_file if name not in ORACLES and base_name(name) != "random"]
    if not known:
        raise InputError(f"{shown_path(folder)} holds no explanations; run the audit again, which keeps them.")
    verdict = next((said for said in summary.verdicts if said.corpus == summary.corpora[0].name), None)
    if options.methods is not None:
        names = [choice.label for choice in registered.choose_all(options.methods)]
    elif verdict is not None and verdict.believe:
        names = [*verdict.believe, *(verdict.as_good if options.as_good else ())]
    elif first := [row.method for row in ranking(summary) if row.better_than_chance and row.method in known]:
        names = first[:1]
    else:
        raise InputError(
            f"The audit in {shown_path(folder)} shows no method to be better than chance, so nothing says whose words "
            f"to read; name one by {option('methods=NAME', '--method NAME')}. On file: {', '.join(known)}."
        )
    for name in names:
        if name not in on_file:
            raise unknown("explanation on file by", name, known)
    return list(dict.fromkeys(names))


def _given(said: Any, known: str | None, what: str, folder: Path) -> Any:
    if said is None and known is None:
        raise InputError(
            f"{shown_path(folder)} does not say where the {what} of its audit lies; name it by "
            f"{option(f'{what}={what.upper()}')}."
        )
    return known if said is None else said


def _insist_on_model(clf: Classifier, summary: AuditSummary, folder: Path) -> None:
    if summary.model.hash is not None and clf.fingerprint() != summary.model.hash:
        raise InputError(
            f"The model {clf.name} has other weights than the one that {shown_path(folder)} is an audit of; name that "
            f"one by {option('model=MODEL')}, or audit this one."
        )


def _texts(clf: Classifier, data: Dataset, summary: AuditSummary, readings: likeness.Readings) -> list[Example]:
    """All texts of the audit's split: those that it explained first, in its order."""
    how = {"split": summary.settings.split, "seed": summary.settings.seed, "limit": None}
    (corpus,) = corpora_of(clf, data, (), **how)
    examples = {(example.id, example.text): example for example in corpus.examples}
    if missing := [key for key in readings if key not in examples]:
        raise InputError(
            f"{data.name} ({summary.settings.split}) has no text {missing[0][0]!r} as the audit explained it; name the "
            f"data that was audited by {option('data=DATA')}."
        )
    return [examples[key] for key in readings] + [examples[key] for key in examples if key not in readings]


# -- what is found ------------------------------------------------------------------------------------------


def _found(work: Work, on_file: Mapping[str, likeness.Readings]) -> Shortcuts:
    options, summary = work.options, work.summary
    with Report("Looking for shortcuts", len(work.methods) + 1, progress=options.progress) as report:
        said = _said(work, on_file, report.say)
        rows: list[WordRow] = []
        for name in work.methods:
            rows += _rows(work, name, said[name])
            report.advance(name)
        known = before(
            work.clf,
            [read(encoded) for encoded in work.clf.encode(work.examples[: options.limit])],
            budget=options.budget,
        )
        flagged, together = flagged_words(work, rows, known)
        leads = leads_among(work, rows, known)
        report.advance("erasing")
    first = said[work.methods[0]]
    counts: dict[str, int] = {}
    for text in first.values():
        for word in set(text.words):
            counts[word] = counts.get(word, 0) + 1
    verdict = summary.verdicts[0]
    plain = Shortcuts(
        title=summary.title,
        corpus=summary.corpora[0].name,
        split=summary.settings.split,
        planted=base_name(summary.corpora[0].name) == "planted",
        methods=tuple(work.methods),
        believed=set(work.methods) <= {*verdict.believe, *verdict.as_good},
        texts=len(first),
        silent=sum(not np.abs(text.scores).sum() > 0 for of_method in said.values() for text in of_method.values()),
        looked_at=len({row.word for row in rows}),
        rare=len(counts) - len({row.word for row in rows}),
        min_texts=options.min_texts,
        alpha=options.alpha,
        permutations=options.permutations,
        by=options.by or summary.settings.by,
        seed=options.seed,
        erased_in=len(known.texts),
        sentence="",
        notes=(),
        words=tuple(rows),
        flagged=flagged,
        together=together,
        leads=leads,
    )
    return telling.told(plain)


def _said(
    work: Work, on_file: Mapping[str, likeness.Readings], say: Callable[[str], None]
) -> dict[str, dict[Key, Said]]:
    """By method what it says of every text; of texts beyond those on file it is asked now."""
    said = {name: said_of(readings) for name, readings in on_file.items()}
    there = len(on_file[work.methods[0]])
    more = min(work.options.texts or 0, len(work.examples)) - there
    if more <= 0:
        return said
    say(f"{more} texts beyond the {there} on file are explained by {', '.join(work.methods)}.")
    settings, rest = work.summary.settings, work.examples[there:]
    evaluation = evaluate(
        work.clf,
        rest,
        work.methods,
        None,
        target=settings.target,
        seed=settings.seed,
        out=work.place / "explained",
        weights=work.summary.model.hash,
        parts=range(-(-more // PART)),
        budget=work.options.budget,
        progress=False,
    )
    for name in work.methods:
        asked = evaluation.attributions[name][:more]
        # As a file would hold them, with the class by its name.
        readings = [likeness.reading(attribution) for attribution in asked]
        for attribution, (key, held) in zip(asked, said_of(likeness.by_key(readings)).items(), strict=True):
            said[name][key] = Said(held.words, held.scores, work.clf.labels[attribution.target])
    return said


def _rows(work: Work, name: str, said: Mapping[Key, Said]) -> list[WordRow]:
    options, clf = work.options, work.clf
    by_key = {(example.id, example.text): example for example in work.examples}
    answers = predict(clf, clf.encode([by_key[key] for key in said]), budget=options.budget)
    labels = answers.logits.argmax(1).tolist()
    # A sign says for or against the explained class: it is of use where that is the class that is predicted.
    signed = name in work.signed and all(
        text.target == clf.labels[label] for text, label in zip(said.values(), labels, strict=True)
    )
    found = standings(
        list(said.values()),
        labels,
        classes=len(clf.labels),
        min_texts=options.min_texts,
        permutations=options.permutations,
        seed=options.seed,
        signed=signed,
    )
    sizes = np.bincount(labels, minlength=len(clf.labels)).tolist()
    level = options.alpha / 2 / len(work.methods)  # for each of the two tests, by each method
    return [
        WordRow(
            method=name,
            word=row.word,
            label=clf.labels[row.label],
            texts=row.texts,
            of=sizes[row.label],
            share=row.texts / sizes[row.label],
            mass=row.mass,
            importance=row.importance,
            towards=row.towards if signed else None,
            p_importance=row.p_importance,
            p_class=row.p_class,
            # What is there with the class and speaks against it is no reason for it.
            flagged=max(row.p_importance, row.p_class) <= level and (not signed or row.towards > 0),
            important=row.p_importance <= level and (not signed or row.towards > 0),
        )
        for row in sorted(found, key=lambda row: (-row.importance, row.word, row.label))
    ]


# -- files --------------------------------------------------------------------------------------------------


def _write(found: Shortcuts, place: Path) -> None:
    store.write_text(place / WORDS, tables.to_csv(found.words, Shortcuts.COLUMNS))
    stored.write(place / FILE, found)


def write_page(folder: Path, summary: AuditSummary | None = None) -> None:
    """The audit's page anew, with the sections that stand beside it."""
    from veridical.audits.audit import retraining_of
    from veridical.audits.page import audit_page
    from veridical.audits.shortcuts.page import section_of

    summary = summary or read_summary(folder)
    page = audit_page(summary, read_examples(folder), retraining_of(folder), section_of(folder))
    store.write_text(folder / "report.html", page)
