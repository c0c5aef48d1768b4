"""FRESH (Jain et al., 2020): explain a model, keep only the words it is said to rest on, learn the task from them.

The better a fresh classifier does on rationales alone, the more of what decides the label the explanation has found.
What it reads is all that it knows, so its own decision rests on the rationale by construction.

    DIR/spec.json  stamp.json                            what was asked for, and by which versions
    DIR/<objective>-<hash>/seed0/support/                the run on full text (see train.py)
    DIR/<objective>-<hash>/seed0/explained/<split>/      its explanations, in parts (see evaluate.py)
    DIR/<objective>-<hash>/seed0/<method>-<hash>/        rationales.parquet, and classifier/: the run on rationales
    DIR/random/seed0/                                    the same for random rationales, which no objective changes
    DIR/table.txt  table.csv  table.tex  summary.json    macro-F1 per corpus, method and objective

Every file is whole or absent and means that its stage is done, so the same call goes on wherever it was killed, and
more methods, objectives or seeds add to what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from veridical.attribution import Method
from veridical.attribution import methods as all_methods
from veridical.audits.compare_latex import to_latex
from veridical.audits.compare_table import Table, to_csv, to_text
from veridical.audits.evaluate import evaluate
from veridical.core import store, stored, tables
from veridical.core.errors import InputError
from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.core.records import Dataset, Example, Given
from veridical.core.registry import Choice
from veridical.core.text import words_of
from veridical.data import load_data
from veridical.data.labels import relabel
from veridical.data.split import normalised, sample
from veridical.grid.claim import claimed
from veridical.model.accuracy import score, targets
from veridical.model.ask import predict
from veridical.model.classifier import Classifier
from veridical.model.load import classifier_of, load
from veridical.model.target import classes_of, read_target
from veridical.retraining.extract import only, rationale_of
from veridical.retraining.fresh_result import Fresh
from veridical.retraining.fresh_table import F1, FULL, RANDOM, Key, tabulate
from veridical.retraining.options import Extractor, FreshOptions, seeds_of
from veridical.training.config import TrainConfig
from veridical.training.term import label as objective_label
from veridical.training.term import objective as read_objective
from veridical.training.train import train

HOME = "test"  # the split that stands for the data itself; other corpora are splits under their own names


# -- the experiment ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Experiment:
    folder: Path
    data: Dataset  # train, dev, test, and a split per corpus out of domain
    model: str
    methods: tuple[Choice[Method], ...]
    ratio: float
    extractor: Extractor
    target: str | int
    config: TrainConfig
    rationale_config: TrainConfig
    progress: bool | None


@dataclass(frozen=True)
class _Support:
    """A model to explain: one to be trained for an objective, or one that is given."""

    objective: str  # its column
    seed: int  # of its training, if it is trained here, and of the classifiers on its rationales
    given: Classifier | None
    place: Path


@takes(FreshOptions)
def fresh(options: FreshOptions) -> Fresh:
    """Macro-F1 of classifiers that read nothing but the words an explanation selects, beside that on full text.

    A support model is trained for every objective and seed, or `support` names finished ones (run folders, models).
    Its explanations by every method select `ratio` of the words of every text; a new `model` is trained on those of
    the train split, and scored on those of the test split and of the test split of every `ood` dataset. Random
    rationales are always among the methods. `seeds` is how many (0, 1, ...), or which.

    Returns:
        The table of macro-F1 by corpus, method and objective, which it prints; `.f1("attention")` is one figure of it.

    Example:
        >>> found = veridical.fresh("hutto/movies", methods=["attention", "lime"], out="fresh")
        >>> found.f1("attention") - found.f1("random")
    """
    config, rationale_config = options.settings()
    target, support, limit, progress = options.target, options.support, options.limit, options.progress
    dataset, dropped = _gather(options.data, options.ood, limit)
    if target == "gold" or not support:  # else the class is one of a given model's, which may name them otherwise
        which = read_target(target, dataset.labels)
        for examples in dataset.splits.values():  # a text without the class that is to be explained is told of now
            classes_of(which, examples, dataset.labels)
    experiment = _Experiment(
        folder=Path(options.out),
        data=dataset,
        model=options.model,
        methods=_with_random(all_methods.choose_all(options.methods)),
        ratio=options.ratio,
        extractor=options.extractor,
        target=target,
        config=config,
        rationale_config=rationale_config,
        progress=progress,
    )
    supports = _supports(experiment, options.objective, support, seeds_of(options.seeds))
    with claimed(experiment.folder, {"fresh": _settings(experiment, limit)}):
        store.write_json(experiment.folder / "stamp.json", store.stamp(threads=torch.get_num_threads()))
        values, cut = _compute(experiment, supports)
        table = tabulate(values, _notes(experiment, cut, dropped))
        return _write(experiment, table, limit, {"cut": cut, "dropped": dropped})


def _compute(
    experiment: _Experiment, supports: Sequence[_Support]
) -> tuple[dict[Key, dict[int, float | None]], dict[str, int]]:
    """Macro-F1 by corpus, method, objective and seed; and how many texts of which split were cut."""
    values: dict[Key, dict[int, float | None]] = {}
    cut: dict[str, int] = {}
    log = Report("FRESH", len(supports), progress=experiment.progress)
    for number, each in enumerate(supports, 1):
        log.say(f"{number} of {len(supports)}: {each.objective}, seed {each.seed}")
        for method, scores in _work(experiment, each, cut, log):
            for split, value in scores.items():
                corpus = experiment.data.name if split == HOME else split
                values.setdefault((corpus, method, each.objective), {})[each.seed] = value
    return values, cut


def _with_random(chosen: Sequence[Choice[Method]]) -> tuple[Choice[Method], ...]:
    """The methods, each once; random ones are drawn anew for each seed, so theirs is not an option here."""
    named = {choice.label: choice for choice in chosen if choice.entry.name != RANDOM}
    return (*named.values(), all_methods.choose(RANDOM))


def _gather(data: Given | Path, ood: Sequence[Given | Path], limit: int | None) -> tuple[Dataset, dict[str, int]]:
    """The data with the test texts of the other corpora as splits of their own, labels as it numbers them; and how many
    of theirs were dropped because they also stand in the training data."""

    def some(examples: Sequence[Example]) -> tuple[Example, ...]:
        return tuple(examples) if limit is None else sample(examples, limit, 0)

    home = load_data(data)
    for needed in ("train", HOME):
        if not home.splits.get(needed):
            raise InputError(
                f"{home.name} has no {needed} split (has {', '.join(home.splits)}); use other data, or name the splits "
                "of yours in a column `split` or as the keys of a dict."
            )
    splits = {name: some(examples) for name, examples in home.splits.items()}
    seen, dropped = {normalised(e.text) for e in splits["train"]}, {}
    for source in ood:
        other = load_data(source)
        if other.name == home.name or other.name in splits:
            raise InputError(
                f"The corpus {other.name!r} is named twice; name each once, an object by load_data(..., name=NAME)."
            )
        if not other.splits.get(HOME):
            raise InputError(f"{other.name} has no {HOME} split (has {', '.join(other.splits)}); use other data.")
        new = [e for e in other.splits[HOME] if normalised(e.text) not in seen]
        if not new:
            raise InputError(f"Every {HOME} text of {other.name} also stands in the training data; use other data.")
        dropped[other.name] = len(other.splits[HOME]) - len(new)
        splits[other.name] = tuple(relabel(some(new), other.labels, home.labels))
    for split, examples in splits.items():
        for example in examples:
            if not words_of(example.text):  # before hours of training, not after
                raise InputError(f"Example {example.id!r} ({split}) has no words to select from; leave it out.")
    return replace(home, splits=splits), dropped


def _supports(
    experiment: _Experiment, objective: str | Sequence[str], support: Any | Sequence[Any], seeds: Sequence[int]
) -> list[_Support]:
    """A support model per objective and seed, or those given: runs of ours with the seed they were trained with."""
    supports: list[_Support] = []
    for given in [support] if isinstance(support, (str, Path, Classifier)) else support:
        clf = classifier_of(given if isinstance(given, Classifier) else str(given))
        name, trained_with = clf.name, seeds
        spec = Path(str(given)) / "spec.json"
        if spec.exists() and {"objective", "seed"} <= (about := stored.read_fields(spec)).keys():
            name, trained_with = about["objective"], [about["seed"]]
        place = experiment.folder / f"{store.slug(name)}-{clf.fingerprint()[:8]}"
        supports += [_Support(name, seed, clf, place / f"seed{seed}") for seed in trained_with]
    if not supports:
        for spec in [objective] if isinstance(objective, str) else objective:
            name = objective_label(read_objective(spec))
            place = experiment.folder / f"{store.slug(name)}-{store.stable_hash(name)}"
            supports += [_Support(name, seed, None, place / f"seed{seed}") for seed in seeds]
    for a, b in combinations(supports, 2):
        if (a.objective, a.seed) == (b.objective, b.seed):
            raise InputError(f"{a.objective} with seed {a.seed} is named twice; name each once.")
    return supports


def _settings(experiment: _Experiment, limit: int | None) -> dict[str, Any]:
    return {
        "data": experiment.data.name,
        "texts": {split: store.stable_hash(examples) for split, examples in experiment.data.splits.items()},
        "limit": limit,
        "model": experiment.model,
        "ratio": experiment.ratio,
        "extractor": experiment.extractor,
        "target": experiment.target,
        "train": experiment.config,
        "rationale": experiment.rationale_config,
    }


# -- the stages ---------------------------------------------------------------------------------------------

F1s = Mapping[str, float | None]  # by split: the test split and the other corpora


def _work(experiment: _Experiment, support: _Support, cut: dict[str, int], log: Report) -> Iterator[tuple[str, F1s]]:
    """Each method's name with its macro-F1 on every corpus, full text first."""
    scored = [split for split in experiment.data.splits if split not in ("train", "dev")]
    if support.given is None:
        same: dict[str, Any] = {
            "objective": support.objective,
            "config": experiment.config,
            "progress": experiment.progress,
        }
        run = train(experiment.data, experiment.model, seed=support.seed, out=support.place / "support", **same)
        yield FULL, {split: run.scores.get(split, {}).get(F1) for split in scored}
    else:
        yield FULL, _predicted(experiment, support, scored)
    places = {choice.label: _place(experiment, support, choice) for choice in experiment.methods}
    # All rationales first: a method that does not work on this model says so before anything is trained on them.
    missing = [choice for choice in experiment.methods if not (places[choice.label] / "rationales.parquet").exists()]
    if missing:
        clf = support.given or load(support.place / "support")
        total = len(missing) * sum(map(len, experiment.data.splits.values()))
        with Report(
            f"explaining {support.objective}, seed {support.seed}", total, progress=experiment.progress
        ) as report:
            for choice in missing:
                _select(experiment, support, clf, choice, places[choice.label], report)
    for choice in experiment.methods:
        log.say(f"rationales by {choice.label}, {support.objective}, seed {support.seed}")
        rationales = _read(experiment, places[choice.label], cut)
        place = places[choice.label] / "classifier"
        run = train(
            rationales,
            experiment.model,
            seed=support.seed,
            config=experiment.rationale_config,
            out=place,
            progress=experiment.progress,
        )
        yield choice.label, {split: run.scores.get(split, {}).get(F1) for split in scored}


