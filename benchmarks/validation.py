"""How often the verdict is wrong, over worlds that were made at different times.

Reads tables/verdicts.csv of one or several folders of `veridical validate`, each world once:

    python -m benchmarks.validation benchmarks/results/validation-*.csv

The worlds of seeds 0 to 4 choose the panel, those of 5 to 9 are fresh, as docs/validation.md says.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.results import markdown
from veridical.probes.validation.page import rate
from veridical.probes.validation.panels import panels
from veridical.probes.validation.record import VerdictRow
from veridical.probes.validation.summary import all_errors, least, wrong

TRUTHS = {"True": True, "False": False, "": None}


def read(paths: Sequence[Path]) -> list[VerdictRow]:
    """The lines of all files; a world and panel that stands in several must say the same in all."""
    rows: dict[tuple[str, str], VerdictRow] = {}
    for path in paths:
        for line in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            counts = {name: int(line[name]) for name in ("good", "banned", "behind", "poor", "caught", "texts")}
            truths = {name: TRUTHS[line[name]] for name in ("right", "right_by_need")}
            words = {name: line[name] for name in ("world", "model", "panel", "believed")}
            row = VerdictRow(**words, fresh=line["fresh"] == "True", **truths, **counts)
            if rows.setdefault((row.world, row.panel), row) != row:
                raise SystemExit(f"{path}: {row.world} by {row.panel} is told otherwise in another file.")
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="CSV")
    parser.add_argument("--panel", default="hard, delete", help="whose kinds of worlds are told (default: %(default)s)")
    given = parser.parse_args()
    rows = read(given.files)
    first, fresh = (all_errors(panels(), [row for row in rows if row.fresh == new]) for new in (False, True))
    head = ["panel", "E1, choosing", "by need", "silent", "E1, fresh", "by need", "silent", "E2, choosing", "E2, fresh"]
    body = [
        [
            old.label,
            *(cell for each in (old, new) for cell in (rate(each.wrong), rate(each.wrong_by_need), str(each.silent))),
            *(rate(each.banned) for each in (old, new)),
        ]
        for old, new in zip(first, fresh, strict=True)
        if old.worlds or new.worlds
    ]
    print(markdown(head, body))
    print(f"\nerrs least on the worlds that choose: {least(first)}\n")
    told = [row for row in rows if row.panel == given.panel]
    kinds = [("model", row.model) for row in told] + [("rule", _rule(row)) for row in told]
    body = []
    for what, value in sorted(set(kinds)):
        some = [row for row in told if value in (row.model, _rule(row))]
        cells = [
            rate(wrong([getattr(row, name) for row in some if row.fresh == new]))
            for new in (False, True)
            for name in ("right", "right_by_need")
        ]
        body.append([what, value, *cells])
    print(markdown([given.panel, "", "choosing", "by need", "fresh", "by need"], body))


def _rule(row: VerdictRow) -> str:
    return row.world.split("/")[1].split("-")[0]


if __name__ == "__main__":
    main()
