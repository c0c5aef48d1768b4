"""Curves without retraining: every point is one model's own score on masked test texts (Madsen et al. 2024).

A model that was trained on masked texts may be asked about them, so nothing is trained. The files are those of a
benchmark that retrains, but for `seed0/model.json`, which says whose curves they are; curves explain and score the test
texts alone. A seed is a model: a run's own, or those of a folder with the runs seed0, seed1, ...
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from veridical.attribution import methods
from veridical.core import store, stored
from veridical.core.errors import Caution, InputError
from veridical.core.records import Dataset, Example, Given
from veridical.core.wording import option
from veridical.data import load_data
from veridical.data.labels import relabel
from veridical.explanations.explain import attributions
from veridical.model.accuracy import score, targets
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.model.mask import mask_token, trained_ratio
from veridical.retraining.options import Rounding, one_model_folders, unfinished_seeds
from veridical.retraining.roar.cells import FIXED, curve_place, explain, explain_anew, masked_texts, place, read_orders
from veridical.retraining.roar.experiment import Bench, Experiment, OneModel, check_split, read_experiment
from veridical.retraining.roar.mask import Amount, Orders, Steps, Unit
from veridical.retraining.roar.point import POINT, Point, alone
from veridical.retraining.roar.timing import Timing
from veridical.training.config import TrainConfig
from veridical.training.task import own_threads

TEST = "test"
MODEL = "model.json"
TEXTS = 16  # explained for the timing


# -- what is asked for --------------------------------------------------------------------------------------


def asked_of(
    out: str | Path,
    data: Given | Path,
    model: str,
    seeds: Sequence[int],
    *,
    limit: int | None,
    rounding: Rounding,
    force: bool,
) -> Experiment:
    """The test texts of this data for the curves of these models, if they may be asked about masked texts."""
    if limit is not None and not isinstance(data, (str, Path)):
        raise InputError(f"limit={limit} applies to data that is loaded by name; give the Dataset fewer examples.")
    dataset = load_data(data, limit=limit)
    check_split(dataset, TEST)
    folders, ratios = one_model_folders(model), []
    for seed in seeds:
        clf = load(folders[seed])
        ratios.append(trained_ratio(clf))
        if not ratios[-1] and not force:
            raise InputError(
                f"{folders[seed]} was not trained on masked texts, so what it says of them is no measure of "
                f"faithfulness; train it with {option('mask=1')}, leave {option('retrain=False', '--no-retrain')} out, "
                f"or take the curves all the same with {option('force=True')}."
            )
        _insist_on_weights(Path(out) / f"seed{seed}", clf)
        _relabelled(dataset, clf)
    ratio = min(ratios)
    kept = replace(dataset, splits={"train": (), "dev": (), TEST: dataset.splits[TEST]})
    claimed = OneModel(ratio=ratio, forced=not ratio)
    experiment = Experiment(Path(out), kept, model, TrainConfig(threads=1), rounding, claimed)
    store.claim(experiment.folder, experiment.spec)
    return experiment


def seeds_asked(model: str, seeds: Sequence[int] | None) -> tuple[int, ...]:
    """The seeds that there are models of, or those that were asked for."""
    there = one_model_folders(model)
    for seed in seeds or ():
        if seed not in there:
            have = ", ".join(map(str, there))
            raise InputError(
                f"There is no model of seed {seed} in {model} (there are {have}); leave {option('seeds')} out."
            )
    if seeds is not None:
        return tuple(seeds)
    if unfinished := unfinished_seeds(model):
        names = ", ".join(f"seed{seed}" for seed in unfinished)
        warnings.warn(
            f"{model}: {names} {'is' if len(unfinished) == 1 else 'are'} not trained to the end, and left out.",
            Caution,
            stacklevel=2,
        )
    return tuple(there)


def bench_of(experiment: Experiment, seed: int, folder: str) -> Bench:
    """A model with the texts as it reads them."""
    clf = load(folder)
    texts = _relabelled(experiment.data, clf)
    return Bench(
        experiment=experiment,
        seed=seed,
        clf=clf,
        first={},
        encoded={TEST: clf.encode(texts)},
        gold={TEST: targets(texts, clf.labels, False)},
        mask=mask_token(clf),
    )


def _relabelled(data: Dataset, clf: Classifier) -> list[Example]:
    if clf.kind == "multi":
        raise InputError(f"{clf.name} gives several labels per text; ROAR explains the gold class, so it needs one.")
    texts = relabel(data.splits[TEST], data.labels, clf.labels)
    if any(text.label is None for text in texts):
        raise InputError(
            f"ROAR explains the gold class, and not all texts of {data.name} have one among those of {clf.name} "
            f"({', '.join(clf.labels)}); name labelled data of these classes."
        )
    return texts


def note_model(bench: Bench) -> None:
    """Say whose curves a seed's are; another model's are not mixed with them."""
    path = bench.place / MODEL
    if not path.exists():
        store.write_json(path, {"model": bench.clf.name, "weights": bench.clf.fingerprint()})
    _insist_on_weights(bench.place, bench.clf)


def _insist_on_weights(place: Path, clf: Classifier) -> None:
    path = place / MODEL
    if path.exists() and stored.read_fields(path, "weights")["weights"] != clf.fingerprint():
        raise InputError(
            f"{place} holds the curves of another model than {clf.name}: its weights have changed; name another "
            f"folder with {option('out')}."
        )


def time_one(bench: Bench, measures: Sequence[str]) -> Timing:
    """What curves of one model will take, from a few of its texts."""
    texts = bench.encoded[TEST]
    few, tokens = texts[:TEXTS], sum(len(e.ids) for e in texts)
    scale = tokens / sum(len(e.ids) for e in few)
    with own_threads(bench.threads, bench.clf.device):
        predict(bench.clf, few)  # the first pass of a process is slow
        began = time.perf_counter()
        predict(bench.clf, few)
        scoring = (time.perf_counter() - began) * scale
        seconds: dict[str, float] = {}
        for measure in measures:
            began = time.perf_counter()
            attributions(bench.clf, few, methods.choose(measure), "gold")
            seconds[measure] = (time.perf_counter() - began) * scale
    return Timing(epoch=0.0, scoring=scoring, explain=seconds, epochs=0, stops_early=False, texts=len(texts))


# -- cells --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _bench(out: str, seed: int, model: str, spec: str) -> Bench:
    bench = bench_of(read_experiment(out), seed, model)
    note_model(bench)
    return bench


def _opened(out: str, seed: int, model: str) -> Bench:
    return _bench(out, seed, model, store.stable_hash(store.read_json(Path(out) / "spec.json")))


def ends(*, out: str, seed: int, model: str) -> None:
    """The model's scores on whole texts and on texts with everything masked."""
    bench = _opened(out, seed, model)
    every = {TEST: [np.flatnonzero(e.free) for e in bench.encoded[TEST]]}
    for name, amount in (("whole", Amount(0)), ("masked", Amount(100))):
        _score(bench, bench.place / name, every, amount)


