"""An audit spread over workers and shards: the same tables to the last bit."""

from __future__ import annotations

import threading

import pytest

import veridical
from tiny import tiny
from toy import toy
from veridical.audits import parts
from veridical.audits.audit import audit
from veridical.core.errors import InputError
from veridical.core.progress import Report
from veridical.model.classifier import Classifier

HOW = {
    "methods": "attention,gradient,input_x_gradient",
    "metrics": "sufficiency,soft_comprehensiveness:samples=2,sparsity",
    "limit": 16,
    "progress": False,
}
DATA = toy(8, 8, 20, classes=2)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    Classifier(*tiny("bert", num_labels=2), name="tiny").save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def single(model, tmp_path_factory):
    return audit(model, DATA, out=tmp_path_factory.mktemp("one") / "audit", workers=1, **HOW)


def files(made):
    return {
        name: (made.folder / name).read_bytes()
        for name in ("scores.parquet", "tables/cells.csv", "tables/ranking.csv", "tables/looks.csv")
    }


def test_two_workers_give_the_same_tables(model, single, tmp_path):
    both = audit(model, DATA, out=tmp_path / "audit", workers=2, **HOW)
    assert files(both) == files(single)
    assert both.summary.ranking == single.summary.ranking


def test_texts_count_as_done_when_a_worker_has_done_them(model, tmp_path, monkeypatch):
    steps, seen = [], []

    def advance(self, text="", steps=1):
        if self.title.startswith("Auditing"):
            seen.append(steps)

    monkeypatch.setattr(Report, "advance", advance)
    whole_grid = parts.run

    def run(*given, **how):
        whole_grid(*given, **how)
        steps.append(sum(seen))

    monkeypatch.setattr(parts, "run", run)
    audit(model, DATA, out=tmp_path / "audit", workers=1, **HOW)
    assert steps[0] == 16  # all of them, before what the workers wrote is read
    assert sum(seen) == 16  # and none twice


def test_shards_side_by_side_give_the_same_tables(model, single, tmp_path):
    made = {}

    def run(shard):
        made[shard] = audit(model, DATA, out=tmp_path / "audit", workers=1, shard=shard, **HOW)

    threads = [threading.Thread(target=run, args=(shard,)) for shard in ("1/2", "2/2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(made) == {"1/2", "2/2"}
    assert files(made["1/2"]) == files(single)


def test_workers_cannot_share_an_object(tmp_path):
    clf = Classifier(*tiny("bert", num_labels=2), name="tiny")
    with pytest.raises(InputError, match="given as Classifier; save it and name its folder"):
        veridical.audit(clf, DATA, out=tmp_path / "audit", workers=2, **HOW)
