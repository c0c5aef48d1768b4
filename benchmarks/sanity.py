"""Whether the metrics can be trusted where the truth is known: each should put the oracle first and its opposite last.

On planted data the deciding words are known. The oracle scores them 1 and all other tokens 0; its opposite scores them
-1; random scores are Gaussian. A metric that does not order oracle > random > opposite would mislead about methods too.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

import veridical
from benchmarks.results import machine, markdown, show, write_json, write_text
from veridical.core import assets
from veridical.core.records import Attribution, Example
from veridical.core.text import marked
from veridical.data.split import sample
from veridical.metric import metrics
from veridical.model.ask import predict
from veridical.model.classifier import Classifier

DATA = (
    "planted:size=2000",
    "planted:size=2000:copies=2",
    "planted:size=2000:rule=conjunction",
    "planted:size=2000:rule=order",
)
ORACLE, RANDOM, OPPOSITE = "oracle", "random", "inverted oracle"


@dataclass(frozen=True, slots=True)
class Order:
    """One metric on one model. Margins are means of paired differences turned so that over 0 is right, with their
    standard errors; None where no text has a value."""

    data: str
    model: str
    accuracy: float
    texts: int
    metric: str
    better: str
    means: dict[str, float | None]
    undefined: int  # texts without a value for at least one of the three
    upper: tuple[float, float] | None  # oracle over random
    lower: tuple[float, float] | None  # random over the opposite

    @property
    def holds(self) -> bool:
        return self.upper is not None and self.lower is not None and self.upper[0] > 0 and self.lower[0] > 0

    @property
    def clear(self) -> bool:
        """Both margins are over two standard errors."""
        return self.holds and all(margin > 2 * error for margin, error in (self.upper, self.lower))  # type: ignore


def faithfulness() -> list[str]:
    return [metric.name for metric in metrics if metric.kind == "faithfulness"]


def trained(data: str, model: str) -> Path:
    """The folder of a classifier for planted data, trained at the first call."""
    name = f"{model}-{data.replace(':', '-').replace('=', '')}"
    return veridical.train(data, model, out=assets.cache_root() / "benchmarks" / name).folder


def truths(clf: Classifier, examples: Sequence[Example]) -> list[Attribution]:
    """The oracle and its opposite, for the predicted class."""
    encoded = clf.encode(examples)
    answers = predict(clf, encoded)
    return [
        Attribution(
            e, int(answers.logits[row].argmax()), sign * marked(e).astype(np.float32), answers.probabilities[row], name
        )
        for name, sign in ((ORACLE, 1), (OPPOSITE, -1))
        for row, e in enumerate(encoded)
    ]


def orders(data: str, model: str, texts: int, seed: int = 0) -> list[Order]:
    """How each metric orders the three, on test texts that something in them decides and the model gets right."""
    clf = veridical.load(trained(data, model))
    known = [e for e in veridical.load_data(data).splits["test"] if e.rationale]
    right = predict(clf, clf.encode(known)).logits.argmax(-1) == [e.label for e in known]
    examples = sample([e for e, ok in zip(known, right, strict=True) if ok], texts, seed)
    measures = faithfulness()
    found = veridical.evaluate(clf, examples, ["random"], measures, explanations=truths(clf, examples), seed=seed)
    by = {(c.metric, c.method, c.example): c.score.value for c in found.cells}
    rows = []
    for name in measures:
        better = metrics[name].better
        values = {who: [by[name, who, e.id] for e in examples] for who in (ORACLE, RANDOM, OPPOSITE)}
        paired = [row for row in zip(*values.values(), strict=True) if None not in row]
        sign = 1 if better == "higher" else -1
        table = sign * np.array(paired, dtype=float).reshape(-1, 3)
        rows.append(
            Order(
                data=data,
                model=model,
                accuracy=float(right.mean()),
                texts=len(examples),
                metric=name,
                better=better,
                means={who: _mean(own) for who, own in values.items()},
                undefined=len(examples) - len(paired),
                upper=_margin(table[:, 0] - table[:, 1]),
                lower=_margin(table[:, 1] - table[:, 2]),
            )
        )
    return rows


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [v for v in values if v is not None]
    return float(np.mean(defined)) if defined else None


def _margin(differences: np.ndarray) -> tuple[float, float] | None:
    if len(differences) < 2:
        return None
    return float(differences.mean()), float(differences.std(ddof=1) / len(differences) ** 0.5)


def table(rows: Sequence[Order]) -> tuple[list[str], list[list[str]]]:
    head = ["data", "metric", "better", ORACLE, RANDOM, OPPOSITE, "oracle over random", "random over opposite"]
    head += ["undefined", "ordered"]

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.3f}"

    def margin(value: tuple[float, float] | None) -> str:
        return "-" if value is None else f"{value[0]:+.3f} ± {value[1]:.3f}"

    return head, [
        [
            row.data,
            row.metric,
            row.better,
            *(number(row.means[who]) for who in (ORACLE, RANDOM, OPPOSITE)),
            margin(row.upper),
            margin(row.lower),
            f"{row.undefined} of {row.texts}",
            "yes" if row.clear else "within the noise" if row.holds else "NO",
        ]
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=",".join(DATA), help="(default: %(default)s)")
    parser.add_argument("--model", default="bilstm", help="bilstm or minilm (default: %(default)s)")
    parser.add_argument("--texts", type=int, default=96, help="of each (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    rows = [row for data in given.data.split(",") for row in orders(data, given.model, given.texts)]
    for data, accuracy in {row.data: row.accuracy for row in rows}.items():
        print(f"{given.model} gets {accuracy:.1%} of the texts of {data} right that something in them decides")
    show(f"{given.model}: how metrics order what is known", *table(rows))
    record = {
        "machine": machine(given.threads),
        "rows": [{**asdict(row), "holds": row.holds, "clear": row.clear} for row in rows],
    }
    print(write_json(given.out / f"sanity-{given.model}.json", record))
    print(write_text(given.out / f"sanity-{given.model}.md", markdown(*table(rows)) + "\n"))


if __name__ == "__main__":
    main()
