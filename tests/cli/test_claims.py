"""Claims of the papers: how a state comes about, and that the recipes' claims rest on figures that are on record."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veridical.cli.claims import FEWEST_SEEDS, read_claims
from veridical.core.errors import InputError

ROOT = Path(__file__).parents[2]
PAPERS = [path for path in sorted((ROOT / "recipes").glob("*.toml")) if path.stem not in ("measurable", "validation")]
ITEM = """
[[item]]
what = "table 1"
task = "SST"
status = "partly run: here"
paper = { new = { attention = 0.6, gradient = 40.0 }, old = { attention = 0.4, gradient = 30.0 } }
"""
SEEDS = "by_seed = [0.90, 0.91, 0.92], baseline_by_seed = [0.70, 0.71, 0.72]"


def claims(tmp_path: Path, *tables: str, item: str = ITEM):
    rows = [
        f'[[claim]]\nwhere = "abstract"\nsays = "it"\nlines = ["table 1, SST"]\nmargin = 0.02\n{table}'
        for table in tables
    ]
    path = tmp_path / "recipe.toml"
    path.write_text("\n".join([item, *rows]), encoding="utf-8")
    return read_claims(path)


def state(tmp_path: Path, table: str) -> str:
    return claims(tmp_path, table)[0].state


@pytest.mark.parametrize(
    ("direction", "finding", "expected"),
    [
        ("higher", SEEDS, "holds"),
        ("lower", SEEDS, "fails"),
        ("same", SEEDS, "fails"),
        ("not lower", SEEDS, "holds"),
        ("higher", "ours = 0.2, low = 0.18, high = 0.22", "holds"),
        ("higher", "ours = 0.2, low = -0.1, high = 0.5", "cannot be told"),
        ("higher", "ours = 0.2", "cannot be told"),
        ("higher", "ours = 0.001, low = 0.0005, high = 0.0015", "fails"),  # surely less than counts
        ("same", "ours = 0.001, low = 0.0005, high = 0.0015", "holds"),
        ("same", "ours = 0.0, low = -0.03, high = 0.03", "cannot be told"),
        ("not lower", "ours = -0.1, low = -0.105, high = -0.095", "fails"),
        ("not higher", "ours = -0.1, low = -0.105, high = -0.095", "holds"),
        ("not higher", "ours = 0.1, low = 0.095, high = 0.105", "fails"),
        ("higher", "ours = 0.5, p = 0.002", "holds"),
        ("lower", "ours = 0.5, p = 0.002", "fails"),
    ],
)
def test_a_state_follows_from_direction_margin_and_certainty(tmp_path, direction, finding, expected):
    table = f'direction = "{direction}"\nseeds = 3\nfindings = [{{ of = "a", {finding} }}]'
    assert state(tmp_path, table) == expected


def test_two_seeds_give_no_verdict(tmp_path):
    table = 'direction = "higher"\nseeds = {}\nfindings = [{{ of = "a", ours = 0.5, p = 1e-9 }}]'
    assert [state(tmp_path, table.format(seeds)) for seeds in (1, 2, 3)] == ["cannot be told"] * 2 + ["holds"]


def test_all_comparisons_have_to_hold_or_as_many_as_the_claim_says(tmp_path):
    good, bad, open_one = (
        "{ of = 'a', ours = 0.5, p = 1e-6 }",
        "{ of = 'b', ours = -0.5, p = 1e-6 }",
        "{ of = 'c' }",
    )
    table = 'direction = "higher"\nseeds = 3\nat_least = {}\nfindings = [{}]'
    assert state(tmp_path, table.format(2, f"{good}, {good}")) == "holds"
    assert state(tmp_path, table.format(2, f"{good}, {bad}")) == "fails"
    assert state(tmp_path, table.format(2, f"{good}, {open_one}")) == "cannot be told"
    assert state(tmp_path, table.format(1, f"{good}, {open_one}")) == "holds"
    assert state(tmp_path, table.format(1, f"{bad}, {bad}")) == "fails"


def test_holm_is_over_the_claims_that_have_figures(tmp_path):
    table = 'direction = "higher"\nseeds = 3\nfindings = [{{ of = "a", ours = 0.5, p = {} }}]'
    untried = 'direction = "higher"\nuntried = "no one did"'
    alone = claims(tmp_path, table.format(0.03), untried)
    assert [claim.state for claim in alone] == ["holds", "untried"]
    both = claims(tmp_path, table.format(0.03), table.format(0.03), untried)
    assert [claim.state for claim in both] == ["cannot be told", "cannot be told", "untried"]
    assert both[0].p == pytest.approx(0.06)


def test_the_papers_figure_is_looked_up_and_not_typed(tmp_path):
    table = 'direction = "higher"\nuntried = "x"\n{}findings = [{{ of = "a", paper = ["new > {}", "old > {}"] }}]'
    (plain,) = claims(tmp_path, table.format("", "attention", "attention"))
    assert plain.findings[0].paper == pytest.approx(0.2)
    (percent,) = claims(tmp_path, table.format("percent = true\n", "gradient", "gradient"))
    assert percent.findings[0].paper == pytest.approx(0.1)


def test_the_papers_second_figure_may_stand_in_another_line(tmp_path):
    item = ITEM + ITEM.replace('"SST"', '"AG"').replace("0.6", "0.9")
    finding = '{ of = "a", paper = ["new > attention", "new > attention"], less = "table 1, AG" }'
    (claim,) = claims(tmp_path, f'direction = "higher"\nuntried = "x"\nfindings = [{finding}]', item=item)
    assert claim.findings[0].paper == pytest.approx(0.6 - 0.9)


def test_seeds_give_the_interval_of_welch(tmp_path):
    from scipy.stats import ttest_ind

    table = f'direction = "higher"\nseeds = 3\nfindings = [{{ of = "a", {SEEDS} }}]'
    (found,) = claims(tmp_path, table)[0].findings
    expected: Any = ttest_ind([0.90, 0.91, 0.92], [0.70, 0.71, 0.72], equal_var=False)
    assert [found.low, found.high] == pytest.approx(list(expected.confidence_interval(0.95)))
    assert 2 * found.p_for == pytest.approx(expected.pvalue)


def test_an_interval_counts_by_its_degrees_of_freedom_or_by_the_fewest_there_can_be(tmp_path):
    from scipy.stats import t

    table = 'direction = "higher"\nseeds = 3\nfindings = [{{ of = "a", ours = 0.2, low = 0.1, high = 0.3{} }}]'
    for given, freedom in (("", 2), (", freedom = 11.5", 11.5)):
        (found,) = claims(tmp_path, table.format(given))[0].findings
        assert found.p_for == pytest.approx(t.sf(0.2 / (0.1 / t.ppf(0.975, freedom)), freedom))


def test_a_comparison_without_an_interval_or_a_p_is_not_tested(tmp_path):
    findings = [SEEDS, "ours = 0.2, low = -0.1, high = 0.5", "ours = 0.5, p = 0.002", "ours = 0.2", ""]
    listed = ", ".join(f"{{ of = 'a'{', ' * bool(one)}{one} }}" for one in findings)
    (claim,) = claims(tmp_path, f'direction = "higher"\nseeds = 3\nfindings = [{listed}]')
    assert [one.tested for one in claim.findings] == [True, True, True, False, False]


@pytest.mark.parametrize(
    "table",
    [
        'direction = "higher"',  # neither figures nor a reason
        'direction = "higher"\nuntried = "x"\nfindings = [{ of = "a", ours = 1.0 }]',
        'direction = "better"\nuntried = "x"',
        'direction = "higher"\nuntried = "x"\nfindings = [{ of = "a", paper = ["new > lime"] }]',
        'direction = "higher"\nuntried = "x"\nstate = "holds"\ncertain = true',
        'direction = "higher"\nseeds = 3\nfindings = [{ of = "a", ours = 1.0, lo = 0.5 }]',
        'direction = "higher"\nseeds = 3\nfindings = [{ of = "a", ours = 1.0, low = 1.0, high = 1.0 }]',  # no spread
        'direction = "higher"\nseeds = 3\nfindings = [{ of = "a", by_seed = [1, 1, 1], baseline_by_seed = [0, 0, 0] }]',
        'direction = "higher"\nseeds = 3\nfindings = [{ of = "a", by_seed = [1, 1.1], baseline_by_seed = [0, 0.1] }]',
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(tmp_path, table):
    with pytest.raises(InputError, match="the claim 'it' cannot be read"):
        claims(tmp_path, table)


def test_a_claim_about_a_line_that_there_is_not_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no line 'table 1, SST'"):
        claims(tmp_path, 'direction = "higher"\nuntried = "x"', item=ITEM.replace("SST", "AG"))


# -- the recipes ---------------------------------------------------------------------------------------------


def test_there_are_many_claims_of_every_paper():
    counts = {path.stem: len(read_claims(path)) for path in PAPERS}
    assert len(counts) == 5
    assert min(counts.values()) >= 10
    assert sum(counts.values()) >= 40


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_what_is_judged_was_run(path):
    items = tomllib.loads(path.read_text(encoding="utf-8"))["item"]
    status = {f"{item['what']}, {item['task']}" if "task" in item else item["what"]: item["status"] for item in items}
    for claim in read_claims(path):
        assert claim.says.endswith((".", ")"))
        assert claim.findings, claim.says  # what is compared is written down before it is run
        assert "abstract" in claim.where or re.search(r"table|figure|section|appendix|conclusion", claim.where)
        if not claim.untried:
            assert claim.seeds
            assert claim.texts
            assert claim.setting
            assert claim.cost
            near = [told for name, told in status.items() if any(name.startswith(line) for line in claim.lines)]
            assert any(not told.startswith("unrun") for told in near), claim.says
    assert any("abstract" in claim.where or "conclusion" in claim.where for claim in read_claims(path))


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_every_interval_and_every_seeds_value_stands_on_the_papers_page(path):
    lines = (ROOT / "docs" / f"{path.stem}.md").read_text(encoding="utf-8").replace("\u2212", "-")
    page = " ".join(lines.split())
    for row in tomllib.loads(path.read_text(encoding="utf-8"))["claim"]:
        for one in row.get("findings", []):
            if "low" in one:
                told = [one[key] for key in ("ours", "low", "high")]
                forms = ["{:+.{n}f} ({:+.{n}f} to {:+.{n}f})".format(*told, n=n) for n in (2, 3)]
                bare = page.replace("*", "")
                assert any(form in bare for form in forms), forms
            for key in ("by_seed", "baseline_by_seed"):
                if any(one.get(key, ())):  # a baseline of nothing is masking at random
                    values = [", ".join(f"{value:.{n}f}" for value in one[key]) for n in (2, 3)]
                    assert any(value in page for value in values), values
                    assert len(one[key]) == row["seeds"] >= FEWEST_SEEDS
                    assert np.isfinite(one[key]).all()
