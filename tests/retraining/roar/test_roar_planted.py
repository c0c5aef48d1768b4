"""Where the truth is known: the deciding word stands twice in every text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from inprocess import run_here

from veridical.core.text import marked
from veridical.retraining.roar import cells
from veridical.retraining.roar.roar import roar

CONFIG = {"epochs": 6, "lr": 3e-2, "batch": 16}
MODEL = "bilstm:hidden=12:embedding=12"


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr("veridical.grid.pool.run", run_here)


def one_copy(attribution):
    """What a measure says that is faithful to a model which reads the first copy it finds: all weight on that."""
    rng = np.random.default_rng(len(attribution.encoded.ids))
    scores = rng.random(len(attribution.scores)).astype(np.float32)
    for place in np.flatnonzero(marked(attribution.encoded)):
        if attribution.encoded.ids[place] != MASK:
            scores[place] = 2.0
            break
    return replace(attribution, scores=scores)


MASK = 5  # of the BiLSTM's tokenizer


def test_recursion_finds_the_second_copy_and_plain_roar_is_misled(tmp_path, monkeypatch):
    real = cells.attributions
    monkeypatch.setattr(cells, "attributions", lambda *a, **k: [one_copy(found) for found in real(*a, **k)])
    found = roar(
        "planted:copies=2:size=160:length=4",
        MODEL,
        methods="attention,oracle",
        out=tmp_path,
        seeds=1,
        tokens=2,
        plain=True,
        leakage=False,
        config=CONFIG,
        progress=False,
    )
    assert found.summary.settings.score == "accuracy"
    curves = {(c.measure, c.recursive): [v or 0.0 for v in c.mean] for c in found.summary.curves}
    assert curves[("random", False)][0] > 0.9, "the task is learnt"
    assert curves[("attention", True)][2] < 0.75, "both copies are gone"
    assert curves[("oracle", True)][2] < 0.75
    assert curves[("attention", False)][2] > 0.85, "the second copy is left: a faithful measure looks like chance"
    areas = {(a.measure, a.recursive): a.mean or 0.0 for a in found.summary.areas}
    assert areas[("attention", False)] < 0.5 * areas[("attention", True)]


def test_the_oracle_ranks_first(tmp_path):
    found = roar(
        "planted:copies=2:size=160:length=4",
        MODEL,
        methods="gradient:over=vocabulary,oracle",
        out=tmp_path,
        seeds=1,
        step=40,
        leakage=False,
        config=CONFIG,
        progress=False,
    )
    area = found.summary.areas[0]
    assert area.measure == "oracle"
    assert area.mean is not None
    assert area.mean > 0.4, "of at most about 0.7: the first point is at 40%"
