"""`veridical prompt`: a language model and a prompt as a classifier's folder, which every other verb takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veridical.cli.speech import print_json, say
from veridical.core.errors import InputError
from veridical.core.options import Budget, Data, Device, Help, Json, Place, Split, Texts
from veridical.core.place import A_FOLDER
from veridical.core.readable import shown, shown_path
from veridical.model.names import insist_on_model
from veridical.model.template import insist_on_prompt

if TYPE_CHECKING:
    from veridical.model.classifier import Classifier

PROMPT = "A text in which {text} stands once, and after which a label follows; \\n is a line break."
LABELS = "A class and the word that stands for it, space included: 'good= positive'. Given again for each."
Source = Annotated[str, Help("A causal language model: smollm2, a folder, a hub id.", "MODEL", argument=True)]


def words_of(typed: Sequence[str]) -> dict[str, str]:
    """`NAME=WORD` as a mapping; spaces of the word stay."""
    words: dict[str, str] = {}
    for given in typed:
        name, equals, word = given.partition("=")
        if not equals or not name.strip() or name.strip() in words:
            raise InputError(
                f"--labels is {shown(given)}; write NAME=WORD, each class once, such as 'positive= positive'."
            )
        words[name.strip()] = word
    return words


Labels = Annotated[Mapping[str, str], Help(LABELS, "NAME=WORD", "--labels", reads=words_of, commas=False)]
Tried = Annotated[Data | None, Help("Data on whose texts it is tried: how often it is right.", "DATA")]
Out = Annotated[Place, Help("Folder for the classifier.", "DIR"), A_FOLDER]


def prompt(
    model: Source,
    prompt: Annotated[str, Help(PROMPT, "TEXT")],
    labels: Labels,
    out: Out,
    chat: Annotated[bool, Help("Put it into the model's chat template, as the user's turn.")] = False,
    data: Tried = None,
    split: Split = "dev",
    limit: Texts = 200,
    device: Device = None,
    budget: Budget = None,
    as_json: Json = False,
) -> None:
    """Make a classifier of a language model: a prompt around the text, and a word for each class.

    What is written is a classifier like any other, for every other verb. Only the text is explained and erased, and
    cut where it is too long. Every label has to be one token.

    Example: veridical prompt smollm2 --prompt 'Review:\\n{text}\\nSentiment:' --labels 'negative= negative'
    --labels 'positive= positive' --data hutto/movies --out prompted
    """
    written = prompt.replace("\\n", "\n")
    insist_on_prompt(written, labels, chat=chat)
    if os.path.lexists(out):
        raise InputError(f"{shown_path(out)} is there already; name a folder that is not, or move it away.")
    insist_on_model(model, start=True)
    examples = _examples(data, split, limit, labels)
    from veridical.core import store
    from veridical.model.load import load

    clf = load(model, prompt=written, labels=labels, chat=chat)
    scores = _scores(clf, examples)
    with store.replacing(out) as temporary:  # whole or not at all
        clf.save(temporary)
    if as_json:
        print_json({"out": str(out), "labels": list(clf.labels), "texts": len(examples), "scores": scores})
        return
    if scores:
        typer.echo(
            f"accuracy {scores['accuracy']:.3f}, macro-F1 {scores['macro_f1']:.3f} on {len(examples)} texts of "
            f"{data} ({split})"
        )
        say("A prompt chosen by these texts is better on them than on others: judge it by texts that it has not seen.")
    typer.echo(str(out))


def _examples(data: Any, split: str, limit: int, labels: Mapping[str, str]) -> list[Any]:
    """The texts to score the classifier on, with its classes; looked at before the model is loaded."""
    if data is None:
        return []
    from veridical.data import load_data
    from veridical.data.labels import relabel

    dataset = load_data(data, limit=limit, splits=[split])
    texts = relabel(dataset.splits[split], dataset.labels, tuple(labels))
    if any(text.label is None for text in texts):
        raise InputError(
            f"The labels are {', '.join(labels)}, and the classes of {data} are "
            f"{', '.join(dataset.labels) or 'none'}; call the labels as the data does, or leave --data out."
        )
    return texts


def _scores(clf: Classifier, examples: Sequence[Any]) -> dict[str, float | None]:
    if not examples:
        return {}
    from veridical.model.accuracy import score, targets
    from veridical.model.ask import predict

    return score(predict(clf, clf.encode(examples)), targets(examples, clf.labels, multilabel=False), clf.kind)
