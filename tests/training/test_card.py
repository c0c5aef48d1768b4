"""A run's card: figures that are the run's, metadata that the hub's classes read back, and uploads of safe files."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCard, ModelCardData
from typer.testing import CliRunner

from toy import small_model, toy
from veridical import load
from veridical.audits.known_error import KNOWN
from veridical.audits.record import read_summary
from veridical.cli.app import app
from veridical.core import store, stored
from veridical.core.errors import InputError
from veridical.training.card import MARK, model_card, plain, write_card
from veridical.training.card_scores import scores_with_intervals
from veridical.training.config import TrainConfig
from veridical.training.train import Run, train

OLD_AUDIT = Path(__file__).parents[1] / "audits" / "audit_of_0.2"
EVIL = "<script>alert(1)</script> a|b `c` *d*"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("card")
    data = dataclasses.replace(toy(), name="/home/me/secret/reviews.csv:text=body", labels=("bad", EVIL))
    config = TrainConfig(epochs=1, batch=20, threads=1)
    return train(data, small_model(folder / "model"), config=config, out=folder / "run", progress=False)


def audited(run: Run, folder: Path) -> Path:
    """An audit of the run: one on file, under today's rules."""
    summary = read_summary(OLD_AUDIT)
    verdict = dataclasses.replace(summary.verdicts[0], panel=KNOWN.metrics, sentence=f"Believe {EVIL}.")
    settings = dataclasses.replace(summary.settings, looks=(24, 48, 96))
    stored.write(folder / "summary.json", dataclasses.replace(summary, verdicts=(verdict,), settings=settings))
    store.write_json(folder / "spec.json", {"model": {"name": "m", "hash": load(run.folder).fingerprint()}})
    store.write_text(folder / "report.html", "<p>")
    return folder


def test_scores_are_those_of_the_run_and_lie_in_their_intervals(run: Run):
    found = {own.split: own for own in scores_with_intervals(run.folder)}
    assert list(found) == ["dev", "test"]
    for split, own in found.items():
        for name in ("accuracy", "macro_f1"):
            estimate = getattr(own, name)
            assert estimate.mean == pytest.approx(run.scores[split][name])
            assert estimate.low <= estimate.mean <= estimate.high
            assert estimate.low < estimate.high
        for name in ("auroc", "calibration_error"):
            assert getattr(own, name) == pytest.approx(run.scores[split][name], abs=1e-6)
        assert own.excess.mean == pytest.approx(own.confidence - run.scores[split]["accuracy"])
        assert 0.5 <= own.majority <= 1


def test_several_labels_are_scored_too(tmp_path: Path):
    config = TrainConfig(epochs=1, batch=20, threads=1)
    model = small_model(tmp_path / "model", problem_type="multi_label_classification")
    run = train(toy(multilabel=True), model, config=config, out=tmp_path / "run", progress=False)
    (_, own) = scores_with_intervals(run.folder)
    for name in ("accuracy", "macro_f1"):
        assert getattr(own, name).mean == pytest.approx(run.scores["test"][name])
    assert own.calibration_error == pytest.approx(run.scores["test"]["calibration_error"], abs=1e-6)


def test_metadata_survives_the_hubs_own_classes(run: Run, tmp_path: Path):
    text = model_card(run, audited(run, tmp_path), name="me/model", license="mit", language="en")
    card = ModelCard(text)
    assert isinstance(card.data, ModelCardData)
    again = ModelCard(str(card))
    assert again.data.to_dict() == card.data.to_dict()
    assert again.text == card.text
    assert (card.data.license, card.data.language, card.data.model_name) == ("mit", "en", "me/model")
    assert card.data.pipeline_tag == "text-classification"
    assert card.data.eval_results is not None
    values = {(one.dataset_split, one.metric_type): one for one in card.data.eval_results}
    assert len(values) == 6
    assert values["test", "accuracy"].metric_value == pytest.approx(run.scores["test"]["accuracy"], abs=1e-6)
    low, high = values["test", "accuracy"].metric_args["interval_95"]
    assert low < values["test", "accuracy"].metric_value < high
    copy = ModelCardData(**{"eval_results": card.data.eval_results, "model_name": "me/model", "license": "mit"})
    assert copy.to_dict()["model-index"] == card.data.to_dict()["model-index"]