def curve(*, out: str, seed: int, model: str, measure: str, recursive: bool, size: int, unit: Unit, last: int) -> None:
    """All points of one measure and model, one after the other."""
    bench, steps = _opened(out, seed, model), Steps(size, unit, last)
    here = bench.place / curve_place(measure, steps, recursive)
    if measure in FIXED:
        orders = {TEST: [FIXED[measure](e, seed) for e in bench.encoded[TEST]]}
        for amount in steps.amounts:
            _score(bench, here / amount.name, orders, amount)
        return
    choice = methods.choose(measure)
    held = bench.place / place(measure) / "order"
    explain(bench, choice, None, held)
    before: Amount | None = None
    for amount in steps.amounts:
        if before is not None and recursive:
            held = explain_anew(bench, choice, here / before.name, held, before, None)
        _score(bench, here / amount.name, read_orders(bench, held), amount)
        before = amount


def _score(bench: Bench, folder: Path, orders: Orders, amount: Amount) -> None:
    """A point: the model's scores on the test texts with so much masked."""
    with alone(folder) as work:
        if work is None or (work / POINT).exists():
            return
        began = time.monotonic()
        with own_threads(bench.threads, bench.clf.device):
            answers = predict(bench.clf, masked_texts(bench, orders, amount)[TEST])
        scores = {TEST: score(answers, bench.gold[TEST], bench.clf.kind)}
        spent = round(time.monotonic() - began, 3)
        store.write_json(work / POINT, Point(scores=scores, epochs=0, best_epoch=0, dev=(), seconds=spent))