def _place(experiment: _Experiment, support: _Support, choice: Choice[Method]) -> Path:
    if choice.entry.name == RANDOM:
        return experiment.folder / RANDOM / f"seed{support.seed}"
    identity = {"name": choice.entry.name, "options": dict(choice.options), "version": choice.entry.version}
    return support.place / f"{store.slug(choice.label)}-{store.stable_hash(identity)}"


def _predicted(experiment: _Experiment, support: _Support, scored: Sequence[str]) -> F1s:
    """A given model's macro-F1 on the full texts; None where its labels are not the data's."""
    path, clf = support.place / "full.json", support.given
    assert clf is not None
    if not path.exists():
        scores: dict[str, float | None] = {}
        for split in scored:
            examples = relabel(experiment.data.splits[split], experiment.data.labels, clf.labels)
            known = all(e.label is not None for e in examples)
            gold = targets(examples, clf.labels, clf.kind == "multi") if known else None
            answers = predict(clf, clf.encode(examples))
            scores[split] = None if gold is None else score(answers, gold, clf.kind)[F1]
        store.write_json(path, scores)
    return store.read_json(path)


def _select(
    experiment: _Experiment, support: _Support, clf: Classifier, choice: Choice[Method], place: Path, report: Report
) -> None:
    """Explain every text of every split and write down which words are selected."""
    rows = []
    random = choice.entry.name == RANDOM
    spec = all_methods.choose(RANDOM, seed=support.seed).label if random else choice.label
    for split, examples in experiment.data.splits.items():
        explained = evaluate(
            clf,
            relabel(examples, experiment.data.labels, clf.labels),
            spec,
            None,  # metrics
            target=experiment.target,
            corpus=split,
            out=support.place / "explained" / store.slug(split),
            tick=lambda count, name=choice.label: report.advance(name, steps=count),
        )
        for example, attribution in zip(examples, explained.attributions[spec], strict=True):
            words = rationale_of(attribution, ratio=experiment.ratio, extractor=experiment.extractor)
            row = {"split": split, "id": example.id, "words": words, "text": only(example, words).text}
            rows.append(row | {"cut": attribution.encoded.cut})
    store.write_parquet(place / "rationales.parquet", tables.to_columns(rows))


