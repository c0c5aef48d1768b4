"""Write docs/scorecard.md, its plots and the README's summary anew from the recipes: `python docs/scorecard.py`.

The states are worked out from the recipes' [[claim]] tables by `veridical.cli.claims`; a test says when to run this.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

from veridical.cli.claims import FEWEST_SEEDS, STATES, Claim, Finding, State, read_claims
from veridical.core import store

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PAPERS = {
    "saloss": ("SaLoss", "Chrysostomou and Aletras (2021)"),
    "regex": ("REGEX", "Li et al. (2023)"),
    "explanation-regularisation": ("Explanation regularisation", "Ferreira, Titov and Aziz (2024)"),
    "soft-faithfulness": ("Soft erasure", "Zhao and Aletras (2023)"),
    "recursive-roar": ("Recursive ROAR", "Madsen et al. (2022)"),
}
SHOWN = 6  # findings of a claim that are told one by one
BEGIN, END = "<!-- scorecard -->\n", "<!-- /scorecard -->"

LEAD = """\
# The scorecard: what the five papers claim, and what we found

Every row is a claim of one of the papers that Veridical implements: of its abstract, its conclusion or its text, or a
pattern of one of its tables and figures. This page, its plots and the counts in the README are made from
`recipes/*.toml` by `python docs/scorecard.py`.

A state is about the setting in its row. A small embedded encoder stands in for the papers' models, so "holds" and
"fails" are of that encoder and these texts, not of the paper's own runs.
"""

RULES = """\
## What counts as what
The same for all papers (`src/veridical/cli/claims.py`), and written down before most of the runs; the first figures of
REGEX and those of the synthetic problem are older. Claims were read against the papers again when some had figures, and
then worded anew, split or added. Where runs were added after a look at the figures, the row says so.

- **Direction and margin.** A claim is one or more comparisons, each with a direction (higher, lower, the same, not
  lower, not higher) and the least difference that counts. A difference is as claimed if it is surely on the right side
  of 0 and measured at the margin or more. It speaks against the claim if it is surely below the margin, or surely the
  other way: with a margin of 0.05 and "higher", +0.08 (+0.02 to +0.14) is as claimed, +0.01 (-0.02 to +0.04) speaks
  against it, and +0.06 (-0.01 to +0.13) settles nothing. "The same" means surely within the margin, "not lower" surely
  no lower than it. "Surely" is at the level below.
- **Level.** 5%, two-sided. A claim is one test: all of its comparisons have to hold, or as many as the row says. Where
  all have to, the least sure one decides whether it holds, and a single one that surely does not makes it fail.
  Holm's correction is over all claims of the paper that have figures.
- **Intervals** allow for other texts and other seeds; those of areas and layers, of most macro-F1 and where a note says
  so for other seeds alone. A p follows from the interval and its degrees of freedom; where these are not on record,
  from the fewest there can be, one less than the seeds of a side.
- **Two seeds or fewer give no verdict**, nor does a difference without an interval. Where so many of a claim's
  comparisons lack one that it could not hold whatever the others are, its state says how many have one.
- **Diagnosticity** is how often a metric prefers an explanation to a random one; "ties lost" counts a tie as not
  preferred.

| state | when |
|---|---|
| holds | the test is passed as claimed |
| fails | it is passed the other way |
| cannot be told | there are figures, and they do not settle it |
| untried | nothing was run with settings that can judge it; the row says why |

