"""What an audit will ask, and what it costs before it begins.

The unit is a *pass*: one text of the corpus's mean length once through the model, forward; a backward pass counts as
two. What metrics and methods ask is counted by letting them ask and answering for the model, which is not run: once
that nothing changes, once at random, and the dearer of both counts. What a method takes that looks inside the model is
counted on two short pieces of such a text and drawn out in a straight line to its length. So planning costs little even
of a large model, errs on the dear side, and a budget is kept.

A budget decides by planned passes alone. They depend on the model and the texts, never on the machine or on what an
interrupted run had done before: the same audit stops at the same look.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
import torch

from veridical.attribution import Method
from veridical.attribution import methods as all_methods
from veridical.audits.options import LOOKS, QUICK_PASSES, THOROUGH, AuditOptions, Control
from veridical.audits.sequential import Rule
from veridical.audits.wins import fewest_to_pass
from veridical.core.errors import InputError
from veridical.core.records import Answers, Encoded, Explained, Variant
from veridical.core.registry import Choice
from veridical.core.spec import base_name
from veridical.explanations.display import duration
from veridical.explanations.explain import explained
from veridical.metric import metrics as all_metrics
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

ORDERS = ("random", "random:seed=1", "random:seed=2")  # chance: three random orders of every text's tokens
COSTLY = 60.0  # passes a text over which a method enters after the first look
EARLY = ("integrated_gradients", "occlusion")  # but these, which people ask for first, begin with the rest
PIECES = (8, 16)  # tokens of the text's pieces that costs are counted on
FEWEST = 2  # methods that an audit compares
SPARED = 0.8  # of the time given: what planning, reading and writing leave
CALIBRATION = 3  # passes that are timed


@dataclass(frozen=True)
class Line:
    """Passes as a straight line of a text's length."""

    at: int  # tokens
    passes: float  # there, of a text of this length
    slope: float  # more per token

    def __call__(self, tokens: int) -> float:
        return max(0.0, self.passes + self.slope * (tokens - self.at))


@dataclass(frozen=True)
class Plan:
    """What is known before an audit begins: who takes part, what each takes, and what may be spent."""

    rule: Rule
    methods: tuple[str, ...]  # all that may ever enter, cheapest first
    costs: Mapping[str, float]  # passes a text to explain with each
    scoring: float  # passes to score one explanation, at most
    budget: int | None  # passes that may be spent; None: no bound
    left_out: tuple[str, ...] = ()  # methods that the budget does not reach
    foreign: int = 0  # explanations of every text that were made elsewhere, and are scored too
    elsewhere: float = 0.0  # passes to score one explanation in all the other ways that stability asks in
    references: tuple[str, ...] = ()  # methods that are shown beside the others and never ranked

    @property
    def costly(self) -> frozenset[str]:
        """Those that enter after the first look."""
        return entering_late(self.rule, {name: self.costs[name] for name in self.methods})

    def shared(self, texts: int) -> float:
        """Planned passes for what all methods share: reading the texts, scoring random orders and the like."""
        beside = sum(self.costs[name] + self.scoring for name in self.references)
        return texts * (1 + (len(ORDERS) + self.foreign) * self.scoring + beside)

    def of(self, counts: Mapping[str, int]) -> float:
        """Planned passes of explaining and scoring so many texts with each method."""
        each = sum(count * (self.costs[name] + self.scoring) for name, count in counts.items())
        return self.shared(max(counts.values(), default=0)) + each

    def through(self, look: int) -> float:
        """Planned passes until a look (from 0), should no method leave before."""
        texts = self.rule.looks[look]
        return self.of({name: self.texts_of(name, texts) for name in self.methods if look or name not in self.costly})

    def stability(self, contenders: int) -> float:
        """Planned passes of asking about so many contenders in other ways."""
        return self.stability_texts * contenders * self.elsewhere

    @property
    def stability_texts(self) -> int:
        """The texts on which contenders are asked about in other ways: those of the first look, also where a fixed
        design has but one."""
        return min(self.rule.looks[0], LOOKS[0])

    @property
    def most(self) -> float:
        """Planned passes if no method is let go early, or what may be spent if that is less."""
        whole = self.through(len(self.rule.looks) - 1) + self.stability(len(self.methods))
        return whole if self.budget is None else min(whole, self.budget)

    def texts_of(self, name: str, texts: int) -> int:
        """Of so many texts, those that a method explains."""
        return min(texts, self.rule.costly_texts) if name in self.costly else texts


