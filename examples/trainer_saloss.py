"""A fine-tuning script with SaLoss in it: the three lines marked `veridical` are all that was added.

    python examples/trainer_saloss.py --model MODEL --train train.csv --dev dev.csv --out OUT

The CSV files have a column `text` and a column `label` with class indices.
"""

from __future__ import annotations

import argparse
import csv

from datasets import Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, TrainingArguments

from veridical.training.trainer import VeridicalTrainer  # veridical


def rows(path: str) -> Dataset:
    with open(path, encoding="utf-8", newline="") as file:
        return Dataset.from_list([{"text": row["text"], "label": int(row["label"])} for row in csv.DictReader(file)])


def main(given: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description="Fine-tune a classifier with SaLoss.")
    parser.add_argument("--model", required=True, help="a folder or a hub id")
    parser.add_argument("--train", required=True, help="a CSV file")
    parser.add_argument("--dev", required=True, help="a CSV file")
    parser.add_argument("--out", required=True, help="folder for the checkpoints")
    parser.add_argument("--weight", default="1e-3", help="of SaLoss")
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--lr", type=float, default=5e-5)
    options = parser.parse_args(given)

    train, dev = rows(options.train), rows(options.dev)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForSequenceClassification.from_pretrained(
        options.model, num_labels=len(set(train["label"])), ignore_mismatched_sizes=True
    )

    def tokenise(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        return tokenizer(batch["text"], truncation=True)

    trainer = VeridicalTrainer(  # veridical: this was Trainer
        model=model,
        args=TrainingArguments(
            output_dir=options.out,
            num_train_epochs=options.epochs,
            learning_rate=options.lr,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            eval_strategy="epoch",
            logging_strategy="epoch",
            save_strategy="no",
            report_to=[],
        ),
        train_dataset=train.map(tokenise, batched=True, remove_columns=["text"]),
        eval_dataset=dev.map(tokenise, batched=True, remove_columns=["text"]),
        processing_class=tokenizer,
        objective=f"saloss:weight={options.weight}",  # veridical
    )
    trainer.train()
    trainer.save_model(options.out)
    return trainer.evaluate()


if __name__ == "__main__":
    print(main())
