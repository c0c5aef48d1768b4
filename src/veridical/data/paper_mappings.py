"""Ready mappings for the datasets of the five papers: which columns are text, label and rationale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from veridical.core.errors import InputError
from veridical.core.ranges import at_least
from veridical.core.records import Dataset, Span
from veridical.data import dataset
from veridical.data.files import Share, files, read_records, read_text
from veridical.data.hub import PARQUET, READY, Cells, Mapped, first_records, load
from veridical.data.rows import Row, build, merged, spans_of_phrases
from veridical.data.split import side

NLI = ("entailment", "neutral", "contradiction")
TWO = ("negative", "positive")
THREE = ("negative", "neutral", "positive")
Half = Literal["premise", "hypothesis"]
Words = Annotated[int, at_least(0)]


def plain(where: str, cells: Cells) -> list[Row]:
    """Columns text and label; -1 is the hub's sign for a withheld label."""
    return [Row(where, cells["text"], cells["label"])] if cells["label"] >= 0 else []


def imdb_rows(where: str, cells: Cells) -> list[Row]:
    """Reviews carry HTML line breaks."""
    return [Row(where, " ".join(cells["text"].replace("<br />", " ").split()), cells["label"])]


def quoted(text: str, context: str | None) -> Callable[[str, Cells], list[Row]]:
    """ERASER on the hub: evidence is quoted. Document and quotes differ in white space only."""

    def rows(where: str, cells: Cells) -> list[Row]:
        document = " ".join(cells[text].split())
        spans, lost = spans_of_phrases(document, [" ".join(quote.split()) for quote in cells["evidences"]])
        asked = cells[context] if context else None
        return [Row(where, document, cells["label"], context=asked, rationale=spans, lost=lost)]

    return rows


def nli_rows(explained: Half) -> Callable[[str, Cells], list[Row]]:
    """The explained sentence is the text, the other the context; -1 means that the raters did not agree."""
    other = "hypothesis" if explained == "premise" else "premise"

    def rows(where: str, cells: Cells) -> list[Row]:
        if cells["label"] < 0:
            return []
        return [Row(where, cells[explained], cells["label"], context=cells[other])]

    return rows


def hatexplain_rows(where: str, cells: Cells) -> list[Row]:
    """The label most raters gave (none where all differ); the union of their rationales; none for normal."""
    votes = Counter(rater["label"] for rater in _records(cells["annotators"]))
    label, count = votes.most_common(1)[0]
    if count == 1 and len(votes) > 1:
        return []
    text, spans = "", []
    for n, token in enumerate(cells["post_tokens"]):
        start = len(text) + bool(text)
        text = f"{text} {token}" if text else token
        if label != 1 and any(n < len(marks) and marks[n] for marks in cells["rationales"]):
            spans.append((start, len(text)))
    return [Row(where, text, label, id=cells["id"], rationale=spans)]


DECREASED, SAME, INCREASED = "significantly decreased", "no significant difference", "significantly increased"


def evidence_inference_rows(where: str, cells: Cells) -> list[Row]:
    """One row per prompt of a trial report, with the label most valid annotations give and their evidence."""
    rows = []
    for row, prompt in _answered(where, cells):
        spans: list[Span] = []
        for note in _valid(prompt):
            start, end = note["Evidence Start"], min(note["Evidence End"], len(cells["Text"]))
            if note["Label"] == row.label and note["Valid Reasoning"] and 0 <= start < end:
                spans.append((start, end))
        rows.append(replace(row, rationale=merged(spans)))
    return rows


def _answered(where: str, cells: Cells) -> Iterator[tuple[Row, Cells]]:
    """The prompts of a report that have a valid label, each as a row of the whole report without evidence."""
    for prompt in _records(cells["Prompts"]):
        notes = _valid(prompt)
        if notes:
            label = Counter(note["Label"] for note in notes).most_common(1)[0][0]
            asked = f"Outcome: {prompt['Outcome']}. Intervention: {prompt['Intervention']}. "
            asked += f"Comparator: {prompt['Comparator']}."
            yield Row(where, cells["Text"], label, prompt["PromptID"], context=asked), prompt


