"""Every endpoint, on tiny models: what it answers is what the library says."""

from __future__ import annotations

import io
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

pytest.importorskip("fastapi", reason="the extra `serve` is not installed")

import veridical
from playground.house import TEXT, classifier, lines_of, opened
from toy import toy
from veridical.audits.likeness import likeness
from veridical.audits.record import read_summary
from veridical.model.ask import predict
from veridical.playground import limits
from veridical.playground.methods import Costs, default, standing
from veridical.playground.twin import twin

AUDIT = Path(__file__).parents[1] / "audits" / "audit_of_0.2"
LONG = " ".join([TEXT] * 12)


@pytest.fixture(scope="module")
def house():
    with opened(classifier(), classifier("roberta", "other", seed=1), data=toy(train=2, classes=3)) as opening:
        yield opening


@pytest.fixture(scope="module")
def client(house):
    return house[1]


def test_info_says_what_is_served(client):
    info = client.get("/api/info").json()
    assert [model["name"] for model in info["models"]] == ["one", "other"]
    assert info["models"][0]["operators"] == ["delete", "mask", "attention"]
    assert info["models"][0]["max_tokens"] == 64
    assert info["data"] == {"name": "toy", "splits": {"train": 2, "dev": 16, "test": 16}}
    assert info["audit"] is None
    assert info["limits"]["characters"] == limits.CHARACTERS


def test_methods_are_those_that_work_cheapest_first(client):
    until = time.monotonic() + 60
    while (found := client.get("/api/methods", params={"model": "one"}).json())["counting"]:
        assert time.monotonic() < until, "counting does not end"
        time.sleep(0.05)
    passes = [method["passes"] for method in found["methods"]]
    assert passes == sorted(passes)
    rows = {method["name"]: method for method in found["methods"]}
    assert rows["attention"]["cheap"]
    assert not rows["integrated_gradients"]["cheap"]
    assert not rows["attention"]["about_class"]
    assert rows["occlusion"]["signed"]
    assert set(found["default"]) <= set(rows)


def test_tokens_and_words_lie_where_they_say(client):
    found = client.post("/api/tokens", json={"model": "one", "text": TEXT}).json()
    for token in found["tokens"]:
        if token["free"]:
            assert token["index"] in found["words"][token["word"]]["tokens"]
    assert [word["text"] for word in found["words"]] == TEXT.split()
    assert all(TEXT[word["start"] : word["end"]] == word["text"] for word in found["words"])
    assert found["windows"] == 1


def test_a_prediction_is_the_models_own(client):
    clf = classifier()
    (own,) = predict(clf, clf.encode([veridical.Example("x", TEXT)])).probabilities
    found = client.post("/api/predict", json={"model": "one", "text": TEXT}).json()
    assert [row["probability"] for row in found["probabilities"]] == pytest.approx(own.tolist(), abs=1e-6)
    assert found["label"] == clf.labels[int(own.argmax())]


@pytest.mark.parametrize("operator", ["delete", "mask", "attention"])
def test_erasing_moves_the_prediction_and_keeping_is_its_other_side(client, operator):
    ask = {"model": "one", "text": TEXT, "operator": operator}
    tokens = client.post("/api/tokens", json={"model": "one", "text": TEXT}).json()["tokens"]
    free = [token["index"] for token in tokens if token["free"]]
    whole = client.post("/api/predict", json=ask).json()
    erased = client.post("/api/predict", json={**ask, "erased": free[:4]}).json()
    kept = client.post("/api/predict", json={**ask, "kept": free[4:]}).json()
    assert erased["probabilities"] == kept["probabilities"] != whole["probabilities"]
    assert erased["erased"] == 4


