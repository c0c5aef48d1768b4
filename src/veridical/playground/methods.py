"""Which methods there are for a model, what each costs, and what the audit found about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from veridical.attribution import Method
from veridical.attribution import methods as known
from veridical.audits.finished import ranking
from veridical.audits.plan import ORDERS
from veridical.audits.record import AuditSummary, Standing
from veridical.audits.selection import tried
from veridical.core.errors import InputError
from veridical.core.records import Encoded, Example
from veridical.core.registry import Choice
from veridical.core.spec import base_name
from veridical.model.classifier import Classifier
from veridical.playground.limits import CHEAP
from veridical.playground.served import Served

LENGTH = 30  # tokens of the text that costs are counted on
FILLER = "the film was not as good as the book that it came from , and the plot is a bore "
STANDINGS = {"believe": "believe", "as_good": "as good", "open": "open", "behind": "worse"}
STANDINGS |= {"chance": "no better than chance"}
# What is shown before anybody chooses: quick ones of different kinds, then two that people ask for first.
FIRST = ("attention", "input_x_gradient", "attnlrp", "alti", "occlusion", "integrated_gradients")


@dataclass
class Costs:
    """Passes of a text of 30 tokens for each method, as far as they are counted; and why some do not work."""

    passes: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def order(self, choice: Choice[Method]) -> tuple[float, str]:
        """Cheapest first; what is not counted yet by what its needs say."""
        return self.passes.get(choice.label, self.passes.get(choice.entry.name, guess(choice.entry))), choice.label


def guess(method: Method) -> float:
    """Of a method that was not counted yet: one that asks many questions, differentiates, or looks once."""
    if method.asks:
        return 1000.0
    if method.passes not in ("1 forward", "1 forward, 1 backward"):
        return 100.0
    return 3.0 if "gradient" in method.needs else 1.0


def count(model: Served, spec: str, costs: Costs) -> None:
    """Count what a method takes, in the thread that explains; it may be broken off and begun again."""
    try:
        found, _ = tried(model.explains, typical(model.explains), [spec])
        costs.passes[spec] = found[known.choose(spec).label]
    except InputError as reason:
        costs.refused[spec] = str(reason).removeprefix("No method works on this model. ")


def typical(clf: Classifier) -> Encoded:
    """A text of as many tokens, or as many as the model reads."""
    text = FILLER
    while sum(clf.encode([Example("typical", text)])[0].free) < LENGTH and len(text) < 100 * len(FILLER):
        text += FILLER
    (encoded,) = clf.encode([Example("typical", text)], limit=min(LENGTH, clf.limit))
    return encoded


def specs_of(audit: AuditSummary | None) -> list[str]:
    """Every method but the references, whose search takes too long to wait for, and those that the audit asked with
    options of their own."""
    names = [method.name for method in known if not method.reference]
    audited = [] if audit is None else [facts.name for facts in audit.methods if _named(facts.name, names)]
    return list(dict.fromkeys([*names, *audited]))


def _named(spec: str, names: Sequence[str]) -> bool:
    """Chance is drawn several times in an audit; once is enough here."""
    return base_name(spec) in names and spec not in ORDERS


def listed(model: Served, costs: Costs, audit: AuditSummary | None) -> dict[str, Any]:
    """What `/api/methods` says of a model; `audit` is of these very weights, or none."""
    specs = [spec for spec in specs_of(audit) if spec not in costs.refused]
    rows = [_row(spec, costs, audit) for spec in specs]
    counted = len(costs.passes) + len(costs.refused)
    return {
        "counting": counted < len(specs_of(audit)),
        "methods": sorted(rows, key=lambda row: costs.order(known.choose(row["name"]))),
        "default": default(specs, costs, audit),
    }


def default(specs: Sequence[str], costs: Costs, audit: AuditSummary | None) -> list[str]:
    """What to show first: what the audit says to believe, then some of different kinds, the cheapest of them first."""
    believed = [] if audit is None or not audit.verdicts else [*audit.verdicts[0].believe]
    wanted = dict.fromkeys([*believed, *FIRST])
    return sorted(
        (spec for spec in wanted if spec in specs),
        key=lambda spec: (spec not in believed, costs.order(known.choose(spec))),
    )


def chosen(specs: Iterable[str], costs: Costs) -> list[Choice[Method]]:
    """The methods of a request, each once, the cheapest first."""
    choices = {choice.label: choice for choice in (known.choose(spec) for spec in specs)}
    return sorted(choices.values(), key=costs.order)


def _row(spec: str, costs: Costs, audit: AuditSummary | None) -> dict[str, Any]:
    method = known.choose(spec).entry
    passes = costs.passes.get(spec)
    return {
        "name": spec,
        "summary": method.summary,
        "signed": method.signed,
        "about_class": method.of_target,
        "passes": None if passes is None else round(passes, 2),
        "cheap": (guess(method) if passes is None else passes) <= CHEAP,
        "audit": None if audit is None else standing(spec, audit),
    }


# -- what the audit says --------------------------------------------------------------------------------------


def standing(spec: str, audit: AuditSummary) -> dict[str, str]:
    """Where a method stands at home, in a word and in a sentence."""
    rows = ranking(audit)
    mine = next((row for row in rows if row.method == spec), None)
    others = [row.method for row in rows if base_name(row.method) == base_name(spec)]
    if mine is None and others:
        return {
            "standing": "not asked",
            "sentence": f"The audit asked it with other options: {', '.join(others)}; of these here nothing is known.",
        }
    if mine is None:
        return {
            "standing": "not asked",
            "sentence": "The audit did not ask this method, so nothing is known of it here.",
        }
    word = STANDINGS.get(mine.list or "", "no verdict")
    return {"standing": word, "sentence": f"{_said(mine, rows[0].method)}{_figures(mine)}"}


def _said(row: Standing, first: str) -> str:
    if row.list == "believe":
        return "Believe it: it comes first, is shown to be better than chance, and others are shown to be worse"
    if row.list == "as_good":
        return f"As good as {first}: shown to be within the margin of it"
    if row.list == "open" and row.method == first:
        return "Open: it leads, but nothing was shown to be behind it, or it was not shown to be better than chance"
    if row.list == "open":
        return f"Open: it could not be told from {first}"
    if row.list == "behind":
        return f"Worse: shown to be worse than {row.by or first}"
    if row.list == "chance":
        return "Do not use it: shown to be no better than random orders"
    return f"No verdict: number {row.place} of the audit's ranking, and nothing may be claimed"


def _figures(row: Standing) -> str:
    if row.net_chance is None:
        return f" ({row.n} texts)."
    bounds = ""
    if row.net_chance_low is not None and row.net_chance_high is not None:
        bounds = f", 95% interval {row.net_chance_low:+.2f} to {row.net_chance_high:+.2f}"
    return f" (net wins over chance {row.net_chance:+.2f}{bounds}; {row.n} texts of {row.corpus})."