def _valid(prompt: Cells) -> list[Cells]:
    return [note for note in _records(prompt["Annotations"]) if note["Valid Label"]]


def _records(table: Any) -> list[Cells]:
    """A list of records, which the hub also gives as a record of lists."""
    if isinstance(table, dict):
        return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return list(table)


PAPERS = {
    "sst2": Mapped("SetFit/sst2", plain, TWO, about="SST-2, whole sentences (6,920/872/1,821)."),
    "ag_news": Mapped(
        "fancyzhx/ag_news",
        plain,
        ("World", "Sports", "Business", "Sci/Tech"),
        dev=0.15,
        about="Topics of news (Zhang et al., 2015).",
    ),
    "imdb": Mapped(
        "stanfordnlp/imdb",
        imdb_rows,
        TWO,
        splits={"train": "train", "test": "test"},  # its third split has no labels
        about="Movie reviews (Maas et al., 2011).",
    ),
    "yelp": Mapped("fancyzhx/yelp_polarity", plain, TWO, dev=0.15, about="Yelp polarity (Zhang et al., 2015)."),
    "semeval2017": Mapped(
        "cardiffnlp/tweet_eval", plain, THREE, "sentiment", about="Sentiment of tweets, SemEval-2017 task 4 A."
    ),
    "movies": Mapped(
        "eraser-benchmark/movie_rationales",
        quoted("review", None),
        ("NEG", "POS"),
        "default",
        PARQUET,
        about="Movie reviews with human rationales (Zaidan and Eisner, 2008; DeYoung et al., 2020).",
    ),
    "multirc": Mapped(
        "CogComp/eraser_multi_rc",
        quoted("passage", "query_and_answer"),
        ("False", "True"),
        "default",
        PARQUET,
        about="MultiRC as in ERASER: is this answer right? With rationales.",
    ),
    "evidence_inference": Mapped(
        "jaydeyoung/evidence_infer_treatment",
        evidence_inference_rows,
        (DECREASED, SAME, INCREASED),
        "2.0",
        PARQUET,
        about="Evidence Inference (Lehman et al., 2019), whole reports, with rationales.",
    ),
    "hatexplain": Mapped(
        "Hate-speech-CNERG/hatexplain",
        hatexplain_rows,
        ("hatespeech", "normal", "offensive"),
        "plain_text",
        PARQUET,
        about="HateXplain (Mathew et al., 2021) with rationales; offensive content.",
    ),
}
SNLI = Mapped("stanfordnlp/snli", nli_rows("premise"), NLI, "plain_text", about="Inference (Bowman et al., 2015).")
ESNLI = Mapped("esnli/esnli", nli_rows("premise"), NLI, "plain_text", PARQUET, about="e-SNLI without highlights.")


WITH_OPTIONS = ("sst2", "semeval2017", "evidence_inference")  # below: a paper's own split can be had of them


def _reader(name: str, mapped: Mapped) -> Callable[[], Dataset]:
    return lambda: load(mapped, name)


for _name, _mapped in PAPERS.items():
    if _name not in WITH_OPTIONS:
        dataset(_name, about=_mapped.about.rstrip("."), needs="hub", labels=_mapped.labels)(_reader(_name, _mapped))
READY.update({mapped.repo: mapped for mapped in (*PAPERS.values(), SNLI, ESNLI)})


@dataset("sst2", about=PAPERS["sst2"].about.rstrip("."), needs="hub", labels=TWO)
def sst2(*, longer: Words = 0) -> Dataset:
    """Sentences of more than `longer` words: with 5 the 6,579/848/1,776 of Jain and Wallace (2019), and so of
    Recursive ROAR."""
    data = load(PAPERS["sst2"], "sst2")
    kept = {
        split: tuple(example for example in examples if len(example.text.split()) > longer)
        for split, examples in data.splits.items()
    }
    return replace(data, splits={split: examples for split, examples in kept.items() if examples})