def test_explanations_are_those_of_explain_and_can_be_read_as_exchange_files(client, tmp_path):
    methods = ["occlusion", "integrated_gradients:steps=5", "attention", "alti"]
    ask = {"model": "one", "text": TEXT, "methods": methods, "session": "s"}
    *lines, last = lines_of(client.post("/api/explain", json=ask))
    assert last["done"]
    assert last["passes"] == pytest.approx(sum(line["passes"] for line in lines))
    assert {line["method"] for line in lines} == set(methods)
    assert lines[0]["method"] == "attention"
    clf = classifier()
    for line in lines:
        (own,) = veridical.explain(clf, TEXT, line["method"])
        assert line["scores"] == pytest.approx(own.scores.tolist(), abs=1e-5)
        assert line["word_scores"] == pytest.approx(own.word_scores.tolist(), abs=1e-5)
        assert line["target_name"] == own.label
    path = tmp_path / "lines.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    assert [row.method for row in veridical.read_explanations(path)] == [line["method"] for line in lines]


def test_one_class_is_explained_against_another(client):
    clf = classifier()
    target, contrast = clf.labels[0], clf.labels[1]
    ask = {"model": "one", "text": TEXT, "methods": ["occlusion"], "target": target, "session": "s"}
    line, _ = lines_of(client.post("/api/explain", json={**ask, "contrast": contrast}))
    plain, _ = lines_of(client.post("/api/explain", json=ask))
    (own,) = veridical.explain(clf, TEXT, "occlusion", target=target, contrast=contrast)
    assert line["scores"] == pytest.approx(own.scores.tolist(), abs=1e-5)
    assert line["scores"] != pytest.approx(plain["scores"], abs=1e-3)
    assert (line["target_name"], line["contrast_name"]) == (target, contrast)
    assert plain["contrast_name"] is None
    same = client.post("/api/explain", json={**ask, "contrast": target})
    assert same.status_code == 422
    assert "a class is explained against another one" in same.json()["error"]["message"]
    file = {key: value for key, value in ask.items() if key != "session"}
    page = client.post("/api/export", json={**file, "contrast": contrast, "format": "html"}).text
    assert f"{target} rather than {contrast}" in page


def test_a_method_that_does_not_work_says_so_and_the_others_come(client):
    with opened(classifier("bilstm", "lstm")) as (_, other):
        ask = {"model": "lstm", "text": TEXT, "methods": ["alti", "gradient"], "session": "s"}
        *lines, last = lines_of(other.post("/api/explain", json=ask))
    found = {line["method"]: line for line in lines}
    assert "error" in found["alti"]
    assert found["alti"]["error"]["message"].endswith(".")
    assert found["gradient"]["scores"]
    assert last["done"]


@pytest.mark.parametrize("level", ["token", "word"])
def test_curves_begin_and_end_where_they_must(client, level):
    tokens = client.post("/api/tokens", json={"model": "one", "text": TEXT}).json()["tokens"]
    scores = {"up": [1.5**place for place in range(len(tokens))]}
    scores["down"] = [-score for score in scores["up"]]
    ask = {"model": "one", "text": TEXT, "scores": scores, "session": "s", "level": level}
    first, second, last = lines_of(client.post("/api/curves", json=ask))
    assert last["done"]
    assert (first["method"], second["method"]) == ("up", "down")
    assert "random" in first
    assert "random" not in second
    whole = client.post("/api/predict", json={"model": "one", "text": TEXT}).json()
    top = max(row["probability"] for row in whole["probabilities"])
    for line in (first, second, {**first["random"], "fractions": first["fractions"]}):
        assert line["fractions"][0] == 0
        assert line["fractions"][-1] == 1
        assert line["deletion"][0] == pytest.approx(top, abs=1e-5)
        assert line["insertion"][-1] == pytest.approx(top, abs=1e-5)
        assert line["deletion"][-1] == pytest.approx(line["insertion"][0], abs=1e-5)
    # What goes last for one goes first for the other: deleting by one order leaves what inserting by the other shows.
    assert len(first["fractions"]) == _units(client, level) + 1
    assert first["deletion"] == pytest.approx(second["insertion"][::-1], abs=1e-5)


