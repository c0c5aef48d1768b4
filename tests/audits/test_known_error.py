"""The auditor's own error stands on the page, in the README and in the docs, the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiny import tiny
from veridical.audits.known_error import KNOWN
from veridical.audits.operator import operator_for
from veridical.audits.options import AuditOptions
from veridical.audits.record import Settings
from veridical.audits.selection import PANEL
from veridical.model.classifier import Classifier
from veridical.probes.validation.rates import exact

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("place", ["README.md", "docs/validation.md"])
def test_what_is_written_is_what_the_page_says(place: str):
    text = " ".join((ROOT / place).read_text(encoding="utf-8").split())
    assert KNOWN.share in text


def test_the_interval_is_that_of_the_counts():
    rate = exact(KNOWN.wrong, KNOWN.worlds)
    assert (rate.low, rate.high) == (pytest.approx(KNOWN.low, abs=1e-3), pytest.approx(KNOWN.high, abs=1e-3))


def test_it_is_that_of_what_an_audit_does_unless_told_otherwise():
    assert KNOWN.metrics == PANEL
    asked = AuditOptions("a model", "data", out="a folder")
    assert KNOWN.by == operator_for(Classifier(*tiny("bert")), asked.by)


DEFAULT = Settings("predicted", "test", "delete", "token", ("orders",), 0, looks=(24, 48, 96))


@pytest.mark.parametrize("looks", [(24, 48, 96), (24, 48, 80), (24, 48), (20,)])
def test_fewer_texts_are_judged_by_the_same_rule(looks: tuple[int, ...]):
    assert KNOWN.of(("decision_flip", "sufficiency", "comprehensiveness"), replace(DEFAULT, looks=looks))


@pytest.mark.parametrize(
    "other",
    [{"by": "mask"}, {"alpha": 0.1}, {"margin": 0.3}, {"looks": (50,)}, {"looks": (24, 48, 96, 192)}],
    ids=str,
)
def test_other_settings_have_no_known_error(other: dict[str, Any]):
    assert not KNOWN.of(KNOWN.metrics, replace(DEFAULT, **other))
    assert not KNOWN.of((*KNOWN.metrics, "monotonicity"), DEFAULT)