def costly(costs: Mapping[str, float]) -> frozenset[str]:
    """Methods that an audit asks only against those that the first look leaves, by their passes a text."""
    return frozenset(name for name, passes in costs.items() if passes > COSTLY and base_name(name) not in EARLY)


def entering_late(rule: Rule, costs: Mapping[str, float]) -> frozenset[str]:
    """The costly ones among an audit's methods, if there is a second look and somebody to enter against."""
    late = costly(costs)
    return late if len(rule.looks) > 1 and len(late) < len(costs) else frozenset()


# -- the design ---------------------------------------------------------------------------------------------


def rule_of(options: AuditOptions, texts: int) -> Rule:
    """When the audit looks: as asked for, and never at more texts than there are."""
    most = options.fixed or min(options.limit or (THOROUGH if options.thorough else LOOKS)[-1], texts)
    design = (options.fixed,) if options.fixed else THOROUGH if options.thorough else LOOKS
    if most > design[-1]:
        design = (*design, most)
    looks = (*(n for n in design if n < min(most, texts)), min(most, texts))
    return Rule(looks=looks, alpha=options.alpha, margin=options.margin)


def fewest_texts(rule: Rule, methods: int) -> int:
    """The fewest texts on which one of so many methods could be let go."""
    return fewest_to_pass(rule.alpha / max(1, (methods - 1) * methods))


# -- what things cost ---------------------------------------------------------------------------------------


def typical_text(encoded: Sequence[Encoded]) -> Encoded:
    """A text of about mean length: the unit of passes."""
    return _of_length(encoded, fmean(len(text.ids) for text in encoded))


def weighty_text(encoded: Sequence[Encoded]) -> Encoded:
    """A text as long as that in which the average token stands: the one on which costs are counted.

    Many passes grow with a text's length, and so does each of them. If passes are a straight line of the length, all
    texts together take as many passes of mean length as this text has times the texts; on a text of mean length they
    would be counted too low by all the more the more lengths differ.
    """
    lengths = [len(text.ids) for text in encoded]
    return _of_length(encoded, sum(n * n for n in lengths) / sum(lengths))


def _of_length(encoded: Sequence[Encoded], tokens: float) -> Encoded:
    """The text that comes nearest; of two the longer."""
    return min(encoded, key=lambda text: (abs(len(text.ids) - tokens), -len(text.ids)))


def pieces(clf: Classifier, text: Encoded) -> list[Encoded]:
    """The text's beginnings on which costs are counted; the text itself where it is hardly longer."""
    free = [span for span, is_free in zip(text.spans, text.free, strict=True) if is_free]
    if len(free) <= 2 * PIECES[-1]:
        return [text]
    cuts = [replace(text.example, text=text.example.text[: free[n - 1][1]], rationale=()) for n in PIECES]
    return clf.encode(cuts)


def line(lengths: Sequence[int], passes: Sequence[float]) -> Line:
    """Through one or two counts."""
    slope = (passes[-1] - passes[0]) / (lengths[-1] - lengths[0]) if lengths[-1] > lengths[0] else 0.0
    return Line(lengths[0], passes[0], slope)


def scoring_passes(clf: Classifier, text: Encoded, specs: Sequence[str], controls: Sequence[Control]) -> float:
    """Passes of scoring one explanation of a text by all metrics, at most. Metrics of one order share what they ask;
    what is drawn in the place of an explanation is scored too."""
    ranked, full = _ranked(clf, text)
    draws = len([control for control in controls if control != "orders"])
    tokens = 0
    distinct: set[Variant] = set()
    for spec in specs:
        choice = all_metrics.choose(spec)
        if not choice.entry.asks:
            continue
        asked = _questions(lambda choice=choice: choice.entry.run(ranked, **choice.options), full)
        if choice.entry.of_order(choice.options):
            distinct.update(asked)
        else:
            tokens += (1 + (draws or 1)) * sum(len(variant.ids) for variant in asked)
    return (tokens + (1 + draws) * sum(len(variant.ids) for variant in distinct)) / len(text.ids)