def _units(client, level):
    found = client.post("/api/tokens", json={"model": "one", "text": TEXT}).json()
    return len(found["words"]) if level == "word" else sum(token["free"] for token in found["tokens"])


def test_agreement_is_what_compare_says(client):
    ask = {"model": "one", "other": "other", "text": TEXT, "methods": ["attention"]}
    line, last = lines_of(client.post("/api/agreement", json=ask))
    (a,), (b,) = (
        veridical.explain(clf, TEXT, "attention") for clf in (classifier(), classifier("roberta", "other", seed=1))
    )
    own = likeness([a], [b])
    assert line["tau"] == pytest.approx(own.tau[0])
    assert line["top_overlap"] == pytest.approx(own.jaccard[0])
    assert line["level"] == own.level
    assert last["done"]


def test_long_texts_are_read_in_windows(client):
    found = client.post("/api/tokens", json={"model": "one", "text": LONG}).json()
    assert found["windows"] > 1
    assert not found["truncated"]
    ask = {"model": "one", "text": LONG, "methods": ["attention"], "session": "s"}
    line, _ = lines_of(client.post("/api/explain", json=ask))
    assert len(line["scores"]) == len(found["tokens"])
    assert any("windows" in note for note in line["notes"])
    whole = client.post("/api/predict", json={"model": "one", "text": LONG}).json()
    shown = [row["probability"] for row in whole["probabilities"]]
    assert shown == pytest.approx(line["probabilities"], abs=1e-5)
    last = [token["index"] for token in found["tokens"] if token["free"]][-3:]
    without = client.post("/api/predict", json={"model": "one", "text": LONG, "erased": last}).json()
    assert without["probabilities"] != whole["probabilities"]
    assert without["passes"] == found["windows"]


def test_pairs_and_several_labels():
    many = classifier("bert", "many", problem_type="multi_label_classification")
    with opened(many) as (_, client):
        ask = {"model": "many", "text": TEXT, "context": "Was it good?"}
        found = client.post("/api/predict", json=ask).json()
        assert found["multi_label"]
        holds = [row["label"] for row in found["probabilities"] if row["probability"] >= 0.5]
        assert found["label"] == holds
        tokens = client.post("/api/tokens", json=ask).json()["tokens"]
        context = [token for token in tokens if not token["free"]]
        assert len(context) > 3  # the context is there, and cannot be erased
        refused = client.post("/api/predict", json={**ask, "erased": [context[-1]["index"]]})
        assert refused.status_code == 422


def test_examples_of_data(client):
    first = client.get("/api/examples", params={"model": "one", "limit": 5}).json()
    assert first["total"] == 16
    assert len(first["examples"]) == 5
    wrong = client.get("/api/examples", params={"model": "one", "sort": "wrong", "limit": 100}).json()
    sure = client.get("/api/examples", params={"model": "one", "sort": "confident", "limit": 100}).json()
    assert all(row["right"] is False for row in wrong["examples"])
    assert wrong["total"] == sum(row["right"] is False for row in sure["examples"])
    probabilities = [row["probability"] for row in sure["examples"]]
    assert probabilities == sorted(probabilities, reverse=True)
    assert client.get("/api/examples", params={"model": "one", "sort": "disagreeing"}).status_code == 409
    assert client.get("/api/examples", params={"model": "one", "split": "nope"}).status_code == 422


def test_examples_of_an_audit_and_its_report():
    with opened(classifier(), audit=AUDIT) as (house, client):
        info = client.get("/api/info").json()
        assert not info["models"][0]["audited"]  # it is of another model
        assert client.get(info["audit"]["url"]).headers["content-security-policy"].startswith("sandbox")
        texts = house.audit.examples.texts
        marked = tuple(replace(text, disagreement=place / 10) for place, text in enumerate(texts))
        house.audit = replace(house.audit, examples=replace(house.audit.examples, texts=marked))
        found = client.get("/api/examples", params={"model": "one", "sort": "disagreeing"}).json()["examples"]
        spread = [row["disagreement"] for row in found]
        assert spread == sorted(spread, reverse=True)
        assert spread


