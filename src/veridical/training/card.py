"""A run's model card: what the model is, how good and how sure that is, and which of its explanations to believe.

The card is Markdown under YAML that the hub reads (`huggingface_hub.ModelCard`). Names from outside are escaped, and
folders of this machine are not told: a card is made to be published.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCardData

from veridical.audits.caveats import caveats
from veridical.audits.known_error import KNOWN
from veridical.audits.record import SUMMARY, AuditSummary, Verdict, read_summary
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.core.readable import read_utf8
from veridical.core.spec import Spec, read_place
from veridical.core.statistics import Estimate
from veridical.core.values import write
from veridical.model.load import load
from veridical.training.card_scores import SplitScores, scores_with_intervals
from veridical.training.train import SCORES, Run, read_run

CARD = "README.md"
MARK = "<!-- Written by `veridical card`, which writes it anew; without this line it leaves the file alone. -->"
BASES = {
    "minilm": "sentence-transformers/all-MiniLM-L6-v2",
    "mpnet": "sentence-transformers/all-mpnet-base-v2",
    "smollm2": "HuggingFaceTB/SmolLM2-135M-Instruct",
}  # embedded encoders -> what the hub calls them
OWN_TYPES = ("bilstm-attention", "big_bird_tanh")  # which plain transformers cannot load
LISTS = {
    "believe": "Believe",
    "as_good": "As good",
    "open": "Open: not told apart",
    "behind": "Worse",
    "chance": "Do not use: no better than chance",
}


@dataclass(frozen=True)
class CardFacts:
    """What a card is written from."""

    name: str  # of the model
    address: str  # by which it is loaded
    run: Run
    spec: dict[str, Any]
    stamp: dict[str, Any]
    labels: tuple[str, ...]
    config: dict[str, Any]  # of the model
    splits: tuple[SplitScores, ...]
    audit: AuditSummary | None
    page: str  # where the audit's page lies, as a link; none where it goes elsewhere than the card


def model_card(
    run: Run | str | Path,
    audit: str | Path | None = None,
    *,
    name: str | None = None,
    license: str | None = None,
    language: str | None = None,
    links: bool = True,
) -> str:
    """The card of a finished run, with the verdict of an audit of its model if there is one.

    `name` is what the model is called (a hub id), `links=False` leaves out links to files of this machine.
    """
    facts = _facts(run if isinstance(run, Run) else read_run(run), audit, name, links)
    data = _metadata(facts, license, language)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(_text(facts)))
    return f"---\n{data.to_yaml()}\n---\n\n{MARK}\n\n{text}\n"


def write_card(run: Run | str | Path, text: str) -> Path:
    """Put a card into the folder of its run; one that somebody else wrote stays."""
    path = (run.folder if isinstance(run, Run) else Path(run)) / CARD
    if os.path.lexists(path) and MARK not in read_utf8(path):
        raise InputError(f"{path} is there and was not written by `veridical card`; move it away, or print the card.")
    store.write_text(path, text)
    return path


# -- what it is written from --------------------------------------------------------------------------------


def _facts(run: Run, audit: str | Path | None, name: str | None, links: bool) -> CardFacts:
    if run.failed:
        raise InputError(f"The run {run.folder} failed and kept no model, so there is nothing to describe.")
    summary, page = None, ""
    if audit is not None:
        summary = _audit_of(run, Path(audit))
        if links and (Path(audit) / "report.html").exists():
            page = Path(os.path.relpath(Path(audit) / "report.html", run.folder)).as_posix()
    spec = stored.read_fields(run.folder / "spec.json", "data", "model", "objective", "seed", "train")
    return CardFacts(
        name=name or f"{store.slug(_public(spec['model']))}-{store.slug(_public(spec['data']['name']))}",
        address=name if name is not None and "/" in name else "path/to/this/folder",
        run=run,
        spec=spec,
        stamp=stored.read_fields(run.folder / "stamp.json", "veridical", "torch", "transformers"),
        labels=tuple(stored.read_fields(run.folder / SCORES, "labels")["labels"]),
        config=stored.read_fields(run.folder / "model" / "config.json", "model_type"),
        splits=tuple(scores_with_intervals(run.folder)),
        audit=summary,
        page=page,
    )


def _audit_of(run: Run, folder: Path) -> AuditSummary:
    """An audit, if it is one of this very model."""
    if not (folder / SUMMARY).exists():
        raise InputError(f"{folder} has no {SUMMARY}; name the folder of a finished audit.")
    told = stored.read_fields(folder / "spec.json", "model.hash")["model"]["hash"]
    own = load(run.folder, device="cpu").fingerprint()
    if told != own:
        raise InputError(
            f"The audit {folder} is of other weights ({told}) than those of the run {run.folder} ({own}); name an "
            "audit of this run, or audit it first."
        )
    return read_summary(folder)


def _public(name: str) -> str:
    """A name as it may be published: of paths of this machine, in its options too, their last part."""
    typed = Spec(name) if os.path.exists(name) else Spec.read(name)
    options = {key: _last_part(value) for key, value in typed.options.items()}
    return Spec(_last_part(typed.name), options).write()


def _last_part(text: str) -> str:
    return Path(text).name if text.startswith(("/", "~", ".", "\\")) or os.path.exists(text) else text


def _base(facts: CardFacts) -> str | None:
    """What the model was fine-tuned from, as the hub calls it."""
    name = read_place(facts.spec["model"]).name
    if name in BASES:
        return BASES[name]
    return name if re.fullmatch(r"[\w-][\w.-]*/[\w.-]+", name) and not os.path.exists(name) else None


# -- what the hub reads -------------------------------------------------------------------------------------


def _metadata(facts: CardFacts, license: str | None, language: str | None) -> ModelCardData:
    data = _public(facts.spec["data"]["name"])
    on_hub = re.split("[:@]", data)[1] if data.startswith("hub:") else None
    own_type = facts.config["model_type"] in OWN_TYPES
    return ModelCardData(
        language=language,
        license=license,
        library_name=None if own_type else "transformers",
        pipeline_tag="text-classification",
        tags=["veridical", "explainability", "faithfulness", "text-classification"],
        base_model=_base(facts),
        datasets=None if on_hub is None else [on_hub],
        metrics=["accuracy", "f1"],
        model_name=facts.name,
        eval_results=[
            EvalResult(
                task_type="text-classification",
                dataset_type=on_hub or data,
                dataset_name=data,
                dataset_split=own.split,
                metric_type=kind,
                metric_name=title,
                metric_value=round(value, 6),
                metric_args=None if low is None or high is None else {"interval_95": [round(low, 6), round(high, 6)]},
            )
            for own in facts.splits
            for kind, title, value, low, high in _measured(own)
        ],
    )


def _measured(own: SplitScores) -> Iterator[tuple[str, str, float, float | None, float | None]]:
    """Kind, name, value and interval of what can be compared between models."""
    for kind, title, found in (("accuracy", "Accuracy", own.accuracy), ("f1", "Macro F1", own.macro_f1)):
        if found.mean is not None:
            yield kind, title, found.mean, found.low, found.high
    yield "expected_calibration_error", "Calibration error", own.calibration_error, None, None


# -- what people read ---------------------------------------------------------------------------------------


def plain(text: object) -> str:
    """Text that Markdown and HTML leave as it is, on one line."""
    line = html.escape(" ".join(str(text).split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", line)


def code(text: object) -> str:
    return f"`{' '.join(str(text).split()).replace('`', chr(39))}`"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') if cell.startswith('`') else cell for cell in cells)} |"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", _row(*head), _row(*("---" for _ in head)), *(_row(*row) for row in rows), ""]


def _with_interval(found: Estimate, sign: str = "") -> str:
    if found.mean is None:
        return "undefined"
    interval = "" if found.low is None else f" ({found.low:{sign}.3f} to {found.high:{sign}.3f})"
    return f"{found.mean:{sign}.3f}{interval}"


def _text(facts: CardFacts) -> Iterator[str]:
    base = _base(facts)
    origin = f"[{base}](https://huggingface.co/{base})" if base else code(_public(facts.spec["model"]))
    data = code(_public(facts.spec["data"]["name"]))
    yield f"# {plain(facts.name)}"
    yield ""
    yield (
        f"A text classifier ({plain(facts.config['model_type'])}; classes: {', '.join(map(plain, facts.labels))}) "
        f"trained from {origin} on {data}, with [how sure its scores are](#scores) and [which of its explanations to "
        "believe](#explanations)."
    )
    for section in (_use, _scores, _calibration, _explanations, _training, _limits):
        yield ""
        yield from section(facts)


def _use(facts: CardFacts) -> Iterator[str]:
    address = json.dumps(facts.address)
    yield "## Use\n\n```python"
    if facts.config["model_type"] not in OWN_TYPES and facts.address == facts.name:  # in a run it lies in model/
        yield f'from transformers import pipeline\n\nclassifier = pipeline("text-classification", {address})\n'
    believed = facts.audit.verdicts[0].believe if facts.audit is not None and facts.audit.verdicts else ()
    method = believed[0] if believed else "integrated_gradients"
    yield f'import veridical\n\nprint(veridical.explain(veridical.load({address}), "A text.", "{method}")[0])'
    yield "```"


def _scores(facts: CardFacts) -> Iterator[str]:
    yield "## Scores"
    rows = [
        [
            code(own.split),
            f"{own.texts:,}",
            _with_interval(own.accuracy),
            _with_interval(own.macro_f1),
            "undefined" if own.auroc is None else f"{own.auroc:.3f}",
            f"{own.majority:.3f}",
        ]
        for own in facts.splits
    ]
    yield from _table(["split", "texts", "accuracy", "macro-F1", "AUROC", "most frequent answer"], rows)
    yield (
        "In parentheses: 95% intervals over texts, exact for accuracy, by bootstrap for macro-F1. They are of this one "
        f"training (seed {facts.run.seed}): how far another seed would differ is not in them. The last column is the "
        "accuracy of always giving the most frequent answer."
    )
    if facts.spec["train"]["select"] != "last":
        yield "The epoch that was kept was chosen on `dev`, whose scores are therefore a little too good."


def _calibration(facts: CardFacts) -> Iterator[str]:
    yield "## Calibration"
    rows = [
        [code(own.split), f"{own.calibration_error:.3f}", f"{own.confidence:.3f}", _with_interval(own.excess, "+")]
        for own in facts.splits
    ]
    yield from _table(["split", "calibration error", "mean confidence", "confidence minus accuracy"], rows)
    yield (
        "The calibration error is the expected one, over 15 bins of equal width. Above 0 in the last column the model "
        "is surer than it is right."
    )


def _explanations(facts: CardFacts) -> Iterator[str]:
    yield "## Explanations\n"
    if facts.audit is None:
        yield "Not audited: which explanations of this model are faithful has not been measured (`veridical audit`)."
        return
    audit = facts.audit
    texts = {corpus.name: corpus for corpus in audit.corpora}
    for verdict in audit.verdicts:
        corpus = texts[verdict.corpus]
        kind = "" if corpus.role == "in" else ", out of the model's domain"
        yield f"**On {code(_public(verdict.corpus))}** ({verdict.texts} texts{kind}): {plain(verdict.sentence)}\n"
        yield from (f"**{plain(c.lead)}** {plain(c.words)}\n" for c in caveats(audit, verdict.corpus))
        yield from _lists(verdict)
        yield from (f"- {plain(note)}" for note in verdict.notes)
        yield ""
    page = f" [The audit's page]({facts.page})." if facts.page else ""
    judges = ", ".join(map(code, audit.verdicts[0].panel)) if audit.verdicts else ""
    yield (
        f"Audited with Veridical {plain(audit.veridical)} on {plain(audit.created)}: methods were compared by what "
        f"erasing the tokens they name does to the model, as judged by {judges or 'no metric'}.{page}"
    )


def _lists(verdict: Verdict) -> Iterator[str]:
    for name, title in LISTS.items():
        if methods := getattr(verdict, name):
            yield f"- {title}: {', '.join(map(code, methods))}"


def _training(facts: CardFacts) -> Iterator[str]:
    spec, run = facts.spec, facts.run
    limit = spec["data"]["limit"]
    versions = [f"{name} {plain(facts.stamp[name])}" for name in ("veridical", "torch", "transformers")]
    rows = [
        ["data", f"{code(_public(spec['data']['name']))}, content {code(spec['data']['hash'])}"],
        *([["limit", f"{limit:,} examples of every split"]] if limit else []),
        ["objective", code(spec["objective"])],
        *([["bound", code(spec["bound"])]] if "bound" in spec else []),
        ["seed", str(run.seed)],
        ["epochs run", f"{run.epochs}, of which number {run.best_epoch} was kept"],
        *([plain(name), code(_setting(value))] for name, value in spec["train"].items()),
        ["versions", ", ".join(versions)],
    ]
    yield "## Training"
    yield from _table(["setting", "value"], rows)


def _setting(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(write, value)) or "none"
    return "none" if value is None else write(value)


def _limits(facts: CardFacts) -> Iterator[str]:
    yield "## Limits\n"
    yield (
        "- The scores hold for texts like those of the data above. On other texts, and for groups of people that the "
        "data does not tell apart, nothing was measured here."
    )
    for split, lost in facts.run.cut.items():
        if lost["texts"]:
            yield (
                f"- {lost['texts']:,} {code(split)} texts are longer than the model reads; {lost['tokens']:,} tokens "
                "of them were left out."
            )
    if facts.audit is None:
        return
    yield (
        "- The verdict is on faithfulness: whether an explanation names what this model used. It says nothing of "
        "whether the model is right, fair, or reasons as people do, and holds for these weights alone."
    )
    settings, verdicts = facts.audit.settings, facts.audit.verdicts
    if settings.looks and verdicts and KNOWN.of(verdicts[0].panel, settings):
        yield f"- By the same rules the verdict was {KNOWN.share}, {KNOWN.where}."
    if any(not verdict.enough for verdict in verdicts):
        yield "- Where the texts were too few for a verdict, the lists above say so and are no recommendation."
