"""What changed since an earlier audit, with a test for each figure: a gate for continuous integration.

| figure | the same texts | other texts |
|---|---|---|
| accuracy of the model, on every corpus | sign test on texts where one is right, one is not | Fisher's exact test |
| each metric with a vote, of each method that was to be believed | Wilcoxon's signed rank | Mann-Whitney's rank sum |
| the list of each method that was to be believed | the tests of the new audit itself | the same |

Every test is one-sided, that the figure became worse, and all of one comparison are corrected together (Holm). A
regression is a p of at most the level of the new audit (`--alpha`, 0.05), or that a method which was to be believed is
now shown to be worse than another or no better than chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from veridical.audits.filing import AuditRecord, Change, Evidence, Outcome, Since, Test, TextFigures
from veridical.audits.finished import list_words
from veridical.audits.record import CorpusFacts
from veridical.core import store
from veridical.core.statistics import holm, mean, rank_sums, signed_rank_sides

SETTINGS = {  # what a setting is to a reader
    "target": "The explained class",
    "split": "The split",
    "by": "How tokens are erased",
    "level": "What is erased at a time",
    "controls": "The random explanations that metrics are tried on",
    "seed": "The seed",
    "looks": "Texts after which the audit looks",
    "alpha": "The level",
    "margin": "The margin",
    "budget": "The budget",
}
SHARED = 0.5  # of the smaller audit's texts: from here on the common ones are compared in pairs


@dataclass(frozen=True)
class Tested:
    """A test both ways: that the figure became worse, and that it became better."""

    test: Test
    n: tuple[int, int]
    worse: float
    better: float


def since(before: AuditRecord, now: AuditRecord) -> Since:
    """What changed from one record to the next."""
    level = now.settings.alpha
    compared = [*_accuracies(before, now), *_faithfulness(before, now)]
    worse = holm([tested.worse if tested else np.nan for _, tested in compared])
    better = holm([tested.better if tested else np.nan for _, tested in compared])
    changes = [
        replace(
            change,
            test=tested.test if tested else "",
            n=tested.n if tested else (0, 0),
            p=tested.worse if tested else None,
            p_holm=float(p) if tested else None,
            outcome=_outcome(p <= level, q <= level) if tested else "not tested",
        )
        for (change, tested), p, q in zip(compared, worse, better, strict=True)
    ]
    return Since(
        title=before.title,
        created=before.created,
        model=before.model.hash,
        differences=tuple(_differences(before, now)),
        changes=(*_verdicts(before, now), *changes),
        level=level,
    )


def _outcome(worse: bool, better: bool) -> Outcome:
    return "worse" if worse else "better" if better else "no change shown"


def _untested(corpus: str, what: str, before: str, now: str) -> Change:
    return Change(corpus, what, before, now, "", (0, 0), None, None, "not tested")


# -- what was audited -----------------------------------------------------------------------------------------


def _differences(before: AuditRecord, now: AuditRecord) -> Iterator[str]:
    if before.model.hash is None or now.model.hash is None:
        yield "Whether the model is the same is not known: its fingerprint was not kept."
    elif before.model.hash == now.model.hash:
        yield f"The model is the same (fingerprint {now.model.hash})."
    else:
        yield f"The model is another: fingerprint {before.model.hash} then, {now.model.hash} now."
    then = {corpus.name: corpus for corpus in before.corpora}
    for corpus in now.corpora:
        yield _of_data(then.pop(corpus.name, None), corpus)
    yield from (f"{name} was audited then, and not now." for name in then)
    ours, theirs = (store.plain(record.settings) for record in (now, before))
    for key in sorted(ours):
        if ours[key] != theirs[key]:
            yield f"{SETTINGS.get(key, f'The setting {key}')}: {_value(theirs[key])} then, {_value(ours[key])} now."
    if before.stamp.get("code") != now.stamp.get("code"):
        yield f"The code is another (Veridical {before.veridical} then, {now.veridical} now)."


def _value(value: Any) -> str:
    """A setting's value in words: a list is its members, what was not set is none."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "none" if value in ("", None) else str(value)


def _of_data(then: CorpusFacts | None, now: CorpusFacts) -> str:
    if then is None:
        return f"{now.name} was not audited then."
    if then.sha256 is None or now.sha256 is None:
        return f"{now.name}: whether the texts are the same is not known."
    return f"{now.name}: {'the same texts' if then.sha256 == now.sha256 else 'not the same texts and labels'}."


# -- figures --------------------------------------------------------------------------------------------------

Found = tuple[Change, Tested | None]


def _accuracies(before: AuditRecord, now: AuditRecord) -> Iterator[Found]:
    old, new = ({c.name: c for c in record.corpora} for record in (before, now))
    for name in (name for name in new if name in old):
        then, here = old[name].accuracy, new[name].accuracy
        if then is None or here is None:
            continue
        change = _untested(name, "accuracy of the model", f"{then:.1%}", f"{here:.1%}")
        yield change, _accuracy(_evidence(before, name), _evidence(now, name), old[name], new[name])