@dataset("semeval2017", about=PAPERS["semeval2017"].about.rstrip("."), needs="hub", labels=THREE)
def semeval2017(*, path: str | None = None) -> Dataset:
    """The whole task of the hub (45,615/2,000/12,284), or of the task's own folder the split of SaLoss: the tweets of
    2016, twitter-2016train-A.txt, twitter-2016dev-A.txt and twitter-2016test-A.txt (an id, a label, a tweet a line)."""
    if path is None:
        return load(PAPERS["semeval2017"], "semeval2017")
    splits = {}
    for split in ("train", "dev", "test"):
        file = Path(path) / f"twitter-2016{split}-A.txt"
        if file.is_file():
            lines = enumerate(read_text(file).split("\n"), 1)
            splits[split] = [_tweet(f"{file}, line {n}", line) for n, line in lines if line.strip()]
    if not splits:
        raise InputError(f"There is no twitter-2016train-A.txt, ...dev-A.txt or ...test-A.txt in {path!r}; check it.")
    return build("semeval2017", splits, labels=THREE, about="SemEval-2017 task 4 A, the tweets of 2016.")


def _tweet(where: str, line: str) -> Row:
    cells = line.rstrip("\r\t ").split("\t")
    if len(cells) != 3 or cells[1] not in THREE:
        raise InputError(f"{where}: this is no id, label ({', '.join(THREE)}) and tweet between tabs; check the file.")
    return Row(where, cells[2], cells[1])  # some ids are there twice: rows are numbered


@dataset(
    "evidence_inference",
    about=PAPERS["evidence_inference"].about.rstrip("."),
    needs="hub",
    labels=PAPERS["evidence_inference"].labels,
)
def evidence_inference(*, abstracts: str | None = None) -> Dataset:
    """Whole reports, or with the folder of the published abstracts (PMC101395.abst, ...) these alone, with the prompts
    that an annotator could answer from them."""
    mapped = PAPERS["evidence_inference"]
    if abstracts is None:
        return load(mapped, "evidence_inference")
    folder = Path(abstracts)
    if next(folder.glob("PMC*.abst"), None) is None:
        raise InputError(f"There is no PMC*.abst in {abstracts!r}; give the folder of the published abstracts.")
    about = "Evidence Inference (Lehman et al., 2019), abstracts, with rationales."
    return load(replace(mapped, rows=abstract_rows(folder), about=about), "evidence_inference")


def abstract_rows(folder: Path) -> Callable[[str, Cells], list[Row]]:
    """Prompts whose label a valid annotation found in the abstract, with what it quotes of it."""

    def rows(where: str, cells: Cells) -> list[Row]:
        file = folder / f"PMC{cells['PMCID']}.abst"
        if not file.is_file():
            return []
        abstract = " ".join(read_text(file).split())
        known = []
        for row, prompt in _answered(where, cells):
            seen = [note for note in _valid(prompt) if note["Label"] == row.label and note["In Abstract"]]
            if seen:
                quotes = [" ".join(str(note["Annotations"]).split()) for note in seen if note["Valid Reasoning"]]
                spans, lost = spans_of_phrases(abstract, quotes)
                known.append(replace(row, text=abstract, rationale=spans, lost=lost))
        return known

    return rows


@dataset("snli", about=SNLI.about.rstrip("."), needs="hub", labels=NLI)
def snli(*, explained: Half = "premise") -> Dataset:
    """Premise and hypothesis; `explained` is the text, the other the context."""
    return load(replace(SNLI, rows=nli_rows(explained)), "snli")


@dataset(
    "esnli",
    about="e-SNLI: highlights from its own CSV files (path=FOLDER), else the hub's without",
    needs="hub",
    labels=NLI,
)
def esnli(*, path: str | None = None, explained: Half = "premise") -> Dataset:
    """The hub's copy has no highlights; the published esnli_train_1.csv, esnli_dev.csv and so on have."""
    if path is None:
        return load(replace(ESNLI, rows=nli_rows(explained)), "esnli")
    parts = {"train": ("train_1", "train_2"), "dev": ("dev",), "test": ("test",)}
    splits = {}
    for split, names in parts.items():
        present = [file for name in names if (file := Path(path) / f"esnli_{name}.csv").is_file()]
        rows = [esnli_row(where, cells, explained) for file in present for where, cells in read_records(file)]
        if rows:
            splits[split] = rows
    if not splits:
        raise InputError(f"There is no esnli_train_1.csv, esnli_dev.csv or esnli_test.csv in {path!r}; check it.")
    about = "e-SNLI (Camburu et al., 2018): the first rater's highlights are the rationale."
    return build("esnli", splits, labels=NLI, about=about)


