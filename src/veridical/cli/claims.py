"""The claims of a recipe's paper, and what our figures say of each: holds, fails, cannot be told, untried.

    [[claim]]
    where = "abstract; table 2"         where the paper says it
    says = "..."                        what it says, in our words
    lines = ["table 2, SST"]            the lines of the recipe that decide it
    direction = "lower"                 higher, lower, same, "not lower" or "not higher": what each finding has to be
    margin = 0.02                       the least difference that counts
    at_least = 19                       of the findings have to be so; all of them without it
    seeds = 3                           with texts, setting and cost: what was run
    findings = [{ of = "attention", paper = ["saloss > attention", "baseline > attention"], ours = 0.25, low = 0.15,
                  high = 0.34 }]        the paper's figure is looked up in the line: the first less the second (which
                                        may be of another line, named by `less`)
    percent = true                      if the paper's figures are in per cent and ours are not
    untried = "..."                     why there is nothing to judge by; several reasons with semicolons
    after = "..."                       what was done to the claim or its runs after a look at figures

A finding has a 95% interval (`ours`, `low`, `high`, and its degrees of `freedom` where they are on record), the values
of the seeds (`by_seed`, `baseline_by_seed`, from which a Welch interval is made), an exact two-sided p (`ours`, `p`),
or nothing. The state is worked out, never written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from veridical.core.errors import InputError
from veridical.core.readable import parse_toml, shown
from veridical.core.statistics import ALPHA, LEVEL, holm

Direction = Literal["higher", "lower", "same", "not lower", "not higher"]
State = Literal["holds", "fails", "cannot be told", "untried"]
STATES: tuple[State, ...] = get_args(State)
FEWEST_SEEDS = 3  # two or one give no verdict
APART = " > "  # between the keys of a figure


@dataclass(frozen=True, slots=True)
class Finding:
    """One comparison: the paper's difference, ours with its interval, and how sure it is either way."""

    of: str
    paper: float | None = None
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    p_for: float = 1.0  # one-sided: how easily chance would give it if the claim were wrong
    p_against: float = 1.0  # or if it were right

    @property
    def tested(self) -> bool:
        """Whether chance was reckoned with: there is an interval, or a p."""
        return self.low is not None or min(self.p_for, self.p_against) < 1


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence or a table's pattern of a paper, and what became of it."""

    where: str
    says: str
    lines: tuple[str, ...]
    direction: Direction
    margin: float
    at_least: int  # of the findings
    findings: tuple[Finding, ...]
    seeds: int
    texts: str
    setting: str
    cost: str
    untried: str
    note: str
    after: str = ""
    state: State = "untried"
    p: float | None = None  # after Holm's correction over the paper's claims that have figures


def read_claims(path: str | Path) -> list[Claim]:
    """The claims of a recipe's file, judged; Holm's correction is over those of the file."""
    recipe = parse_toml(Path(path).read_bytes().decode("utf-8-sig"))
    lines = {_name(item): item for item in recipe["item"]}
    claims = []
    for row in recipe.get("claim", []):
        try:
            claims.append(_claim(row, lines))
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(
                f"{path}: the claim {shown(row.get('says', row))} cannot be read ({problem})."
            ) from problem
    return judge(claims)


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['what']}, {item['task']}" if "task" in item else item["what"]


def _claim(row: Mapping[str, Any], lines: Mapping[str, Mapping[str, Any]]) -> Claim:
    if odd := set(row) - {*Claim.__slots__, "percent"}:
        raise ValueError(f"it has no field {', '.join(sorted(odd))}")
    for name in row["lines"]:
        if not any(name in (line, line.split(", ", 1)[0]) for line in lines):
            raise ValueError(f"there is no line {name!r}")
    if row["direction"] not in get_args(Direction):
        raise ValueError(f"direction {row['direction']!r} is none of {', '.join(get_args(Direction))}")
    how, seeds = (row["direction"], float(row["margin"])), int(row.get("seeds", 0))
    line, unit = row["lines"][0], 100 if row.get("percent") else 1
    findings = tuple(_finding(one, _papers(one, line, lines, unit), how, seeds) for one in row.get("findings", []))
    if bool(row.get("untried")) == any(one.ours is not None for one in findings):
        raise ValueError("it needs figures of ours or `untried`, and not both")
    return Claim(
        where=row["where"],
        says=row["says"],
        lines=tuple(row["lines"]),
        direction=how[0],
        margin=how[1],
        at_least=int(row.get("at_least", len(findings))),
        findings=findings,
        seeds=seeds,
        texts=row.get("texts", ""),
        setting=row.get("setting", ""),
        cost=row.get("cost", ""),
        untried=row.get("untried", ""),
        note=row.get("note", ""),
        after=row.get("after", ""),
    )


def _papers(row: Mapping[str, Any], line: str, lines: Mapping[str, Mapping[str, Any]], unit: int) -> float | None:
    """The paper's figure, or the first of its figures less the second."""
    if "paper" not in row:
        return None
    line = row.get("line", line)
    places = (line, row.get("less", line))  # the second may stand in another line: another model, another task
    figures = [_figure(lines[at]["paper"], path) / unit for at, path in zip(places, row["paper"], strict=False)]
    return figures[0] - sum(figures[1:])


