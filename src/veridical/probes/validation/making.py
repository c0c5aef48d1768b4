"""Making a world: a model is trained until it has learnt the rule, explained by every method, and every explanation is
scored by every metric that might judge. Who judges, and how, is settled later, from what lies here:

    worlds/<world>/run/            the training, until the world is done
    worlds/<world>/texts.parquet   what the model says of each text, whether the planted words carry it, which it needs
    worlds/<world>/scores/         text, method, metric, control, value: a part for every 16 texts
    worlds/<world>/world.json      written last: a world that has it is done

It may be called again at any time: what is done is found done, what is half done goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from veridical.attribution import methods as all_methods
from veridical.audits.evaluate import Evaluation, evaluate
from veridical.audits.plan import ORDERS, weighty_text
from veridical.audits.selection import tried
from veridical.core import store, stored
from veridical.core.records import Encoded, Example, Span
from veridical.core.spec import base_name
from veridical.core.text import marked
from veridical.data import load_data
from veridical.data.planted import NEUTRAL, SHORTCUT, Rule
from veridical.explanations.explain import attributions, explained
from veridical.model.ask import answer, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import erase
from veridical.model.load import load
from veridical.probes.validation.world import Setting, World, audited
from veridical.training.config import defaults, settings
from veridical.training.task import own_threads
from veridical.training.train import Run, train

FACTS, TEXTS, SCORES, RUN = "world.json", "texts.parquet", "scores", "run"
PART = 16  # texts whose scores are one part: what a killed worker loses of them
CONTROL = "permutation"
NEEDED = "needed"  # in the place of a metric's name: `truth` with the words that the model needs as the only ones
DEAR = ("kernel_shap", "lime")  # hundreds of passes a text: in worlds of the BiLSTM only, where a pass costs little
LR = 3e-4  # of an encoder cut to a few layers: with the usual 5e-5 it knows nothing of `order` after an epoch


@dataclass(frozen=True)
class Facts:
    """What `world.json` holds."""

    SCHEMA: ClassVar[int] = 1

    world: World
    learnt: bool  # if not, nothing was explained
    epochs: int
    dev: float  # accuracy
    test: float
    texts: int
    carried: int  # texts whose prediction changes when the planted words are deleted
    by_shortcut: int  # of these, texts that it changes too if the shortcut's word is
    passes: Mapping[str, float]  # method, but no random order -> passes to explain a text, as an audit plans them
    left_out: tuple[str, ...]  # methods, and why

    @property
    def methods(self) -> tuple[str, ...]:
        return tuple(self.passes)


def place(out: str | Path, world: World) -> Path:
    return Path(out) / "worlds" / world.key


def read_facts(out: str | Path, world: World) -> Facts | None:
    """What is known of a world; none while it is not done."""
    path = place(out, world) / FACTS
    return stored.read(path, Facts) if path.exists() else None


def make(*, out: str, rule: Rule, copies: int, shortcut: float, seed: int, model: str) -> None:
    """Train, explain and score one world."""
    setting, world = Setting.read(out), World(rule, copies, shortcut, seed, model)
    folder = place(out, world)
    if not (folder / FACTS).exists():
        run = _trained(world, setting, folder / RUN)
        stored.write(folder / FACTS, _scored(world, setting, run, folder))
    store.remove(folder / RUN)  # large, and not needed any more


def _trained(world: World, setting: Setting, folder: Path) -> Run:
    how = {"select": "accuracy", "enough": setting.learnt, "epochs": setting.epochs, "threads": 1}
    if not is_small(world.model):  # a rate that falls to 0 would depend on how many epochs there might be
        how |= {"lr": LR, "schedule": "constant", "warmup": 0.0}
    config = settings(how, defaults(world.model))
    return train(world.data(setting), world.model, seed=world.seed, config=config, out=folder, progress=False)


def _scored(world: World, setting: Setting, run: Run, folder: Path) -> Facts:
    accuracy = {split: float(run.scores[split]["accuracy"] or 0.0) for split in ("dev", "test")}
    learnt = accuracy["dev"] >= setting.learnt
    carried, shortcut, passes, left_out = np.zeros(0, bool), np.zeros(0, bool), {}, []
    if learnt:
        clf = load(run.folder)
        with own_threads(1, clf.device):
            encoded = clf.encode(audited(load_data(world.data(setting)).splits["test"], setting.texts, world.seed))
            named = [spec for spec in setting.methods if is_small(world.model) or base_name(spec) not in DEAR]
            costs, left_out = tried(clf, weighty_text(encoded), [*named, *ORDERS])
            works = list(costs)
            passes = {label: round(cost, 3) for label, cost in costs.items() if label not in ORDERS}
            needed = needed_words(clf, encoded)
            carried, shortcut = _write_texts(clf, encoded, needed, folder / TEXTS)
            for part in store.parts(folder / SCORES, len(encoded), PART):
                if not part.done:
                    rows = slice(part.start, part.stop)
                    cells = _part(clf, setting, works, encoded[rows], needed[rows], part.start)
                    store.write_parquet(part.path, cells)
    return Facts(
        world=world,
        learnt=learnt,
        epochs=run.epochs,
        dev=accuracy["dev"],
        test=accuracy["test"],
        texts=len(carried),
        carried=int(carried.sum()),
        by_shortcut=int((carried & shortcut).sum()),
        passes=passes,
        left_out=tuple(left_out),
    )


# -- texts --------------------------------------------------------------------------------------------------


def needed_words(clf: Classifier, encoded: Sequence[Encoded]) -> list[tuple[Span, ...]]:
    """Of each text the planted words without which the model says something else: those that it does not recognise
    the class without, if all their copies become a neutral adjective (most of the neutral ones, one after the other).

    Where the order of two words decides, a model may have learnt to look for the first of them alone. Where no word is
    needed by itself, all are. Words are replaced, not deleted: the text stays one of those that the model knows.
    """
    predicted = predict(clf, encoded).logits.argmax(1)
    forms = [_by_form(e.example) for e in encoded]
    asked = [
        _written_over(encoded[i].example, spans, neutral)
        for i, words in enumerate(forms)
        for spans in words.values()
        for neutral in NEUTRAL
    ]
    said = iter(predict(clf, clf.encode(asked)).logits.argmax(1)) if asked else iter(())
    needed = []
    for i, words in enumerate(forms):
        changes = {form: sum(next(said) != predicted[i] for _ in NEUTRAL) for form in words}
        alone = [form for form, count in changes.items() if count > len(NEUTRAL) / 2]
        needed.append(tuple(sorted(span for form in alone or words for span in words[form])))
    return needed


def _by_form(example: Example) -> dict[str, list[Span]]:
    """The planted words, each with all its copies."""
    forms: dict[str, list[Span]] = {}
    for start, end in example.rationale:
        forms.setdefault(example.text[start:end], []).append((start, end))
    return forms


def _written_over(example: Example, spans: Sequence[Span], word: str) -> Example:
    text = example.text
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + word + text[end:]
    return Example(example.id, text)


def _write_texts(
    clf: Classifier, encoded: Sequence[Encoded], needed: Sequence[Sequence[Span]], path: Path
) -> tuple[np.ndarray, np.ndarray]:
    """Which predictions the planted words carry, and which the shortcut's word does: deleting them changes it."""
    before = predict(clf, encoded)
    predicted = before.logits.argmax(1)
    changed = []
    for positions in ([np.flatnonzero(marked(e)) for e in encoded], [_cue(e) for e in encoded]):
        asked = [
            erase(explained(clf, e, int(predicted[i]), before.logits[i], before.probabilities[i]), gone, "delete")
            for i, (e, gone) in enumerate(zip(encoded, positions, strict=True))
        ]
        there = np.array([len(gone) > 0 for gone in positions])
        changed.append(there & (answer(clf, asked).logits.argmax(1) != predicted))
    columns: dict[str, Any] = {
        "id": [e.example.id for e in encoded],
        "label": [e.example.label for e in encoded],
        "predicted": predicted.tolist(),
        "carried": changed[0].tolist(),
        "by_shortcut": changed[1].tolist(),
        "needed": [_forms(e.example, spans) for e, spans in zip(encoded, needed, strict=True)],
    }
    store.write_parquet(path, columns)
    return changed[0], changed[1]