def esnli_row(where: str, cells: Cells, explained: Half) -> Row:
    """Highlighted words stand between asterisks in the marked sentence, which without them is the text."""
    first = explained == "premise"
    marked, other = ("Sentence1_marked_1", "Sentence2") if first else ("Sentence2_marked_1", "Sentence1")
    words = cells[marked].split()
    text = " ".join(word.replace("*", "") or word for word in words)
    marks = [int(word.count("*") >= 2) for word in words]
    return Row(where, text, cells["gold_label"], cells["pairID"], cells[other], marks)


AMAZON = "McAuley-Lab/Amazon-Reviews-2023"


def amazon_rows(classes: int) -> Callable[[str, Cells], list[Row]]:
    """Stars as sentiment: under 3 negative, over 3 positive, 3 neutral (with two classes: left out)."""

    def rows(where: str, cells: Cells) -> list[Row]:
        # The columns of the 2023 collection, or of the 2018 one.
        stars, text = (cells.get(a) or cells.get(b) for a, b in (("rating", "overall"), ("text", "reviewText")))
        if not text or not text.strip() or stars is None or (classes == 2 and stars == 3):
            return []
        label = int(stars > 3) if classes == 2 else (stars >= 3) + (stars > 3)
        return [Row(where, text, label)]

    return rows


def _amazon(name: str, category: str, labels: tuple[str, ...]) -> Callable[..., Dataset]:
    rows = amazon_rows(len(labels))

    def read(*, path: str | None = None, size: Annotated[int, at_least(1)] = 100_000) -> Dataset:
        """The first `size` reviews of the hub's 2023 collection, or of a file of it or of 2018's."""
        if path is not None:
            records = [pair for pair, _ in zip(read_records(Path(path)), range(size), strict=False)]
        elif category == "Prime_Pantry":
            raise InputError(
                f"{name!r} is not in the 2023 collection of the hub; download Prime_Pantry_5.json.gz of the "
                f"2018 one (Ni et al., 2019) and write {name}:path=FILE."
            )
        else:
            file = f"raw/review_categories/{category}.jsonl"
            reviews = first_records(AMAZON, file, size)
            records = [(f"{file}, row {number}", cells) for number, cells in enumerate(reviews, 1)]
        splits: dict[str, list[Row]] = {"train": [], "dev": [], "test": []}
        for where, cells in records:
            for row in rows(where, cells):
                splits[side(row.text, "amazon")].append(row)
        about = f"Amazon reviews, {category}: stars as sentiment, splits 80/10/10 by normalised text."
        filled = {split: some for split, some in splits.items() if some}
        return build(name, filled, labels=labels, about=about)

    return read


for _name, _category, _labels in (
    ("amazon/digital_music", "Digital_Music", THREE),
    ("amazon/pantry", "Prime_Pantry", THREE),
    ("amazon/instruments", "Musical_Instruments", THREE),
    ("amazon/movies_and_tv", "Movies_and_TV", TWO),
):
    dataset(
        _name,
        about=f"Amazon reviews of {_category}, stars as sentiment",
        needs="path" if _category == "Prime_Pantry" else "hub",
        labels=_labels,
    )(_amazon(_name, _category, _labels))


@dataset("mimic/anemia", about="MIMIC notes, acute or chronic anemia: your own credentialed files", needs="path")
def anemia(*, path: str, dev: Share = 0.1) -> Dataset:
    """Files or a folder as for any path; labels acute and chronic, or 0 and 1 in this order."""
    return files(path=path, labels=("acute", "chronic"), dev=dev)


@dataset("mimic/diabetes", about="MIMIC notes, diabetes or not: your own credentialed files", needs="path")
def diabetes(*, path: str, dev: Share = 0.1) -> Dataset:
    """Files or a folder as for any path; labels no and yes, or 0 and 1 in this order."""
    return files(path=path, labels=("no", "yes"), dev=dev)