Figures are differences, with a 95% interval where there is one.
"""


# -- words --------------------------------------------------------------------------------------------------


def counted(states: Counter[str]) -> str:
    total = sum(states.values())
    several = {"holds": "hold", "fails": "fail", "cannot be told": "cannot be told", "untried": "are untried"}
    single = {"holds": "holds", "fails": "fails", "untried": "is untried"}
    parts = [f"{states[state]} {(single if states[state] == 1 else several).get(state, state)}" for state in STATES]
    return f"Of {total} claims {', '.join(parts[:-1])} and {parts[-1]}"


def _signed(value: float) -> str:
    return f"{value:+.3f}" if abs(value) < 0.0995 else f"{value:+.2f}"


def _criterion(claim: Claim) -> str:
    words = {"same": "within", "not lower": "lower by no more than", "not higher": "higher by no more than"}
    needed = words.get(claim.direction, f"{claim.direction} by at least")
    least = f"{needed} {claim.margin:g}" if claim.margin else claim.direction
    count = len(claim.findings)
    if count < 2:
        many = ""
    else:
        many = f", all {count} comparisons" if claim.at_least == count else f", {claim.at_least} of {count} comparisons"
    if all(one.paper is None and one.ours is None for one in claim.findings):  # else the figures name them
        many += f" ({'; '.join(one.of for one in claim.findings)})"
    return least + many


def _figures(findings: Sequence[Finding], paper: bool) -> str:
    known = [one for one in findings if (one.paper if paper else one.ours) is not None]
    if not known:
        return ""
    values = [float((one.paper if paper else one.ours) or 0.0) for one in known]
    if len(known) > SHOWN:
        return f"{len(known)} comparisons: {_signed(min(values))} to {_signed(max(values))}"
    lines = []
    for one, value in zip(known, values, strict=True):
        between = (
            "" if paper or one.low is None or one.high is None else f" ({_signed(one.low)} to {_signed(one.high)})"
        )
        lines.append(f"{one.of}: {_signed(value)}{between}")
    return "<br>".join(lines)


def _state(claim: Claim) -> str:
    if claim.seeds < FEWEST_SEEDS:
        return f"**{claim.state}**: {claim.seeds} seed{'s' * (claim.seeds > 1)}"
    tested = sum(one.tested for one in claim.findings)
    if tested < claim.at_least and claim.state == "cannot be told":
        count = len(claim.findings)
        few = f"{tested or 'none'} of {count} comparisons with an" if count > 1 else "no"
        return f"**{claim.state}**: {few} interval"
    after = f"<br>{claim.after}" if claim.after else ""
    if claim.p is None or claim.p >= 1:
        return f"**{claim.state}**{after}"
    return f"**{claim.state}**, p {f'= {claim.p:.2g}' if claim.p >= 0.0001 else '< 0.0001'} corrected{after}"


def _claimed(claim: Claim) -> str:
    """The claim, where it stands, what would decide it, by which lines of the recipe, and what is to be said of it."""
    lines = ", ".join(f"`{line}`" for line in claim.lines)
    note = f"<br>Note: {claim.note}." if claim.note else ""
    return f"{claim.says}<br>*{claim.where}.* Holds if {_criterion(claim)}. Lines: {lines}{note}"


def _run(claim: Claim) -> str:
    """What was run for a claim, how often, and what it took."""
    seeds = f"{claim.seeds} seed{'s' * (claim.seeds > 1)}"
    return "; ".join(part for part in (claim.texts, claim.setting, seeds, claim.cost) if part)


def _tried(claims: Sequence[Claim]) -> list[str]:
    """What was run, a letter each, and the claims that it decides."""
    letters = {run: ascii_uppercase[n] for n, run in enumerate(dict.fromkeys(map(_run, claims)))}
    runs = "\n".join(f"- **{letter}**: {run}." for run, letter in letters.items())
    rows = [
        [
            _claimed(claim),
            _state(claim),
            _figures(claim.findings, paper=True),
            _figures(claim.findings, paper=False),
            letters[_run(claim)],
        ]
        for claim in claims
    ]
    return f"What was run:\n\n{runs}\n\n{_table([TRIED, *rows])}"


def _untried(claims: Sequence[Claim]) -> str:
    """The reasons why nothing can judge some claims, a letter each, and these claims."""
    reasons = {claim.says: claim.untried.split("; ") for claim in claims}
    every = dict.fromkeys(why for several in reasons.values() for why in several)
    letters = {why: ascii_lowercase[n] for n, why in enumerate(every)}
    told = "\n".join(f"- **{letter}**: {why}." for why, letter in letters.items())
    rows = [
        [_claimed(claim), _figures(claim.findings, paper=True), ", ".join(letters[why] for why in reasons[claim.says])]
        for claim in claims
    ]
    return f"Why not:\n\n{told}\n\n{_table([UNTRIED, *rows])}"


def _told(claims: Mapping[str, Sequence[Claim]], state: State) -> str:
    """The claims of a state in a list, for those who read no tables."""
    return "\n".join(
        f"- {PAPERS[recipe][0]}: {claim.says} (*{claim.where}*){f' {claim.after}' if claim.after else ''}"
        for recipe, rows in claims.items()
        for claim in rows
        if claim.state == state
    )


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = [[cell.replace("|", r"\|").replace("\n", " ") for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# -- theirs against ours ------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """A figure that both have."""

    line: str  # table or figure
    of: str  # the condition, or the metric
    paper: float
    ours: float


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and "mean" in value:  # with the ends of its interval beside it
            yield (*path, key), float(value["mean"])
        elif isinstance(value, Mapping):
            yield from _leaves(value, (*path, key))
        elif isinstance(value, (int, float)):
            yield (*path, key), float(value)


def pairs(recipe: str) -> list[Pair]:
    """The figures of the recipe's lines that the paper and we have; ours by the paper's kind of control."""
    found = []
    items = tomllib.loads((ROOT / "recipes" / f"{recipe}.toml").read_text(encoding="utf-8"))["item"]
    for item in items:
        papers = dict(_leaves(item.get("paper", {})))
        for path, value in _leaves(item.get("ours", {})):
            plain = tuple(key for key in path if key != "gaussian")  # a key with other options is another setting
            if plain in papers:
                named = [key for key in plain if key in CONDITIONS]
                # Joint rollout is named like the method: it is meant where no other condition is.
                of = named[0] if named else "rollout" if "rollout" in plain else plain[-1]
                found.append(Pair(item["what"], of, papers[plain], value))
    return found


CONDITIONS = {"baseline", "saloss", "REGEX", "att", "c-rollout"}  # how a model was trained: a colour each
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito (2008)
SIDE, LEFT, TOP = 300, 60, 24


def plot(points: Sequence[Pair], title: str) -> str:
    """A figure of theirs to the right, the same of ours upwards; on the diagonal they are equal. A shape per table, a
    colour per condition."""
    high = 1.0 if max(max(point.paper, point.ours) for point in points) <= 1 else 100.0
    low = min(0.0, math.floor(4 * min(min(point.paper, point.ours) for point in points) / high) / 4 * high)
    places = {line: n for n, line in enumerate(dict.fromkeys(point.line for point in points))}
    groups = {of: n for n, of in enumerate(dict.fromkeys(point.of for point in points))}

    def across(value: float) -> float:
        return round(LEFT + SIDE * (value - low) / (high - low), 1)

    def up(value: float) -> float:
        return round(TOP + SIDE * (1 - (value - low) / (high - low)), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {TOP + SIDE + 56}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{title}</title>',
        f'<rect width="560" height="{TOP + SIDE + 56}" fill="#fff"/>',
        f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>',
        f'<line x1="{across(low)}" y1="{up(low)}" x2="{across(high)}" y2="{up(high)}" stroke="#888" '
        'stroke-dasharray="4 3"/>',
    ]
    for n in range(round(4 * (high - low) / high) + 1):
        tick = low + high * n / 4
        label = f"{tick:g}"
        parts.append(f'<text x="{across(tick)}" y="{TOP + SIDE + 16}" text-anchor="middle">{label}</text>')
        parts.append(f'<text x="{LEFT - 6}" y="{up(tick) + 4}" text-anchor="end">{label}</text>')
    parts.append(f'<text x="{LEFT + SIDE / 2}" y="{TOP + SIDE + 40}" text-anchor="middle">the paper</text>')
    parts.append(f'<text transform="translate(14 {TOP + SIDE / 2}) rotate(-90)" text-anchor="middle">ours</text>')
    parts += [_mark(across(p.paper), up(p.ours), places[p.line], COLOURS[groups[p.of] % 7]) for p in points]
    for n, line in enumerate(places):
        parts.append(_mark(LEFT + SIDE + 24, TOP + 12 + 20 * n, n, "#444"))
        parts.append(f'<text x="{LEFT + SIDE + 36}" y="{TOP + 16 + 20 * n}">{line}</text>')
    for n, of in enumerate(groups, len(places) + 1):
        parts.append(f'<rect x="{LEFT + SIDE + 18}" y="{TOP + 6 + 20 * n}" width="12" height="12" ')
        parts[-1] += f'fill="{COLOURS[groups[of] % 7]}"/>'
        parts.append(f'<text x="{LEFT + SIDE + 36}" y="{TOP + 16 + 20 * n}">{of.replace("_", " ")}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _mark(x: float, y: float, shape: int, colour: str) -> str:
    outlines = (
        f'<circle cx="{x}" cy="{y}" r="5" ',
        f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" ',
        f'<path d="M{x} {y - 6:.1f}L{x + 5.5:.1f} {y + 4:.1f}H{x - 5.5:.1f}Z" ',
        f'<path d="M{x} {y - 6:.1f}L{x + 6:.1f} {y}L{x} {y + 6:.1f}L{x - 6:.1f} {y}Z" ',
    )
    return f'{outlines[shape % len(outlines)]}fill="{colour}" fill-opacity="0.75" stroke="#fff"/>'


# -- pages --------------------------------------------------------------------------------------------------

TRIED = ("the claim", "state", "the paper", "ours", "run")
UNTRIED = ("the claim", "the paper", "why not")


def _section(recipe: str, claims: Sequence[Claim], plotted: int) -> str:
    name, authors = PAPERS[recipe]
    counts = counted(Counter(claim.state for claim in claims))
    if plotted:
        shown = f"![Figures of {authors} against ours](scorecard-{recipe}.svg)\n\n"
        shown += f"The plot has the {plotted} figures that the paper and we both have."
    else:
        shown = "No figure of a table is there on both sides yet, so there is no plot."
    file = f"recipes/{recipe}.toml"
    parts = [
        f"## {name}: {authors}\n{counts}. [Its page]({recipe}.md). A row names lines of `{file}`, with their commands: "
        "the paper's own, and those of the stand-in that made our figures. "
        f"`veridical run {file} --only LINE` runs one, with `--unrun` if it was not run yet. "
        "Where a line's command is not one of `veridical`, or is that of other lines, it says so.",
        shown,
    ]
    if tried := [claim for claim in claims if claim.state != "untried"]:
        parts += [f"### {name}: tried", _tried(tried)]
    if untried := [claim for claim in claims if claim.state == "untried"]:
        parts += [f"### {name}: untried", _untried(untried)]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[Path, str]:
    """Everything this writes, as it should be."""
    texts: dict[Path, str] = {}
    every = {recipe: read_claims(ROOT / "recipes" / f"{recipe}.toml") for recipe in PAPERS}
    sections, rows = [], [["paper", *STATES, "claims"]]
    for recipe, (name, authors) in PAPERS.items():
        states = Counter(claim.state for claim in every[recipe])
        points = pairs(recipe)
        if points:
            texts[DOCS / f"scorecard-{recipe}.svg"] = plot(points, f"{name}: {authors} against ours")
        rows.append([name, *(str(states[state]) for state in STATES), str(len(every[recipe]))])
        sections.append(_section(recipe, every[recipe], len(points)))
    together = Counter(claim.state for claims in every.values() for claim in claims)
    rows.append(["all", *(str(together[state]) for state in STATES), str(together.total())])
    decided = [claim for claims in every.values() for claim in claims if claim.state in ("holds", "fails")]
    again = sum(bool(claim.after) for claim in decided)
    looked = f" Of the {len(decided)} that hold or fail, {again} were run or worded again after a look at figures."
    summary = f"{counted(together)}.{looked if again else ''}\n\n{_table(rows)}\n"
    told = [f"**What {state}**\n\n{_told(every, state)}\n" for state in ("holds", "fails") if together[state]]
    texts[DOCS / "scorecard.md"] = "\n".join([LEAD, f"## Summary\n{summary}", *told, RULES, *sections])
    readme = ROOT / "README.md"
    before, _, after = readme.read_text(encoding="utf-8").partition(BEGIN)
    texts[readme] = f"{before}{BEGIN}{summary}{END}{after.partition(END)[2]}"
    return texts


if __name__ == "__main__":
    for page, text in pages().items():
        store.write_text(page, text)
        print(page.relative_to(ROOT))