def _read(experiment: _Experiment, place: Path, cut: dict[str, int]) -> Dataset:
    """The data with rationales for texts; `cut` is told how many texts of each split were too long to explain whole."""
    rows = store.read_parquet(place / "rationales.parquet").to_pylist()
    splits: dict[str, tuple[Example, ...]] = {}
    for split, examples in experiment.data.splits.items():
        selected = [row for row in rows if row["split"] == split]
        splits[split] = tuple(only(e, row["words"]) for e, row in zip(examples, selected, strict=True))
        cut[split] = max(cut.get(split, 0), sum(row["cut"] > 0 for row in selected))
    return replace(experiment.data, splits=splits)


# -- what is said of it -------------------------------------------------------------------------------------


def _notes(experiment: _Experiment, cut: Mapping[str, int], dropped: Mapping[str, int]) -> tuple[str, ...]:
    how = {"topk": "the highest scored ones", "contiguous": "the span of words with the highest sum of scores"}
    notes = [
        f"{FULL}: the support model on the whole texts. All others: a classifier that reads {experiment.ratio:.0%} of "
        f"the words, {how[experiment.extractor]}; {RANDOM} scores are the floor."
    ]
    for split, count in cut.items():
        if count:
            notes.append(
                f"{count} of {len(experiment.data.splits[split])} texts of {split} are longer than the model reads: "
                "their rationales are of what it read."
            )
    for corpus, count in dropped.items():
        if count:
            notes.append(f"{count} texts of {corpus} also stand in the training data and were dropped.")
    return tuple(notes)


def _write(experiment: _Experiment, table: Table, limit: int | None, facts: Mapping[str, Any]) -> Fresh:
    summary = {
        "settings": _settings(experiment, limit),
        "methods": [choice.label for choice in experiment.methods],
        "objectives": list(table.models),
        "entries": table.entries,
        "tests": table.tests,
        "notes": table.notes,
        **facts,
    }
    for name, text in (("table.txt", to_text(table)), ("table.csv", to_csv(table)), ("table.tex", to_latex(table))):
        store.write_text(experiment.folder / name, text)
    store.write_json(experiment.folder / "summary.json", summary)
    return Fresh(experiment.folder, table, store.plain(summary))
