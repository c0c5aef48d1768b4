"""The Stanford Sentiment Treebank from its own tree files, with the token rationales its phrases imply."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, NamedTuple

from veridical.core.errors import InputError
from veridical.core.ranges import at_least
from veridical.core.records import Dataset
from veridical.data import dataset
from veridical.data.files import read_text
from veridical.data.rows import Row, build


class Node(NamedTuple):
    """A phrase: its label 0 to 4, and either its word (a leaf) or its parts."""

    label: int
    word: str = ""
    parts: tuple[Node, ...] = ()
    low: int = 4  # smallest and largest label of the phrases inside it
    high: int = 0


LABELS = ("negative", "positive")


@dataset("sst", about="Stanford Sentiment Treebank, binary, rationales from its phrases", needs="path", labels=LABELS)
def sst(*, path: str, longer: Annotated[int, at_least(0)] = 0) -> Dataset:
    """The sentences that are not neutral and have more than `longer` words, of a folder with train.txt, dev.txt,
    test.txt (a tree a line).

    Rationales after Carton et al. (2020): words of the phrases that are more extreme than all they hold.
    """
    splits = {}
    for split in ("train", "dev", "test"):
        file = Path(path) / f"{split}.txt"
        if file.is_file():
            lines = [(f"{file}, line {n}", line) for n, line in enumerate(read_text(file).split("\n"), 1)]
            trees = [(where, parse_tree(where, line)) for where, line in lines if line.strip()]
            rows = (row_of(tree, where, f"sst-{split}-{n}") for n, (where, tree) in enumerate(trees) if tree.label != 2)
            splits[split] = [row for row in rows if len(row.text.split()) > longer]
    if not splits:
        raise InputError(f"There is no train.txt, dev.txt or test.txt in {path!r}; give the folder of the trees.")
    about = (
        "Stanford Sentiment Treebank (Socher et al., 2013): sentences whose root is not neutral. Rationales "
        "are derived from the phrase labels after Carton et al. (2020); no person marked them."
    )
    return build("sst", splits, labels=LABELS, about=about)


def parse_tree(where: str, line: str) -> Node:
    """`(3 (2 It) (4 (2 is) (4 great)))` as a Node."""
    # Not \s: a no-break space belongs to the word it stands in.
    tokens = re.findall(r"[()]|[^() \t\r]+", line)

    def node(at: int) -> tuple[Node, int]:
        """The node that opens at a token, and the token after it."""
        if tokens[at] != "(" or tokens[at + 1] not in ("0", "1", "2", "3", "4"):
            raise ValueError
        label, at = int(tokens[at + 1]), at + 2
        if tokens[at] not in "()":
            leaf, parts, at = unescape(tokens[at]), [], at + 1
        else:
            leaf, parts = "", []
            while tokens[at] == "(":
                part, at = node(at)
                parts.append(part)
        if tokens[at] != ")" or not (leaf or parts):
            raise ValueError
        low = min((min(part.label, part.low) for part in parts), default=4)
        high = max((max(part.label, part.high) for part in parts), default=0)
        return Node(label, leaf, tuple(parts), low, high), at + 1

    try:
        tree, end = node(0)
        if end != len(tokens):
            raise ValueError
    except (ValueError, IndexError, RecursionError) as problem:
        raise InputError(
            f"{where}: this is no tree; write brackets with labels 0 to 4, as in (3 (2 It) (4 shines))."
        ) from problem
    return tree


def unescape(word: str) -> str:
    """A word as it was before the treebank bracketed it."""
    brackets = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
    return brackets.get(word, word.replace("\\/", "/").replace("\\*", "*"))


def row_of(tree: Node, where: str = "", id: str | None = None) -> Row:
    """The sentence with its label and its 0/1 rationale over words (extremity of at least a half)."""
    # A leaf with a no-break space is two words: both take the leaf's extremity.
    words = [(word, score) for leaf, score in _scores(tree) for word in leaf.word.split()]
    text = " ".join(word for word, _ in words)
    return Row(where, text, int(tree.label > 2), id=id, rationale=[int(score >= 0.5) for _, score in words])


def _scores(node: Node) -> list[tuple[Node, float]]:
    """The leaves, each with the extremity (0, 0.5 or 1) of the explanatory phrase it belongs to."""
    extremity = _extremity(node.label)
    if not node.parts or extremity > max(_extremity(node.low), _extremity(node.high)):
        return [(leaf, extremity) for leaf in _leaves(node)]
    return [pair for part in node.parts for pair in _scores(part)]


def _extremity(label: int) -> float:
    return abs(label - 2) / 2


def _leaves(node: Node) -> list[Node]:
    return [leaf for part in node.parts for leaf in _leaves(part)] if node.parts else [node]