def test_the_audit_stands_beside_the_methods_of_its_own_model(monkeypatch):
    with opened(classifier(), audit=AUDIT) as (house, client):
        summary = house.audit.summary
        monkeypatch.setattr(type(house.audit), "of", lambda self, model: summary)
        rows = {row["name"]: row for row in client.get("/api/methods", params={"model": "one"}).json()["methods"]}
        for standing in summary.ranking:
            if standing.corpus == summary.corpora[0].name and standing.method in rows:
                assert rows[standing.method]["audit"]["standing"] != "not asked"
                assert rows[standing.method]["audit"]["sentence"].endswith(".")


@pytest.mark.parametrize("kind", ["html", "json", "parquet"])
def test_exports_are_files_that_others_read(client, tmp_path, kind):
    ask = {"model": "one", "text": "<b>good</b> film", "methods": ["attention", "occlusion"], "format": kind}
    answer = client.post("/api/export", json=ask)
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    if kind == "html":
        assert "<b>good" not in answer.text
        assert "occlusion" in answer.text
    elif kind == "json":
        (tmp_path / "x.jsonl").write_bytes(answer.content)
        assert len(veridical.read_explanations(tmp_path / "x.jsonl")) == 2
    else:
        assert pyarrow.parquet.read_table(io.BytesIO(answer.content)).num_rows == 2


def test_a_twin_shares_weights_and_nothing_else():
    clf = classifier()
    (own,) = veridical.explain(clf, TEXT, "attention")  # transformers leaves hooks of its own in the modules
    other = twin(clf)
    assert np.array_equal(veridical.explain(other, TEXT, "attention")[0].scores, own.scores)
    pairs = zip(clf.model.parameters(), other.model.parameters(), strict=True)
    assert all(a.data_ptr() == b.data_ptr() and a is not b and not b.requires_grad for a, b in pairs)
    assert not set(map(id, clf.model.modules())) & set(map(id, other.model.modules()))
    encoded = clf.encode([veridical.Example("x", TEXT)])
    seen = []
    handle = clf.model.get_input_embeddings().register_forward_hook(lambda *_: seen.append(1))
    assert np.array_equal(predict(other, encoded).logits, predict(other, encoded).logits)
    handle.remove()
    assert not seen


def test_what_is_believed_comes_first_and_the_words_are_the_reports():
    audit = read_summary(AUDIT)
    specs = ["attention", "occlusion", "lime", "integrated_gradients"]
    verdict = replace(audit.verdicts[0], believe=("lime",))
    costs = Costs(passes={"attention": 1.0, "occlusion": 30.0, "lime": 600.0, "integrated_gradients": 150.0})
    found = default(specs, costs, replace(audit, verdicts=(verdict, *audit.verdicts[1:])))
    assert found == ["lime", "attention", "occlusion", "integrated_gradients"]
    home = audit.corpora[0].name
    rows = [replace(row, list="behind") for row in audit.ranking if row.corpus == home][:2]
    renamed = replace(rows[0], method="integrated_gradients:steps=10")
    told = replace(audit, ranking=(renamed, replace(rows[1], method="occlusion")))
    assert standing("occlusion", told)["standing"] == "worse"
    other = standing("integrated_gradients", told)
    assert other["standing"] == "not asked"
    assert "with other options: integrated_gradients:steps=10" in other["sentence"]
    assert "nothing is known of it here" in standing("lime", told)["sentence"]


def test_a_body_that_is_no_object_is_said_plainly(client):
    for body in (b"hello", b'"hello"', b"[1]"):
        for kind in ("application/json", "text/plain"):
            answer = client.post("/api/predict", content=body, headers={"content-type": kind})
            assert answer.status_code == 422
            message = answer.json()["error"]["message"]
            assert message.startswith("The body of the request is no")
            assert "dictionary" not in message
