"""Facts about audits that never ran, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from veridical.audits import plan as planning
from veridical.audits.corpora import Corpus
from veridical.audits.looks import PART, Asked, Course, follow
from veridical.audits.oracles import ORACLES
from veridical.audits.plan import ORDERS
from veridical.audits.record import (
    AuditSummary,
    CorpusFacts,
    MethodFacts,
    MetricFacts,
    ModelFacts,
    Role,
    Settings,
    Standing,
)
from veridical.audits.sequential import Rule
from veridical.audits.summary import summarise
from veridical.core.records import Cell, Example
from veridical.metric import Direction, Kind


def settings(**changes: Any) -> Settings:
    return Settings(
        **{
            "target": "predicted",
            "split": "test",
            "by": "delete",
            "level": "token",
            "controls": ("permutation",),
            "seed": 0,
            **changes,
        }
    )


def a_corpus(name: str, role: Role = "in", texts: int = 30, **changes: Any) -> CorpusFacts:
    blank = {"hash": None, "dropped": 0, "cut_texts": 0, "cut_tokens": 0, "accuracy": None, "macro_f1": None}
    return CorpusFacts(name=name, role=role, texts=texts, **{**blank, **changes})


def a_method(name: str) -> MethodFacts:
    return MethodFacts(name, f"What {name} says.", True, (), 0.01, 1.0, 0.0)


def a_metric(
    name: str,
    kind: Kind = "faithfulness",
    better: Direction = "higher",
    ratios: Sequence[float] = (),
    repeats: Sequence[str] = (),
    order: bool = False,
    votes: bool | None = None,
) -> MetricFacts:
    said = f"What {name} measures."
    has_vote = kind == "faithfulness" if votes is None else votes
    return MetricFacts(name, kind, better, (0, 1), said, tuple(repeats), tuple(ratios), has_vote, order)


def a_standing(method: str, corpus: str = "home", place: int = 1, **changes: Any) -> Standing:
    absent = dict.fromkeys(
        ("net_first", "net_first_low", "net_first_high", "net_chance", "net_chance_low", "net_chance_high"), None
    )
    blank = {
        **absent,
        **dict.fromkeys(("list", "passes", "left", "p_behind", "level", "p_chance"), None),
        **{"clearly": False, "n": 30, "by": "", "better_than_chance": True},
    }
    return Standing(corpus=corpus, method=method, place=place, **{**blank, **changes})


def a_course(
    corpus: str,
    cells: Sequence[Cell],
    metrics: Sequence[MetricFacts],
    *,
    rule: Rule | None = None,
    costs: Mapping[str, float] | None = None,
    budget: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Course:
    """How an audit goes whose answers are these cells; by default in one look."""
    texts = list(dict.fromkeys(cell.example for cell in cells))
    names = {cell.method for cell in cells if " ~ " not in cell.method} - {*ORDERS, *ORACLES}
    prices = dict.fromkeys(sorted(names), 1.0) if costs is None else costs
    plan = planning.plan(rule or Rule.fixed(max(1, len(texts))), prices, 1.0, budget)
    by_name = {metric.name: metric for metric in metrics}
    place = {text: k for k, text in enumerate(texts)}

    def ask(parts: Mapping[int, Sequence[str]]) -> Asked:
        held: dict[tuple[int, str], list[Cell]] = {
            (number, name): [] for number, methods in parts.items() for name in methods
        }
        for cell in cells:
            key = (place[cell.example] // PART, cell.method)
            if key in held:
                held[key].append(cell)
        explained = {key: [None] * len({cell.example for cell in rows}) for key, rows in held.items()}
        return Asked(held, explained)  # type: ignore[arg-type]

    examples = tuple(Example(text, text) for text in texts)
    return follow(Corpus(corpus, "in", examples, 0), plan, by_name, ask, say=say)


def summary_of(cells: Sequence[Cell], given: AuditSummary, rules: Mapping[str, Rule] | None = None) -> AuditSummary:
    """What an audit makes of these cells."""
    by_corpus = {corpus.name: [cell for cell in cells if cell.corpus == corpus.name] for corpus in given.corpora}
    courses = {
        name: a_course(name, [c for c in here if " ~ " not in c.method], given.metrics, rule=(rules or {}).get(name))
        for name, here in by_corpus.items()
    }
    return summarise(given, courses, by_corpus)


def facts(corpora: Sequence[CorpusFacts], metrics: Sequence[MetricFacts], **changes: Any) -> AuditSummary:
    """An audit of these, before anything is made of its scores."""
    given = {
        "title": "toy on home",
        "created": "1 January 2026, 12:00 UTC",
        "veridical": "0.2.0",
        "model": ModelFacts("toy", "bert", ("negative", "positive"), "single"),
        "settings": settings(),
        "stamp": {},
        "methods": (),
        **changes,
    }
    return AuditSummary(corpora=tuple(corpora), metrics=tuple(metrics), **given)
