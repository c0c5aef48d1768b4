"""How many modules a text crosses, and how long functions and files are: the figures that the layout is judged by.

    python -m benchmarks.crossings [--modules]

A module counts as crossed if something in it ran beside its own body: a function was entered, or the body of a class.
To be imported is not enough, but a module whose classes are only defined on the way counts, because a reader of the
way meets it. Counted is a whole process of the command line, from its start to its end: `veridical explain` of one
text by `gradient`, and `veridical audit --quick` of eight labelled texts in a file, both with a random BERT of two
layers that is made here. (Before the rooms, at 3186305, this gave 37 and 76.)

Lengths are in source lines, docstrings, decorators and comments included: functions over 50, files over 400.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

LIMITS = {"explain": 25, "audit": 55}  # modules
FUNCTION, FILE = 50, 400  # lines
WORDS = "the film was not good and the plot is bad but i loved this boring story".split()

# -- modules ------------------------------------------------------------------------------------------------


def crossings() -> dict[str, list[str]]:
    """verb -> the modules that its texts cross."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, data = str(folder / "model"), folder / "texts.jsonl"
        write_model(folder / "model")
        rows = [{"text": " ".join(WORDS[i : i + 5 + i % 3]), "label": str(i % 2)} for i in range(8)]
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        verbs = {
            "explain": ["explain", model, "--text", rows[0]["text"], "--method", "gradient"],
            "audit": ["audit", model, "--data", str(data), "--quick", "--out", str(folder / "audit")],
        }
        return {verb: crossed_in_new_process(arguments, folder / f"{verb}.txt") for verb, arguments in verbs.items()}


def crossed_in_new_process(arguments: Sequence[str], out: Path) -> list[str]:
    """The modules that a command crosses; imports of another command in this process would hide some."""
    command = [sys.executable, __file__, "--trace", str(out), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if ended.returncode:
        sys.exit(f"veridical {' '.join(arguments)} failed:\n{ended.stderr}")
    return out.read_text().split()


def trace(out: Path, arguments: Sequence[str]) -> None:
    """Run a command in this process and write the modules that it crosses."""
    names: set[str] = set()

    def look(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            names.add(frame.f_globals.get("__name__", ""))

    sys.argv = ["veridical", *arguments]
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        runpy.run_module("veridical", run_name="__main__")
    finally:
        sys.setprofile(None)
        out.write_text("\n".join(sorted(name for name in names if name.partition(".")[0] == "veridical")))


def write_model(folder: Path) -> None:
    """A random BERT that splits at white space."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary = {word: place for place, word in enumerate((*special, *dict.fromkeys(WORDS)))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    words.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=64, **names).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
    )
    BertForSequenceClassification(config).save_pretrained(folder)


# -- lengths ------------------------------------------------------------------------------------------------


def lengths() -> dict[str, list[tuple[int, str]]]:
    """Functions over 50 lines and files over 400, longest first."""
    import veridical

    root = Path(veridical.__file__).parent
    functions, files = [], []
    for path in sorted(root.rglob("*.py")):
        text, place = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        files.append((len(text.splitlines()), place))
        functions += [(lines, f"{place} {name}") for name, lines in functions_of(ast.parse(text))]
    return {
        f"functions over {FUNCTION} lines": sorted((row for row in functions if row[0] > FUNCTION), reverse=True),
        f"files over {FILE} lines": sorted((row for row in files if row[0] > FILE), reverse=True),
    }


def functions_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, (node.end_lineno or node.lineno) - first + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", action="store_true", help="also name the modules that were crossed")
    chosen = parser.parse_args()
    for verb, modules in crossings().items():
        print(f"{verb} crosses {len(modules)} modules (at most {LIMITS[verb]})")
        if chosen.modules:
            print("".join(f"    {name}\n" for name in modules), end="")
    for what, rows in lengths().items():
        print(f"{what}: {len(rows)}")
        print("".join(f"    {lines} {name}\n" for lines, name in rows), end="")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        trace(Path(sys.argv[2]), sys.argv[3:])
    else:
        main()