def asking_passes(clf: Classifier, text: Encoded, choice: Choice[Method]) -> float:
    """Passes of explaining a text with a method that asks, at most: with all the draws that it may take."""
    ranked, full = _ranked(clf, text)
    asked = _questions(lambda: choice.entry.run(replace(ranked, scores=None), **all_draws(choice).options), full)
    return 1 + sum(len(variant.ids) for variant in asked) / len(text.ids)


def all_draws(choice: Choice[Method]) -> Choice[Method]:
    """The same method, drawing to the end however small its error is."""
    return replace(choice, options={**choice.options, "error": 0.0}) if "error" in choice.options else choice


def _ranked(clf: Classifier, text: Encoded) -> tuple[Explained, Answers]:
    """The text with scores in some order, and the model's answer to it."""
    full = predict(clf, [text])
    scores = np.linspace(1.0, 0.0, len(text.ids), dtype=np.float32)
    plain = explained(clf, text, int(full.logits[0].argmax()), full.logits[0], full.probabilities[0])
    return replace(plain, scores=scores), full


def _questions(begin: Callable[[], object], full: Answers) -> set[Variant]:
    """All that an asker asks if every answer is that of the whole text, or if answers are drawn at random, whichever is
    more: who waits for a change then waits to the end, and a search that follows the answers spreads out."""
    draws = np.random.default_rng(0)

    def unchanged(count: int) -> Answers:
        return Answers(*(np.repeat(rows, count, axis=0) for rows in (full.logits, full.probabilities)))

    def scattered(count: int) -> Answers:
        shares = draws.dirichlet(np.ones(full.probabilities.shape[1]), count).astype(full.probabilities.dtype)
        return Answers(np.log(np.maximum(shares, 1e-9)), shares)

    return max((_asked(begin(), way) for way in (unchanged, scattered)), key=len)


def _asked(asker: object, answers: Callable[[int], Answers]) -> set[Variant]:
    asked: set[Variant] = set()
    try:
        variants = next(asker)  # type: ignore[call-overload]
        while True:
            asked.update(variants)
            variants = asker.send(answers(len(variants)))  # type: ignore[attr-defined]
    except StopIteration:
        return asked


