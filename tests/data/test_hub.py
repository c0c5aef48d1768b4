"""Hub datasets: mappings on hand-made rows of the true columns, and what is said when the hub says no."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import datasets as hf
import pytest

from veridical.core.errors import InputError
from veridical.core.records import Dataset
from veridical.data import hub, load_data
from veridical.data import paper_mappings as papers
from veridical.data.hub import assemble


def mapped(name: str, **splits: list[dict[str, Any]]) -> Dataset:
    return assemble(papers.PAPERS[name], splits, name)


@pytest.mark.parametrize(
    ("name", "row", "labels"),
    [
        ("sst2", {"text": "a fine film", "label": 1, "label_text": "positive"}, 2),
        ("ag_news", {"text": "Markets fall", "label": 1}, 4),
        ("yelp", {"text": "great food", "label": 1}, 2),
        ("semeval2017", {"text": "@user ok", "label": 1}, 3),
        ("imdb", {"text": "so<br /><br />so", "label": 1}, 2),
    ],
)
def test_plain_mappings(name: str, row: dict[str, Any], labels: int) -> None:
    data = mapped(name, train=[row, {**row, "text": "another"}], test=[row])
    (ex,) = data.splits["test"]
    assert (ex.label, ex.context, ex.rationale) == (1, None, ())
    assert len(data.labels) == labels
    assert ex.text == ("so so" if name == "imdb" else row["text"])
    assert len(data.splits["dev"]) == 1  # set apart, because the hub had none here
    assert papers.PAPERS[name].repo in data.about


def test_withheld_labels_are_counted() -> None:
    data = mapped(
        "sst2",
        validation=[{"text": "a", "label": 0}, {"text": "b", "label": -1}],
        test=[{"text": "c", "label": -1}],
    )
    assert list(data.splits) == ["dev"]
    assert "2 rows without" in data.about
    with pytest.raises(InputError, match="no labelled rows"):
        mapped("sst2", test=[{"text": "c", "label": -1}])


def test_quoted_evidence_is_found_across_line_breaks() -> None:
    row = {
        "review": "the plot\nwas slow .\nloved it",
        "label": 0,
        "evidences": ["plot was slow", "not there"],
    }
    data = mapped("movies", validation=[row])
    (ex,) = data.splits["dev"]
    assert [ex.text[s:e] for s, e in ex.rationale] == ["plot was slow"]
    assert "1 pieces of evidence" in data.about
    row = {"passage": "One. Two.", "query_and_answer": "how many? || two", "label": 1, "evidences": ["Two."]}
    (ex,) = mapped("multirc", test=[row]).splits["test"]
    assert (ex.context, ex.label, ex.rationale) == ("how many? || two", 1, ((5, 9),))


@pytest.mark.parametrize("as_table", [True, False])
def test_hatexplain_takes_the_majority_and_the_union(as_table: bool) -> None:
    def row(id: str, labels: list[int], rationales: list[list[int]]) -> dict[str, Any]:
        raters = {"label": labels, "annotator_id": [1, 2, 3], "target": [[], [], []]}
        listed = [dict(zip(raters, values, strict=True)) for values in zip(*raters.values(), strict=True)]
        return {
            "id": id,
            "annotators": raters if as_table else listed,
            "rationales": rationales,
            "post_tokens": ["you", "are", "a b", "c"],
        }

    rows = [
        row("x", [0, 0, 2], [[0, 1, 0, 0], [0, 0, 1, 0]]),
        row("y", [0, 1, 2], []),
        row("z", [1, 1, 2], [[1, 0, 0, 0]]),
    ]
    data = mapped("hatexplain", test=rows)
    first, second = data.splits["test"]
    assert (first.id, first.label, second.id, second.label) == ("x", 0, "z", 1)
    assert [first.text[s:e] for s, e in first.rationale] == ["are", "a b"]
    assert second.rationale == ()  # normal posts have none
    assert "1 rows without" in data.about


def test_evidence_inference_is_one_example_a_prompt() -> None:
    def note(label: str, start: int, end: int, valid: bool = True) -> dict[str, Any]:
        place = {"Evidence Start": start, "Evidence End": end}
        return {"Valid Label": valid, "Valid Reasoning": True, "Label": label, **place}

    up, same = papers.INCREASED, papers.SAME
    prompt = {"PromptID": 7, "Outcome": "pain", "Intervention": "rest", "Comparator": "work"}
    record = {
        "Text": "Rest increased pain.",
        "PMCID": 1,
        "Prompts": [
            {**prompt, "Annotations": [note(up, 5, 19), note(up, -1, -1), note(same, 0, 4)]},
            {**prompt, "PromptID": 8, "Annotations": [note(up, 0, 4, valid=False)]},
        ],
    }
    (ex,) = mapped("evidence_inference", test=[record]).splits["test"]
    assert (ex.id, ex.label, ex.context) == ("7", 2, "Outcome: pain. Intervention: rest. Comparator: work.")
    assert [ex.text[s:e] for s, e in ex.rationale] == ["increased pain"]


def test_inference_pairs_can_be_explained_by_either_half(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"premise": "A man runs", "hypothesis": "He moves", "label": 0},
        {"premise": "A man", "hypothesis": "x", "label": -1},
    ]
    asked = []

    def given(repo: str, config: str | None, revision: str | None) -> dict[str, Any]:
        asked.append((repo, config, revision))
        return {"test": rows}

    monkeypatch.setattr(hub, "open_hub", given)
    (ex,) = load_data("snli").splits["test"]
    assert (ex.text, ex.context, ex.label) == ("A man runs", "He moves", 0)
    (ex,) = load_data("esnli:explained=hypothesis").splits["test"]
    assert (ex.text, ex.context) == ("He moves", "A man runs")
    (ex,) = load_data("hub:stanfordnlp/snli@abc").splits["test"]  # its repository is known
    assert (ex.text, ex.context) == ("A man runs", "He moves")
    assert asked == [
        ("stanfordnlp/snli", "plain_text", None),
        ("esnli/esnli", "plain_text", "refs/convert/parquet"),
        ("stanfordnlp/snli", "plain_text", "abc"),
    ]


def test_esnli_highlights_from_its_own_files(tmp_path: Path) -> None:
    row = {
        "pairID": "1d",
        "gold_label": "contradiction",
        "Sentence1": "A man sits.",
        "Sentence2": "A man runs far.",
        "Sentence1_marked_1": "A man *sits.*",
        "Sentence2_marked_1": "A man *runs* *far.*",
    }
    with (tmp_path / "esnli_dev.csv").open("w") as file:
        table = csv.DictWriter(file, list(row))
        table.writeheader()
        table.writerow(row)
    (ex,) = load_data(f"esnli:path={tmp_path}").splits["dev"]
    assert (ex.id, ex.text, ex.context, ex.label, ex.rationale) == (
        "1d",
        "A man sits.",
        "A man runs far.",
        2,
        ((6, 11),),
    )
    (ex,) = load_data(f"esnli:path={tmp_path}:explained=hypothesis").splits["dev"]
    assert [ex.text[s:e] for s, e in ex.rationale] == ["runs far."]
    with pytest.raises(InputError, match=r"no esnli_train_1.csv"):
        load_data(f"esnli:path={tmp_path / 'none'}")


def test_amazon_stars_of_both_collections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def new(stars: float, text: str) -> dict[str, Any]:
        return {"rating": stars, "title": "t", "text": text, "verified_purchase": True}

    reviews = [new(1.0, "bad"), new(3.0, "fair"), new(5.0, "good"), new(4.0, "")]
    monkeypatch.setattr(papers, "first_records", lambda repo, file, size: reviews[:size])
    data = load_data("amazon/digital_music")
    found = {ex.text: data.labels[ex.label] for some in data.splits.values() for ex in some}
    assert found == {"bad": "negative", "fair": "neutral", "good": "positive"}
    data = load_data("amazon/movies_and_tv")
    assert {ex.text: ex.label for some in data.splits.values() for ex in some} == {"bad": 0, "good": 1}
    with pytest.raises(InputError, match=r"not in the 2023 collection.*amazon/pantry:path=FILE"):
        load_data("amazon/pantry")
    (tmp_path / "Prime_Pantry_5.json").write_text(
        "".join(
            json.dumps({"overall": stars, "reviewText": text}) + "\n" for stars, text in ((2.0, "poor"), (5.0, "fine"))
        )
    )
    data = load_data(f"amazon/pantry:path={tmp_path / 'Prime_Pantry_5.json'}")
    assert {ex.text: ex.label for some in data.splits.values() for ex in some} == {"poor": 0, "fine": 2}


def test_mimic_is_read_from_the_users_own_files(tmp_path: Path) -> None:
    rows = [{"text": "note one", "label": "chronic"}, {"text": "note two", "label": "acute"}]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = load_data(f"mimic/anemia:path={tmp_path}")
    assert (data.labels, [ex.label for ex in data.splits["test"]]) == (("acute", "chronic"), [1, 0])
    with pytest.raises(InputError, match="'chronic' is not one of no, yes"):
        load_data(f"mimic/diabetes:path={tmp_path}")
    with pytest.raises(InputError, match="needs option 'path'"):
        load_data("mimic/diabetes")


def given_hub(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    def load_dataset(*args: object, **options: object) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(hf, "load_dataset", load_dataset)


def test_any_dataset_by_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    features = hf.Features({"body": hf.Value("string"), "tag": hf.ClassLabel(names=["ham", "spam"])})
    table = {"body": ["buy now", "hello", "no label"], "tag": [1, 0, -1]}
    given_hub(monkeypatch, hf.DatasetDict({"validation": hf.Dataset.from_dict(table, features)}))
    data = load_data("hub:owner/name:text=body:label=tag")
    assert (data.name, data.labels) == ("hub:owner/name", ("ham", "spam"))
    assert [(ex.text, ex.label) for ex in data.splits["dev"]] == [("buy now", 1), ("hello", 0)]
    with pytest.raises(InputError, match=r"owner/name, validation, row 1: there is no column 'text'.*:text=COLUMN"):
        load_data("hub:owner/name")


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            RuntimeError("Dataset scripts are no longer supported, but found name.py"),
            r"only a loading script.*hub:owner/name:small@refs/convert/parquet",
        ),
        (hf.exceptions.DatasetNotFoundError("gone"), r"no dataset 'owner/name', or it is private"),
        (ConnectionError("Couldn't reach it\nmore"), r"Couldn't reach it\. Check the network.*planted"),
        (ValueError("BuilderConfig 'small' not found. Available: ['big']"), r"'small' not found.*\['big'\]"),
    ],
)  # fmt: skip
def test_what_is_said_when_the_hub_says_no(monkeypatch: pytest.MonkeyPatch, problem: Exception, message: str) -> None:
    given_hub(monkeypatch, problem)
    with pytest.raises(InputError, match=message):
        load_data("hub:owner/name:small")


def test_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real client, told to stay offline."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    for name in ("imdb", "amazon/instruments"):
        with pytest.raises(InputError, match=r"could not be read from the hub.*Check the network"):
            load_data(name)


# -- the papers' own splits ----------------------------------------------------------------------------------


def test_short_sentences_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": " ".join("abcdefgh"[:n]), "label": n % 2} for n in range(1, 9)]
    monkeypatch.setattr(hub, "open_hub", lambda *place: {"train": rows, "test": rows, "validation": rows})
    assert [len(some) for some in load_data("sst2").splits.values()] == [8, 8, 8]
    assert [ex.text for ex in load_data("sst2:longer=5").splits["test"]] == [row["text"] for row in rows[5:]]
    with pytest.raises(InputError, match="'longer' of dataset 'sst2' is -1"):
        load_data("sst2:longer=-1")


def test_semeval_reads_the_tasks_own_files_of_2016(tmp_path: Path) -> None:
    for split, lines in {
        "train": ["1\tpositive\tso good", "1\tnegative\tso bad", ""],  # an id twice, as in the published file
        "dev": ["3\tneutral\tso so\t"],
        "test": ["4\tneutral\tno tab"],
    }.items():
        (tmp_path / f"twitter-2016{split}-A.txt").write_text("\n".join(lines), encoding="utf-8")
    data = load_data(f"semeval2017:path={tmp_path}")
    assert {split: len(some) for split, some in data.splits.items()} == {"train": 2, "dev": 1, "test": 1}
    assert [(ex.text, ex.label) for ex in data.splits["train"]] == [("so good", 2), ("so bad", 0)]
    assert (data.splits["dev"][0].text, data.labels) == ("so so", papers.THREE)
    (tmp_path / "twitter-2016test-A.txt").write_text("4\tgood\tx", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: this is no id, label"):
        load_data(f"semeval2017:path={tmp_path}")
    with pytest.raises(InputError, match=r"There is no twitter-2016train-A\.txt"):
        load_data(f"semeval2017:path={tmp_path / 'nowhere'}")


def test_evidence_inference_of_abstracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def note(label: str, quote: str, inside: bool) -> dict[str, Any]:
        place = {"Evidence Start": 0, "Evidence End": 4, "Annotations": quote, "In Abstract": inside}
        return {"Valid Label": True, "Valid Reasoning": True, "Label": label, **place}

    up = papers.INCREASED
    prompt = {"Outcome": "pain", "Intervention": "rest", "Comparator": "work"}
    record = {
        "Text": "Rest increased pain. More.",
        "PMCID": 12,
        "Prompts": [
            {**prompt, "PromptID": 7, "Annotations": [note(up, "increased\npain", True), note(up, "More", False)]},
            {**prompt, "PromptID": 8, "Annotations": [note(up, "More", False)]},  # not to be told from the abstract
        ],
    }
    monkeypatch.setattr(hub, "open_hub", lambda *place: {"test": [record, {**record, "PMCID": 13}]})
    (tmp_path / "PMC12.abst").write_text("TITLE:\nRest\n\nABSTRACT:\nRest increased pain.", encoding="utf-8")
    data = load_data(f"evidence_inference:abstracts={tmp_path}")
    (ex,) = data.splits["test"]
    assert (ex.id, ex.text) == ("7", "TITLE: Rest ABSTRACT: Rest increased pain.")
    assert [ex.text[s:e] for s, e in ex.rationale] == ["increased pain"]
    assert "1 rows without" in data.about  # the report whose abstract is not there
    with pytest.raises(InputError, match=r"There is no PMC\*\.abst"):
        load_data(f"evidence_inference:abstracts={tmp_path / 'nowhere'}")