def _forms(example: Example, spans: Sequence[Span]) -> str:
    """The words at these places, each once: `funny sad`."""
    return " ".join(dict.fromkeys(example.text[start:end] for start, end in spans))


def _cue(encoded: Encoded) -> np.ndarray:
    """The positions of the shortcut's word."""
    text = encoded.example.text
    there = [text[start:end] in SHORTCUT for start, end in encoded.spans]
    return np.flatnonzero(np.array(there) & np.array(encoded.free))


# -- scores -------------------------------------------------------------------------------------------------


def _part(
    clf: Classifier,
    setting: Setting,
    works: Sequence[str],
    encoded: Sequence[Encoded],
    needed: Sequence[tuple[Span, ...]],
    start: int,
) -> Mapping[str, Sequence[Any]]:
    """All scores of some texts, of which the first is number `start`."""
    explanations = [a for choice in all_methods.choose_all(works) for a in attributions(clf, encoded, choice)]
    dear = start < setting.dear_texts
    wanted = [metric for metric in setting.metrics if dear or not is_dear(metric)]
    texts = [e.example for e in encoded]
    number = {text.id: start + i for i, text in enumerate(texts)}
    both = [evaluate(clf, texts, (), [*wanted, "truth", "truth:abs=true"], explanations=explanations)]
    if dear and setting.shaped:
        both.append(evaluate(clf, texts, (), setting.shaped, explanations=explanations, controls=(CONTROL,)))
    rows = [row for evaluation in both for row in _rows(evaluation, number)]
    narrowed = [replace(text, rationale=spans) for text, spans in zip(texts, needed, strict=True)]
    by_need = _rows(evaluate(clf, narrowed, (), ["truth"], explanations=explanations), number)
    rows += [(text, method, NEEDED, control, value) for text, method, _, control, value in by_need]
    return dict(zip(("text", "method", "metric", "control", "value"), zip(*rows, strict=True), strict=True))


def _rows(evaluation: Evaluation, number: Mapping[str, int]) -> list[tuple[int, str, str, str, float | None]]:
    return [(number[c.example], c.method, c.metric, c.control, c.score.value) for c in evaluation.cells]


def is_small(model: str) -> bool:
    """Whether a pass of it costs next to nothing."""
    return base_name(model) == "bilstm"


def is_dear(metric: str) -> bool:
    """Whether a metric asks so much that it is asked for on the first texts only."""
    return metric.startswith(("soft_", "monotonicity"))
