"""What erased texts are to the audited model: familiar, if it was trained on masks and the test of masks says no other,
or foreign, and how far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

import numpy as np

from veridical.audits.evaluation import Evaluation
from veridical.audits.masf import FEWEST, LEVEL, RATIOS, REFERENCE, TEXTS, Familiar, familiar, hidden_peaks, simes
from veridical.audits.plan import ORDERS
from veridical.audits.preparation import Work
from veridical.audits.record import AuditSummary
from veridical.audits.record_erased import Familiarity, MaskTest
from veridical.core.records import Encoded, Example, Explained, Operator, Variant
from veridical.core.seed import generator
from veridical.model.ask import answer, erased_by_attention
from veridical.model.classifier import Classifier
from veridical.model.erase import erase, erase_all, ranking
from veridical.model.mask import Masking, masking, trained_ratio

OPERATORS: tuple[Operator, ...] = ("delete", "mask", "attention")
CONTROL: Operator = "zero_id_attended"
Reference = Literal["trained", "matched"]


def _asked(clf: Classifier, encoded: Encoded) -> Explained:
    return Explained(encoded, 0, np.empty(0), np.empty(0), mask_id=getattr(clf.tokenizer, "mask_token_id", None))


def _half(encoded: Encoded, seed: int) -> np.ndarray:
    """Half of a text's tokens, at random."""
    free = np.flatnonzero(encoded.free)
    draws = generator("familiarity", seed, encoded.example.id).permutation(free)
    return draws[: len(free) // 2]


def familiarity_of(clf: Classifier, examples: Sequence[Example], by: Operator, seed: int = 0) -> Familiarity:
    """How the model takes texts that were erased: without any token, and half of them by every operator."""
    encoded = clf.encode(examples[:TEXTS])
    texts = [_asked(clf, text) for text in encoded]
    operators: list[Operator] = [name for name in OPERATORS if name != "mask" or texts[0].mask_id is not None]
    null = answer(clf, [erase_all(text, by) for text in texts]).probabilities
    gone = [(text, _half(text.encoded, seed)) for text in texts]
    if not all(erased_by_attention(clf, text) for text in encoded):
        operators.remove("attention")
    halves = {
        name: answer(clf, [erase(text, half, name) for text, half in gone]).probabilities.argmax(1)
        for name in operators
    }
    agreement: dict[str, float | None] = {
        f"{a} ~ {b}": float((halves[a] == halves[b]).mean()) for a, b in combinations(operators, 2)
    }
    ratio = trained_ratio(clf)
    sure, same = float(null.max(1).mean()), float(np.bincount(null.argmax(1)).max() / len(null))
    words = _sentence(ratio, by, sure, same, agreement, masks="mask" in operators)
    return Familiarity(ratio, by, len(texts), sure, same, agreement, words)


def _sentence(
    ratio: float, by: Operator, sure: float, same: float, agreement: Mapping[str, float | None], *, masks: bool
) -> str:
    if ratio and by == "mask":
        beyond = "" if ratio == 1 else " Beyond that share masked texts are foreign to it."
        return (
            f"This model was trained on texts with up to {ratio:.0%} of their tokens masked, and tokens are erased by "
            f"the mask here: such texts are nothing new to it.{beyond}"
        )
    known = [(share, pair) for pair, share in agreement.items() if share is not None]
    first = "Erased texts are foreign to this model: it was trained on whole texts only."
    mend = "; training it with mask=1 would mend that" if masks else ""  # else there is no mask token to train with
    if ratio:
        first = f"This model was trained on masks, but tokens are erased by {by} here, which is foreign to it."
        mend = "; erasing by the mask (by=mask, which is usual for it) would mend that"
    least = ""
    if known:
        share, pair = min(known)
        least = (
            f" With half of the tokens gone at random, {pair.replace(' ~ ', ' and ')} lead it to the same class in "
            f"{share:.0%} of the texts."
        )
    return (
        f"{first} Of a text without any token it is {sure:.0%} sure on average, and gives {same:.0%} of them the same "
        f"class.{least} What a metric says of erased texts rests on such answers{mend}."
    )


def with_familiarity(work: Work, summary: AuditSummary, evaluations: Mapping[str, Evaluation]) -> AuditSummary:
    """The summary with what erased texts are to the model; of one that was trained on masks, whether the first method's
    masks and random ones are in their distribution."""
    home, by, seed = work.corpora[0], work.settings.by, work.settings.seed
    said = familiarity_of(work.clf, home.examples, by, seed)
    tests: tuple[MaskTest, ...] = ()
    if said.ratio and by == "mask" and not work.settings.budget:  # the test would take passes that no budget counts
        explained = evaluations[home.name].attributions
        ranked = [row.method for row in summary.ranking if row.corpus == home.name]
        chosen = dict.fromkeys([*ranked[:1], *(name for name in ORDERS[:1] if name in explained)])
        orders = {name: [(a.encoded, a.scores) for a in explained[name][:TEXTS]] for name in chosen}
        tests = mask_tests(work.clf, home.name, work.reference, orders, seed=seed)
    return replace(summary, familiarity=said, mask_tests=tests)


# -- the test -----------------------------------------------------------------------------------------------


def mask_tests(
    clf: Classifier,
    corpus: str,
    reference: Sequence[Example],
    orders: Mapping[str, Sequence[tuple[Encoded, np.ndarray]]],
    *,
    ratios: Sequence[float] = RATIOS,
    control: Operator = CONTROL,
    against: Reference = "trained",
    seed: int = 0,
) -> tuple[MaskTest, ...]:
    """MaSF of texts masked by some explanations' orders at every ratio, and of the same texts with the control operator
    in the mask's place. `orders` has every method's texts, each with its scores.

    The reference is other texts, masked as in training, or with `matched` at random at the very ratio that is tested,
    which asks whether an explanation's masks differ from random ones. No test where it is too small.
    """
    texts = clf.encode(reference[:REFERENCE])
    if len(texts) < FEWEST:
        return ()
    how = masking(clf, trained_ratio(clf) or 1.0)
    rows: list[MaskTest] = []
    trained = None if against == "matched" else _reference(clf, texts, how, seed)
    for ratio in ratios:
        held = trained or _reference(clf, texts, Masking(how.token, ratio), seed, fixed=ratio)
        for method, explained in orders.items():
            gone = [(_asked(clf, e), _top(e, scores, ratio)) for e, scores in explained]
            p = held.p(hidden_peaks(clf, [erase(ex, some, "mask") for ex, some in gone]))
            other = held.p(hidden_peaks(clf, [erase(ex, some, control) for ex, some in gone]))
            rows.append(_tested(corpus, method, ratio, p, control, other, len(held.calibrated)))
    return tuple(rows)


def _reference(
    clf: Classifier, texts: Sequence[Encoded], how: Masking, seed: int, fixed: float | None = None
) -> Familiar:
    """Other texts masked as in training, or every one at a fixed ratio."""
    variants = []
    for text in texts:
        draws = generator("reference", seed, text.example.id)
        if fixed is None:
            new = how.draw(text, draws)
            variants.append(Variant(new.ids, new.types))
        else:
            gone = _top(text, draws.random(len(text.ids)), fixed)
            variants.append(erase(_asked(clf, text), gone, "mask"))
    return familiar(hidden_peaks(clf, variants))


def _top(encoded: Encoded, scores: np.ndarray, ratio: float) -> np.ndarray:
    """The positions that go at a ratio, rounded down as curves have it."""
    ranked = ranking(scores, encoded.free)
    return ranked[: int(round(100 * ratio) * len(ranked) // 100)]


def _tested(
    corpus: str, method: str, ratio: float, p: np.ndarray, control: Operator, other: np.ndarray, reference: int
) -> MaskTest:
    whole, whole_control = float(simes(p)), float(simes(other))
    shares = [float((values <= LEVEL).mean()) for values in (p, other)]
    pairs = zip((whole, whole_control), shares, strict=True)
    found = [_rejected(joined, share, len(p)) for joined, share in pairs]
    verdict: Literal["familiar", "foreign", "cannot tell"] = "foreign" if found[0] else "cannot tell"
    if not found[0] and found[1]:
        verdict = "familiar"
    return MaskTest(
        corpus=corpus,
        method=method,
        ratio=ratio,
        texts=len(p),
        simes=whole,
        share=shares[0],
        control=control,
        control_simes=whole_control,
        control_share=shares[1],
        reference=reference,
        found=verdict,
        p=tuple(p.tolist()),
        control_p=tuple(other.tolist()),
    )


def _rejected(joined: float, share: float, texts: int) -> bool:
    """Whether texts as a whole are told from the reference: by Simes, or because more of them lie far out than chance
    has (binomial), each at half the level. Of many texts Simes alone asks for p that a small reference cannot give."""
    from scipy.stats import binom

    return joined <= LEVEL / 2 or bool(binom.sf(round(share * texts) - 1, texts, LEVEL) <= LEVEL / 2)