def test_the_text_tells_the_verdict_its_limits_and_no_secrets(run: Run, tmp_path: Path):
    folder = audited(run, tmp_path)
    summary = read_summary(folder)
    home = dataclasses.replace(summary.corpora[0], accuracy=0.6, accuracy_low=0.4, accuracy_high=0.7, majority=0.5)
    stored.write(folder / "summary.json", dataclasses.replace(summary, corpora=(home, *summary.corpora[1:])))
    text = model_card(run, folder)
    assert "- Believe: `occlusion`" in text
    assert "**The model is not shown to be better than guessing here.** It is right on 60%" in text
    assert KNOWN.share in text
    assert "objective | `cross_entropy`" in text
    assert "`reviews.csv:text=body`" in text
    assert "/home/me" not in text
    assert str(run.folder) not in text
    body = text.partition(MARK)[2]
    assert "<script>" not in re.sub(r"`[^`\n]*`", "", body)
    assert plain(EVIL) in body
    assert "report.html)" in body
    assert "report.html" not in model_card(run, tmp_path, links=False)
    assert "Not audited" in model_card(run)
    rows = [line for line in body.splitlines() if line.startswith("|")]
    assert {line.count("|") - line.count("\\|") for line in rows} == {7, 5, 3}  # no cell breaks a table


def test_an_audit_of_another_model_is_refused(run: Run, tmp_path: Path):
    audited(run, tmp_path)
    store.write_json(tmp_path / "spec.json", {"model": {"name": "m", "hash": "0" * 16}})
    with pytest.raises(InputError, match=r"is of other weights \(0{16}\) than those of the run"):
        model_card(run, tmp_path)
    with pytest.raises(InputError, match=r"has no summary\.json; name the folder of a finished audit"):
        model_card(run, tmp_path / "nowhere")


def test_a_readme_of_somebody_else_stays(run: Run, tmp_path: Path):
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    result = CliRunner().invoke(app, ["card", str(copy), "--print"])
    assert result.stdout == model_card(copy)
    assert not (copy / "README.md").exists()
    for _ in range(2):  # its own is written anew
        result = CliRunner().invoke(app, ["card", str(copy), "--license", "mit"])
        assert result.stdout.strip() == str(copy / "README.md")
    (copy / "README.md").write_text("# Mine")
    with pytest.raises(InputError, match=r"README\.md is there and was not written by `veridical card`"):
        write_card(copy, model_card(copy))
    assert (copy / "README.md").read_text() == "# Mine"


# -- the hub ------------------------------------------------------------------------------------------------


class FakeHub:
    """What `HfApi` is asked, without a network."""

    def __init__(self, problem: Exception | None = None):
        self.problem, self.repos, self.files = problem, {}, {}

    def create_repo(self, repo_id: str, **how: Any) -> str:
        self.repos[repo_id] = how
        return f"https://huggingface.co/{repo_id}"

    def create_commit(self, repo_id: str, operations: Any, **how: Any) -> None:
        if self.problem:
            raise self.problem
        for one in operations:
            with one.as_file() as file:
                self.files[one.path_in_repo] = file.read()


def test_a_push_uploads_what_a_model_needs_and_nothing_else(run: Run, tmp_path: Path):
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    (copy / "model" / "optimizer.pt").write_bytes(b"pickle")
    (copy / "model" / "modeling_evil.py").write_text("boom")
    hub, own = FakeHub(), dataclasses.replace(run, folder=copy)
    address = own.push_to_hub("me/model", audit=audited(run, tmp_path / "audit"), private=True, license="mit", api=hub)
    assert address == "https://huggingface.co/me/model"
    assert hub.repos["me/model"] == {"private": True, "repo_type": "model", "exist_ok": True}
    names = {"model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "README.md"}
    assert set(hub.files) == names
    card = ModelCard(hub.files["README.md"].decode())
    assert card.data.license == "mit"
    assert 'pipeline("text-classification", "me/model")' in card.text
    for name, content in hub.files.items():  # and it is the model
        (tmp_path / "there").mkdir(exist_ok=True)
        (tmp_path / "there" / name).write_bytes(content)
    here, there = load(copy), load(tmp_path / "there")
    assert here.fingerprint() == there.fingerprint()
    assert np.array_equal(here.encode(list(toy().splits["dev"]))[0].ids, there.encode(list(toy().splits["dev"]))[0].ids)


def test_what_goes_wrong_on_the_hub_is_one_sentence(run: Run):
    with pytest.raises(InputError, match=r"me/model could not be uploaded \(no token\); log in with `hf auth login`"):
        run.push_to_hub("me/model", api=FakeHub(OSError("no token.\nmore")))
    with pytest.raises(InputError, match=r"'a/b/c' is not a name that the hub takes"):
        run.push_to_hub("a/b/c", api=FakeHub())
    failed = dataclasses.replace(run, failed="no epoch kept the bound")
    with pytest.raises(InputError, match="kept no model"):
        failed.push_to_hub("me/model", api=FakeHub())
