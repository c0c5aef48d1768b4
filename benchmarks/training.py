"""What the training loop adds to its steps: an epoch of the BiLSTM as Recursive ROAR trains it over a plain torch loop.

Ours is a training of so many epochs from the seed's first weights, divided by their number: batches put together,
losses, gradients, their norm, updates, log, checkpoints, the dev split after every epoch. Plain is the same step (the
same widths, batches and optimiser) on batches that were padded beforehand, and nothing else, written in two ways: with
padded `nn.LSTM`s, whose backward direction reads the padding of shorter texts first and so is not quite the same model,
and with packed ones, which are. Processor time of one thread; the ratio is to the plain epochs right before and after.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.timing import clock
from veridical.retraining.roar.experiment import Bench, asked, make_bench
from veridical.training.loop import fit
from veridical.training.options import SAVE_STEPS
from veridical.training.rate import order
from veridical.training.task import Task
from veridical.training.term import objective, ready

PLAIN = ("padded", "packed")


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One batch, prepared."""

    text: Tensor  # [B, T]
    text_lengths: Tensor  # [B]
    context: Tensor  # [B, Q]
    context_lengths: Tensor  # [B]
    attended: Tensor  # [B, T]
    gold: Tensor  # [B]


class Plain(nn.Module):
    """The BiLSTM-attention classifier of pairs as one would write it for training alone."""

    def __init__(self, config: Any, packed: bool):
        super().__init__()
        width, hidden, attention = config.embedding_size, config.hidden_size, config.attention_size
        self.packed = packed
        self.embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.text = nn.LSTM(width, hidden, bidirectional=True, batch_first=True)
        self.context = nn.LSTM(width, hidden, bidirectional=True, batch_first=True)
        self.attention = nn.Linear(2 * hidden, attention)
        self.context_attention = nn.Linear(2 * hidden, attention, bias=False)
        self.attention_score = nn.Linear(attention, 1, bias=False)
        self.decoder, self.context_decoder = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.classifier = nn.Linear(hidden, len(config.id2label))

    def forward(self, step: Step) -> Tensor:
        states, _ = self._read(self.text, step.text, step.text_lengths)  # [B, T, 2H]
        _, end = self._read(self.context, step.context, step.context_lengths)  # [B, 2H]
        energy = self.attention(states) + self.context_attention(end)[:, None]
        scores = self.attention_score(energy.tanh())[..., 0].masked_fill(~step.attended, float("-inf"))
        summary = (scores.softmax(-1)[..., None] * states).sum(1)
        return self.classifier((self.decoder(summary) + self.context_decoder(end)).tanh())

    def _read(self, lstm: nn.LSTM, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        embedded: Any = self.embeddings(ids)
        if self.packed:
            embedded = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, (last, _) = lstm(embedded)
        if self.packed:
            states, _ = pad_packed_sequence(states, batch_first=True)
        return states, torch.cat([last[0], last[1]], dim=-1)


def prepared(bench: Bench, rows: Sequence[int]) -> Step:
    """The examples of one batch, text and context apart."""
    encoded = [bench.encoded["train"][i] for i in rows]
    parts = [
        [torch.tensor([i for i, own in zip(e.ids, e.types, strict=True) if own == part]) for e in encoded]
        for part in (0, 1)
    ]
    (text, lengths), (context, context_lengths) = (
        (pad_sequence(part, batch_first=True), torch.tensor([len(ids) for ids in part])) for part in parts
    )
    special = torch.tensor([bench.clf.model.config.pad_token_id, *bench.clf.model.config.special_token_ids])
    attended = ~torch.isin(text, special)
    return Step(text, lengths, context, context_lengths, attended, bench.gold["train"][list(rows)])


def plain_epoch(bench: Bench, packed: bool) -> Callable[[], None]:
    config = bench.experiment.config
    lengths = [len(e.ids) for e in bench.encoded["train"]]
    steps = [prepared(bench, rows) for rows in order(lengths, config.batch, seed=bench.seed, epoch=1)]
    model = Plain(bench.clf.model.config, packed)
    optimizer = torch.optim.Adam(
        model.parameters(), config.lr, weight_decay=config.weight_decay, amsgrad=True, fused=True
    )

    def epoch() -> None:
        for step in steps:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(step), step.gold).backward()
            optimizer.step()

    return epoch


def our_epochs(bench: Bench, folder: Path) -> Callable[[], object]:
    def run() -> object:
        clf = bench.clf
        clf.model.load_state_dict(bench.first)
        task = Task(
            clf=clf,
            terms=ready(objective("cross_entropy"), clf, bench.encoded["train"], bench.gold["train"]),
            bounds=(),
            config=bench.experiment.config,
            seed=bench.seed,
            encoded=bench.encoded,
            gold=bench.gold,
            folder=folder,
            save_steps=SAVE_STEPS,
            accelerator=Accelerator(cpu=True),
        )
        return fit(task, progress=False)

    return run


def ratios(taken: Sequence[float], units: Sequence[float]) -> list[float]:
    """Of each of our epochs to the mean of the plain ones before and after it."""
    return [2 * ours / (a + b) for ours, a, b in zip(taken, units, units[1:], strict=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="babi/1:size=9000", help="pairs of texts (default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=32, help="width of each direction (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=1, help="of each of our trainings (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=7, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(default: %(default)s)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    settings = {"epochs": given.epochs, "patience": None}
    with tempfile.TemporaryDirectory() as place:
        job = asked(place, given.data, f"bilstm:hidden={given.hidden}", config=settings, limit=None, rounding="floor")
        bench = make_bench(job, 0)
        plain = {name: plain_epoch(bench, name == "packed") for name in PLAIN}
        our_epochs(bench, job.folder / "warm")()
        for epoch in plain.values():
            epoch()
        units, taken = {name: [clock(epoch)[1]] for name, epoch in plain.items()}, []
        for repeat in range(given.repeats):
            taken.append(clock(our_epochs(bench, job.folder / f"p{repeat}"))[1] / given.epochs)
            for name, epoch in plain.items():
                units[name].append(clock(epoch)[1])
    head = ["an epoch, processor time", "found"]
    rows = [[f"ours over plain torch with {name} LSTMs", spread(ratios(taken, units[name]))] for name in PLAIN]
    show(f"{given.data}, {given.hidden} wide: {len(bench.encoded['train'])} texts in {job.config.batch}s", head, rows)
    record = {
        "machine": machine(1),
        **{name: getattr(given, name) for name in ("data", "hidden", "epochs", "repeats")},
        "attention": bench.clf.model.config.attention_size,
        "texts": {split: len(encoded) for split, encoded in bench.encoded.items()},
        "ours": taken,
        "plain": units,
        "ratios": {name: ratios(taken, units[name]) for name in PLAIN},
    }
    print(write_json(given.out / "training.json", record))
    print(write_text(given.out / "training.md", markdown(head, rows) + "\n"))


if __name__ == "__main__":
    main()
