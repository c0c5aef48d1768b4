"""From judged worlds to error rates, the choice of a panel, and files:

summary.json                                     what is known so far
tables/panels.csv, worlds.csv, methods.csv       the same as tables
tables/verdicts.csv                              what every panel says in every world
report.html                                      the same as a page
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veridical.audits.sequential import Rule
from veridical.core import store, stored, tables
from veridical.probes.validation.judging import FEWEST, NEAR, Verdict, read_scores, verdict
from veridical.probes.validation.making import Facts
from veridical.probes.validation.page import validation_page
from veridical.probes.validation.panels import Panel, panels
from veridical.probes.validation.rates import exact, over_worlds
from veridical.probes.validation.record import (
    MethodRow,
    PanelErrors,
    Rate,
    Slice,
    ValidationSummary,
    VerdictRow,
    WorldRow,
)
from veridical.probes.validation.world import STAMP, Setting


@dataclass(frozen=True)
class Judged:
    """A world, what is true in it, and what each panel says."""

    facts: Facts
    skipped: str  # why it is not counted
    truth: dict[str, float]
    good: tuple[str, ...]
    good_by_need: tuple[str, ...]  # by the planted words that the model needs
    verdicts: dict[str, Verdict]  # by the panel's label

    @property
    def poor(self) -> tuple[str, ...]:
        return tuple(name for name in self.truth if name not in self.good)

    def right(self, label: str, *, by_need: bool = False) -> bool | None:
        """Whether the method that this panel believes is truly good; none where it believes nothing."""
        believed = self.verdicts[label].believed if self.verdicts else ""
        return believed in (self.good_by_need if by_need else self.good) if believed else None


@dataclass(frozen=True)
class Request:
    """What is summed up."""

    setting: Setting
    seeds: tuple[int, ...]
    fresh: tuple[int, ...]
    asked: int  # worlds
    rule: Rule


def judged(out: Path, request: Request, facts: Facts) -> Judged:
    """A world as every panel sees it."""
    if skipped := _skipped(facts):
        return Judged(facts, skipped, {}, (), (), {})
    scores = read_scores(out, request.setting, facts)
    verdicts = {panel.label: verdict(scores, panel, request.rule) for panel in _panels(request.setting)}
    return Judged(facts, "", scores.truth, scores.good, scores.good_by_need, verdicts)


def _skipped(facts: Facts) -> str:
    if not facts.learnt:
        return f"not learnt: dev accuracy {facts.dev:.3f} after {facts.epochs} epochs"
    if facts.carried < FEWEST * facts.texts:
        return f"the planted words carry {facts.carried} of {facts.texts} decisions only"
    return ""


def _panels(setting: Setting) -> list[Panel]:
    """Those whose metrics the folder has."""
    scored = {*setting.metrics, *setting.shaped}
    return [panel for panel in panels() if scored.issuperset(panel.metrics)]


# -- errors -------------------------------------------------------------------------------------------------


def verdict_rows(worlds: Sequence[Judged], fresh: Sequence[int]) -> list[VerdictRow]:
    """What every panel says in every counted world."""
    return [
        VerdictRow(
            world=world.facts.world.key,
            model=world.facts.world.model,
            fresh=world.facts.world.seed in fresh,
            panel=label,
            believed=said.believed,
            right=world.right(label),
            right_by_need=world.right(label, by_need=True),
            good=len(world.good),
            banned=said.on("chance", world.good),
            behind=said.on("behind", world.good),
            poor=len(world.poor),
            caught=said.on("behind", world.poor) + said.on("chance", world.poor),
            texts=said.texts,
        )
        for world in worlds
        for label, said in world.verdicts.items()
    ]


def panel_errors(panel: Panel, rows: Sequence[VerdictRow]) -> PanelErrors:
    """How often a panel is wrong in counted worlds, from what it says in each."""
    banned = [row.banned for row in rows]
    good = [row.good for row in rows]
    return PanelErrors(
        panel=panel.name,
        by=panel.by,
        metrics=panel.metrics,
        worlds=len(rows),
        silent=sum(not row.believed for row in rows),
        wrong=wrong([row.right for row in rows]),
        wrong_by_need=wrong([row.right_by_need for row in rows]),
        banned=over_worlds(banned, good),
        banned_worlds=exact(sum(count > 0 for count in banned), len(rows)),
        behind=over_worlds([row.behind for row in rows], good),
        caught=over_worlds([row.caught for row in rows], [row.poor for row in rows]),
        texts=sum(row.texts for row in rows) / len(rows) if rows else None,
    )


def all_errors(panels: Sequence[Panel], rows: Sequence[VerdictRow]) -> list[PanelErrors]:
    """Those of every panel, from the lines of tables/verdicts.csv, of one folder or of several."""
    return [panel_errors(panel, [row for row in rows if row.panel == panel.label]) for panel in panels]


def wrong(right: Sequence[bool | None]) -> Rate:
    """Of the worlds in which something was believed, those in which that is not truly good."""
    return exact(right.count(False), len(right) - right.count(None))


def least(errors: Sequence[PanelErrors]) -> str:
    """The panel that errs least: by the upper end of E1's interval, which silence widens; then by E2; of equals that
    which catches most, then the first. Fixed before any world was judged. Panels that were asked in fewer worlds than
    others, which worlds made at different times may have, are not compared: theirs may have been the easier ones."""

    def rank(row: PanelErrors) -> tuple[float, float, float]:
        return (1.0 if row.wrong.high is None else row.wrong.high, row.banned.share or 0.0, -(row.caught.share or 0.0))

    most = max((row.worlds for row in errors), default=0)
    told = [row for row in errors if row.wrong.of and row.worlds == most]
    return min(told, key=rank).label if told else ""


# -- rows ---------------------------------------------------------------------------------------------------


def _world_row(world: Judged, label: str, fresh: bool) -> WorldRow:
    facts = world.facts
    believed = world.verdicts[label].believed if world.verdicts else ""
    return WorldRow(
        key=facts.world.key,
        model=facts.world.model,
        fresh=fresh,
        skipped=world.skipped,
        epochs=facts.epochs,
        dev=facts.dev,
        test=facts.test,
        carried=facts.carried,
        by_shortcut=facts.by_shortcut,
        best=max(world.truth.values()) if world.truth else None,
        good=world.good,
        believed=believed,
        truth=world.truth.get(believed),
        right=world.right(label),
        right_by_need=world.right(label, by_need=True),
    )


def _method_rows(worlds: Sequence[Judged], label: str) -> list[MethodRow]:
    rows = []
    for method in dict.fromkeys(name for world in worlds for name in world.truth):
        held = [world for world in worlds if method in world.truth]
        lists = [world.verdicts[label].lists[method] for world in held]
        rows.append(
            MethodRow(
                method=method,
                worlds=len(held),
                truth=sum(world.truth[method] for world in held) / len(held),
                good=sum(method in world.good for world in held),
                believed=lists.count("believe"),
                behind=lists.count("behind"),
                banned=lists.count("chance"),
            )
        )
    return sorted(rows, key=lambda row: -row.truth)


def _slices(worlds: Sequence[Judged], label: str) -> list[Slice]:
    slices = []
    for what in ("model", "rule", "copies", "shortcut"):
        values = dict.fromkeys(getattr(world.facts.world, what) for world in worlds)
        for value in sorted(values, key=str):
            held = [world for world in worlds if getattr(world.facts.world, what) == value]
            silent = sum(not world.verdicts[label].believed for world in held)
            both = [wrong([world.right(label, by_need=need) for world in held]) for need in (False, True)]
            slices.append(Slice(what, f"{value}", silent, *both))
    return slices


# -- all of it ----------------------------------------------------------------------------------------------


def sum_up(request: Request, worlds: Sequence[Judged]) -> ValidationSummary:
    """What the worlds that are there say."""
    setting, rule = request.setting, request.rule
    counted = [world for world in worlds if not world.skipped]
    new = [world for world in counted if world.facts.world.seed in request.fresh]
    old = [world for world in counted if world.facts.world.seed not in request.fresh]
    first, fresh = (all_errors(_panels(setting), verdict_rows(some, request.fresh)) for some in (old, new))
    chosen = least(first)
    reported = chosen or _panels(setting)[0].label  # the first of all is what an audit judges by unless told otherwise
    return ValidationSummary(
        title="The auditor audited",
        answer=answer(reported, first, fresh),
        seeds=request.seeds,
        fresh_seeds=request.fresh,
        setting=setting,
        near=NEAR,
        looks=rule.looks,
        alpha=rule.alpha,
        margin=rule.margin,
        asked=request.asked,
        made=len(worlds),
        chosen=chosen,
        reported=reported,
        first=tuple(first),
        fresh=tuple(fresh),
        slices=tuple(_slices(new or old, reported)),
        worlds=tuple(_world_row(world, reported, world.facts.world.seed in request.fresh) for world in worlds),
        methods=tuple(_method_rows(counted, reported)),
    )


def answer(panel: str, first: Sequence[PanelErrors], fresh: Sequence[PanelErrors]) -> str:
    """The headline, by one panel: of the fresh worlds where there are any."""
    told = next((row for row in fresh if row.label == panel and row.worlds), None)
    row = told or next(row for row in first if row.label == panel)
    if not row.wrong.of:
        return "No world is judged yet in which a method was believed."
    wrong, need, banned = row.wrong, row.wrong_by_need, row.banned
    which = (
        f"{'world' if wrong.of == 1 else 'worlds'} with a known truth{'' if told else ', which also chose the panel,'}"
    )
    silent = f"; in {row.silent} nothing was believed" if row.silent else ""
    if banned.low is None:
        interval = f"at most {_percent(row.banned_worlds.high)} of worlds have one"
    else:
        interval = f"95% interval {_percent(banned.low)} to {_percent(banned.high)}"
    return (
        f"In {wrong.of} {which} the verdict was wrong in {_with_interval(wrong)}{silent}; where only the planted words "
        f"count that the model needs, in {_with_interval(need)}. "
        f"Truly good methods told not to be used: {banned.count} of {banned.of} ({interval}). Judged by {panel}."
    )


def _with_interval(rate: Rate) -> str:
    return f"{rate.count} (95% interval {_percent(rate.low)} to {_percent(rate.high)})"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def write(out: Path, summary: ValidationSummary, worlds: Sequence[Judged]) -> None:
    """All files of it."""
    stored.write(out / "summary.json", summary)
    errors = [{"worlds are": kind, **store.plain(row)} for kind in ("first", "fresh") for row in getattr(summary, kind)]
    rows = {
        "panels": errors,
        "worlds": summary.worlds,
        "methods": summary.methods,
        "verdicts": verdict_rows(worlds, summary.fresh_seeds),
    }
    for name, table in rows.items():
        store.write_text(out / "tables" / f"{name}.csv", tables.to_csv(table))
    store.write_text(out / "report.html", validation_page(summary, store.read_json(out / STAMP)))