def _accuracy(before: Evidence | None, now: Evidence | None, then: CorpusFacts, here: CorpusFacts) -> Tested | None:
    from scipy.stats import binom, hypergeom

    old, new = (_known(each) for each in (before, now))
    common = [key for key in new if key in old]
    if common and len(common) >= SHARED * min(len(old), len(new)):
        lost = sum(old[key] and not new[key] for key in common)
        won = sum(new[key] and not old[key] for key in common)
        sides = [float(binom.sf(count - 1, lost + won, 0.5)) for count in (lost, won)]
        return Tested("sign test, paired", (len(common), len(common)), sides[0], sides[1])
    (once, drawn), (right, texts) = ((round((c.accuracy or 0.0) * c.texts), c.texts) for c in (then, here))
    chance = hypergeom(drawn + texts, once + right, texts)  # how many of all that were right fall to the new audit
    worse, better = float(chance.cdf(right)), float(chance.sf(right - 1))
    return Tested("Fisher's exact test", (then.texts, here.texts), worse, better)


def _known(evidence: Evidence | None) -> dict[str, bool]:
    if evidence is None:
        return {}
    return {key: right for key, right in zip(evidence.texts, evidence.right, strict=True) if right is not None}


def _faithfulness(before: AuditRecord, now: AuditRecord) -> Iterator[Found]:
    """The metrics with a vote, of what was to be believed; of the first where nothing was."""
    for corpus in (corpus.name for corpus in now.corpora):
        old, new = _evidence(before, corpus), _evidence(now, corpus)
        for method in _trusted(before, corpus):
            for then in (figures for figures in (old.figures if old else ()) if figures.method == method):
                same = [f for f in (new.figures if new else ()) if (f.method, f.metric) == (method, then.metric)]
                here = same[0] if same else None
                way = "higher is better" if then.better == "higher" else "lower is better"
                words = (_mean(then), "not measured" if here is None else _mean(here))
                change = _untested(corpus, f"{then.metric} of {method} ({way})", *words)
                yield change, None if here is None or old is None or new is None else _scores(old, then, new, here)


def _scores(old: Evidence, then: TextFigures, new: Evidence, here: TextFigures) -> Tested | None:
    sign = 1.0 if here.better == "higher" else -1.0
    ours, theirs = _by_text(new, here), _by_text(old, then)
    common = [key for key in ours if key in theirs]
    if common and len(common) >= SHARED * min(len(ours), len(theirs)):
        above, below = signed_rank_sides(np.array([sign * (ours[key] - theirs[key]) for key in common]))
        return Tested("signed rank, paired", (len(common), len(common)), float(below[0]), float(above[0]))
    a, b = (np.array([sign * value for value in f.values if value is not None]) for f in (here, then))
    if min(len(a), len(b)) < 2:
        return None
    p, delta = rank_sums(a, b)
    up = float(p[0]) / 2 if delta[0] > 0 else 1 - float(p[0]) / 2
    return Tested("rank sum", (len(b), len(a)), 1 - up if delta[0] else 0.5, up if delta[0] else 0.5)


def _by_text(evidence: Evidence, figures: TextFigures) -> dict[str, float]:
    pairs = zip(figures.texts, figures.values, strict=False)  # a record made of an older audit has no keys
    return {evidence.texts[k]: value for k, value in pairs if value is not None}


def _mean(figures: TextFigures) -> str:
    value = mean(figures.values)
    return "undefined" if value is None else f"{value:.3f}"


# -- lists ----------------------------------------------------------------------------------------------------


def _verdicts(before: AuditRecord, now: AuditRecord) -> Iterator[Change]:
    """On which list what was to be believed is now: shown to be worse or no better than chance is a regression."""
    for corpus in (corpus.name for corpus in now.corpora):
        then = before.verdict(corpus)
        for method in () if then is None else then.believe:
            standing = next((s for s in now.ranking if (s.corpus, s.method) == (corpus, method)), None)
            change = _untested(corpus, f"list of {method}", "believe", "not audited")
            if standing is not None and standing.list is not None:
                outcome: Outcome = "worse" if standing.list in ("behind", "chance") else "no change shown"
                p = standing.p_behind if standing.list == "behind" else standing.p_no_better
                texts = (0 if then is None else then.texts, standing.n)
                tested = replace(change, now=list_words(standing), test="the audit's own", n=texts)
                change = replace(tested, p=p if outcome == "worse" else None, outcome=outcome)
            yield change


def _trusted(record: AuditRecord, corpus: str) -> Sequence[str]:
    verdict = record.verdict(corpus)
    if verdict is not None and verdict.believe:
        return verdict.believe
    first = [s.method for s in record.ranking if s.corpus == corpus and s.place == 1]
    return first[:1]


def _evidence(record: AuditRecord, corpus: str) -> Evidence | None:
    return next((evidence for evidence in record.evidence if evidence.corpus == corpus), None)