def seconds_a_pass(clf: Classifier, text: Encoded, threads: int | None) -> float:
    """How long a pass takes on this machine, as it is now, with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    try:
        predict(clf, [text])  # the first pass also warms up
        begun = time.perf_counter()
        predict(clf, [text] * CALIBRATION)
        return (time.perf_counter() - begun) / CALIBRATION
    finally:
        torch.set_num_threads(before)


# -- who takes part -----------------------------------------------------------------------------------------


def plan(
    rule: Rule,
    costs: Mapping[str, float],
    scoring: float,
    budget: int | None,
    *,
    foreign: int = 0,
    elsewhere: float = 0.0,
) -> Plan:
    """Everyone, cheapest first, or as many of the cheapest as a budget takes through the first look."""
    references = tuple(name for name in costs if is_reference(name))
    ranked = [name for name in costs if name not in ORDERS and name not in references]
    if not ranked:
        raise InputError(
            f"{' and '.join(references)} is a reference and never ranked; name a method to audit beside it."
        )
    order = sorted(ranked, key=lambda name: (costs[name], name))
    whole = Plan(
        rule, tuple(order), costs, scoring, budget, foreign=foreign, elsewhere=elsewhere, references=references
    )
    if budget is None:
        return whole
    for count in range(len(order), 0, -1):
        part = replace(whole, methods=tuple(order[:count]), left_out=tuple(order[count:]))
        enough = count >= min(FEWEST, len(order))
        if enough and part.through(0) <= budget:
            return part
    least = replace(whole, methods=tuple(order[:FEWEST])).through(0)
    raise InputError(
        f"A budget of {budget:,} passes is too small: {' and '.join(order[:FEWEST])} on {rule.looks[0]} texts take "
        f"{least:,.0f}; give more, or shorter texts."
    )


def left(whole: Plan, spent: float) -> Plan:
    """The plan for another corpus, when so much of the budget is gone."""
    return whole if whole.budget is None else replace(whole, budget=max(0, int(whole.budget - spent)))


def scaled(whole: Plan, rule: Rule, factor: float) -> Plan:
    """The plan for another corpus, whose texts are longer by a factor; passes stay those of the first. Of a longer text
    a method may take more passes, too."""
    costs = {name: factor * max(1.0, factor) * passes for name, passes in whole.costs.items()}
    return replace(whole, rule=rule, costs=costs, scoring=factor * whole.scoring, foreign=0, elsewhere=0.0)


def forecast(plans: Sequence[Plan], seconds: float, tokens: int, mask_test: int = 0) -> str:
    """What the audit asks and what that costs, in a few sentences; the first plan is that of the own domain."""
    home = plans[0]
    looks, count = home.rule.looks, len(home.methods)
    first = mask_test + sum(plan.through(0) for plan in plans)
    most = mask_test + sum(replace(plan, budget=None).most for plan in plans)
    if home.budget is not None:
        first, most = min(first, home.budget), min(most, home.budget)
    late = sorted(home.costly)
    enter = f" ({', '.join(late)} after the first look)" if late else ""
    *earlier, last = looks
    texts = f"{', '.join(map(str, earlier))} and {last}" if earlier else str(last)
    methods = "1 method" if count == 1 else f"{count} methods"
    corpora = "" if len(plans) == 1 else f" on {len(plans)} corpora"
    passes, times = f"{most:,.0f}", roughly(most * seconds)
    if most > first:
        passes, times = f"{first:,.0f} to {most:,.0f}", _between(roughly(first * seconds), times)
    lines = [
        f"{methods}{enter}{corpora}, looked at after {texts} texts: {passes} passes of {tokens} tokens, about {times}."
    ]
    if mask_test:
        lines.append(f"Of these the test of masks takes {mask_test:,}.")
    if home.budget is not None:
        lines.append(_reach(plans))
    if home.left_out:
        lines.append(f"It does not reach {', '.join(home.left_out)}.")
    if (needed := fewest_texts(home.rule, count)) > last:
        lines.append(
            f"There will be no verdict: with {methods} no difference can be significant on fewer than {needed} texts."
        )
    return " ".join(lines)


def _between(shortest: str, longest: str) -> str:
    return longest if shortest == longest else f"{shortest} to {longest}"


def roughly(seconds: float) -> str:
    """A time that is foretold, no finer than it is known: `1 s`, `5 s`, `35 s`, `150 s`, `12 min`"""
    if seconds < 1:
        return "1 s"
    step = 1 if seconds < 10 else 5 if seconds < 60 else 10
    return duration(step * round(seconds / step))


def _reach(plans: Sequence[Plan]) -> str:
    """What a budget is enough for if no method is let go early; what one corpus does not spend the next may."""
    home = plans[0]
    assert home.budget is not None
    spent, reached = 0.0, []
    for plan in plans:
        reach = [k for k in range(len(plan.rule.looks)) if spent + plan.through(k) <= home.budget]
        reached.append(plan.rule.looks[reach[-1]] if reach else 0)
        spent += plan.through(reach[-1]) if reach else 0.0
    sentence = f"The budget is {home.budget:,} passes: enough for {reached[0]} texts of every method"
    if len(plans) > 1:
        others = [str(texts) if texts else "none" for texts in reached[1:]]
        sentence += f" in the own domain and {', '.join(others)} of the other{'s' if len(others) > 1 else ''}"
    whole = spent + home.stability(len(home.methods)) <= home.budget
    looked = [plan.rule.looks[-1] for plan in plans]
    return sentence + ("." if whole and reached == looked else ", and for more if some leave early.")


def budget_of(options: AuditOptions) -> int | None:
    """The passes that were asked for; a time becomes passes once the model is there."""
    return QUICK_PASSES if options.quick else options.passes


def is_reference(spec: str) -> bool:
    """Whether a method is shown beside others and never ranked."""
    name = base_name(spec)
    return name in all_methods and all_methods[name].reference


def known_methods(specs: str | Sequence[str]) -> list[str]:
    """The methods by their full names, without the random orders."""
    labels = dict.fromkeys(choice.label for choice in all_methods.choose_all(specs))
    names = [label for label in labels if label not in ORDERS]
    if not names:
        raise InputError("There is no method to audit beside random, which is what others are held against; name one.")
    return names