def _finding(row: Mapping[str, Any], paper: float | None, how: tuple[Direction, float], seeds: int) -> Finding:
    given = {key: value for key, value in row.items() if key not in ("of", "paper", "line", "less")}
    finding = Finding(row["of"], paper)
    if not given:
        return finding
    if "by_seed" in given:
        sides = given.pop("by_seed"), given.pop("baseline_by_seed")
        if min(map(len, sides)) < min(seeds, FEWEST_SEEDS):
            raise ValueError(f"{row['of']}: it has fewer values than the claim has seeds")
        ours, error, freedom = _welch(*sides)
        reach = error * _quantile(freedom)
        finding = replace(finding, ours=ours, low=ours - reach, high=ours + reach)
    elif "p" in given:
        return _exact(replace(finding, ours=float(given.pop("ours"))), float(given.pop("p")), how[0])
    else:
        finding = replace(finding, **{key: float(given.pop(key)) for key in ("ours", "low", "high") if key in given})
        # Where the degrees of freedom of an interval are not on record: the fewest there can be.
        freedom = float(given.pop("freedom", max(1, seeds - 1)))
        error = 0.0 if finding.low is None else (finding.high - finding.low) / 2 / _quantile(freedom)  # type: ignore[operator]
    if error == 0 and finding.low is not None:
        raise ValueError(f"{row['of']}: without any spread nothing can be tested; give an exact p")
    if given:
        raise ValueError(f"a finding has no {', '.join(sorted(given))}")
    return finding if error == 0 else _tested(finding, error, freedom, how)


def _figure(held: Mapping[str, Any], path: str) -> float:
    value: Any = held
    for key in path.split(APART):
        value = value[key]
    if isinstance(value, Mapping):
        value = value["mean"]
    return float(value)


# -- judging ------------------------------------------------------------------------------------------------


def _welch(ours: Sequence[float], baseline: Sequence[float]) -> tuple[float, float, float]:
    """The difference of the means, its standard error and Satterthwaite's degrees of freedom."""
    parts = [np.var(side, ddof=1) / len(side) for side in (ours, baseline)]
    error = sum(parts)
    bottom = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (ours, baseline), strict=True))
    freedom = error**2 / bottom if error else 1.0
    return float(np.mean(ours) - np.mean(baseline)), float(np.sqrt(error)), float(freedom)


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + LEVEL) / 2))


def _tested(finding: Finding, error: float, freedom: float, how: tuple[Direction, float]) -> Finding:
    from scipy.special import stdtr

    def above(value: float, than: float) -> float:
        return float(stdtr(freedom, -(value - than) / error))

    direction, margin = how
    change = finding.ours or 0.0
    if direction == "same":
        return replace(finding, p_for=above(margin, abs(change)), p_against=above(abs(change), margin))
    if direction == "not higher":
        return replace(finding, p_for=above(margin, change), p_against=above(change, margin))
    if direction == "not lower":
        return replace(finding, p_for=above(change, -margin), p_against=above(-margin, change))
    gain = change if direction == "higher" else -change
    return replace(finding, p_for=above(gain, 0) if gain >= margin else 1.0, p_against=above(margin, gain))


def _exact(finding: Finding, p: float, direction: Direction) -> Finding:
    if direction not in ("higher", "lower"):
        raise ValueError("a p alone decides a direction only")
    agrees = ((finding.ours or 0.0) > 0) == (direction == "higher")
    return replace(finding, p_for=p / 2) if agrees else replace(finding, p_against=p / 2)


def _among(ps: Iterable[float], count: int) -> float:
    """That at least `count` of them are so (partial conjunction, Benjamini and Heller 2008): with all, the largest."""
    ordered = sorted(ps)
    return min(1.0, (len(ordered) - count + 1) * ordered[count - 1]) if ordered else 1.0


def judge(claims: Sequence[Claim]) -> list[Claim]:
    """The states. A claim is one two-sided test; Holm's correction is over the claims that have figures."""
    sides: list[tuple[float, float] | None] = []
    for claim in claims:
        for_it = _among((one.p_for for one in claim.findings), claim.at_least)
        wrong = len(claim.findings) - claim.at_least + 1  # so many the other way and it cannot be right
        against = _among((one.p_against for one in claim.findings), wrong)
        sides.append(None if claim.untried or claim.seeds < FEWEST_SEEDS else (for_it, against))
    adjusted = holm([np.nan if pair is None else min(1.0, 2 * min(pair)) for pair in sides])
    return [_judged(claim, pair, p) for claim, pair, p in zip(claims, sides, adjusted, strict=True)]


def _judged(claim: Claim, pair: tuple[float, float] | None, p: float) -> Claim:
    if pair is None:
        return replace(claim, state="untried" if claim.untried else "cannot be told")
    if p >= ALPHA:
        return replace(claim, state="cannot be told", p=float(p))
    return replace(claim, state="holds" if pair[0] < pair[1] else "fails", p=float(p))
