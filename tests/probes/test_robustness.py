"""The untrained-model and the different-initialisation test."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from goldens import GOLDEN
from tiny import PAIRS, TEXTS, tiny
from toy import small_model, toy
from veridical.cli.app import app
from veridical.core import store
from veridical.core.errors import Caution, InputError
from veridical.core.records import Example
from veridical.explanations.explain import explain
from veridical.metric.jaccard import overlap
from veridical.model.classifier import Classifier
from veridical.model.load import load
from veridical.probes.robustness import UNTRAINED, _redrawn, _untrained, robustness, to_csv, to_text, what_differs
from veridical.training.config import TrainConfig
from veridical.training.train import train

EXAMPLES = [Example(str(i), text) for i, text in enumerate(TEXTS)]


def classifier(seed: int = 0, family: str = "bert", **config) -> Classifier:
    model, tokenizer = tiny(family, seed=seed, **config)
    return Classifier(model, tokenizer, name=f"seed{seed}")


def test_the_overlap_is_the_golden_one():
    golden = GOLDEN["jaccard_at_25"]
    a, b = (np.array(golden["inputs"][key]) for key in "ab")
    assert overlap(a, b, golden["expected"]["k"]) == pytest.approx(golden["expected"]["jaccard"], abs=1e-9)
    assert overlap(a, a, golden["expected"]["k"]) == golden["expected"]["identical"]


def test_every_pair_is_the_mean_overlap_over_texts():
    models = [classifier(seed) for seed in (0, 1)]
    found = robustness(models, EXAMPLES, ["attention_x_gradient", "gradient"], untrained="weights", seed=5)
    assert found.models == ("seed0", "seed1", UNTRAINED)
    assert len(found.overlaps) == 2 * 3
    blank, _ = _redrawn(models[0], False, 5)
    for method in ("attention_x_gradient", "gradient"):
        scores = [explain(clf, EXAMPLES, method) for clf in (*models, blank)]
        for i, j in ((0, 1), (0, 2), (1, 2)):
            expected = []
            for one, other in zip(scores[i], scores[j], strict=True):
                free = np.array(one.encoded.free)
                k = -(-free.sum() // 4)
                tops = [set(np.argsort(-e.scores[free], kind="stable")[:k].tolist()) for e in (one, other)]
                expected.append(len(tops[0] & tops[1]) / len(tops[0] | tops[1]))
            assert found.matrix(method)[i, j] == pytest.approx(np.mean(expected))
            assert found.matrix(method)[j, i] == found.matrix(method)[i, j]
        assert np.diag(found.matrix(method)).tolist() == [1, 1, 1]


def test_the_two_tests_are_means_over_their_pairs_with_intervals():
    models = [classifier(seed) for seed in (0, 1, 2)]
    found = robustness(models, EXAMPLES, "gradient", untrained="weights")
    pairs = {(o.a, o.b): o for o in found.overlaps}
    trained = np.mean([pairs[p].mean for p in pairs if UNTRAINED not in p])
    untrained = np.mean([pairs[p].mean for p in pairs if UNTRAINED in p])
    assert [t.a for t in found.tests] == ["different initialisation", "untrained model"]
    assert found.tests[0].mean == pytest.approx(trained)
    assert found.tests[1].mean == pytest.approx(untrained)
    for one in (*found.overlaps, *found.tests):
        assert one.low is not None
        assert one.high is not None
        assert one.low <= one.mean <= one.high
        assert (one.n, one.undefined) == (len(EXAMPLES), 0)


def test_a_model_is_explained_like_itself():
    one, twin = classifier(), classifier()
    twin.name = "twin"
    found = robustness([one, twin], EXAMPLES, "integrated_gradients:steps=4", untrained="none")
    assert found.overlaps[0].mean == 1
    assert found.models == ("seed0", "twin")
    assert [t.a for t in found.tests] == ["different initialisation"]


def test_one_model_is_tested_against_the_untrained_one():
    found = robustness([classifier()], EXAMPLES[:3], "gradient", untrained="head")
    assert [t.a for t in found.tests] == ["untrained model"]
    assert found.overlaps[0].low is None  # an interval needs five texts
    assert "(" not in to_text(found).splitlines()[2]


def test_a_new_head_keeps_the_encoder_and_new_weights_keep_nothing():
    clf = classifier()
    batch = clf.collate(clf.encode(EXAMPLES))
    head, about = _redrawn(clf, True, 0)
    assert "with its head drawn anew from seed 0" in about
    own, new = clf.model.state_dict(), head.model.state_dict()
    assert all(torch.equal(own[key], new[key]) for key in own if key.startswith("bert."))
    assert not torch.equal(own["classifier.weight"], new["classifier.weight"])
    assert not head.model.training
    weights, _ = _redrawn(clf, False, 0)
    same = [key for key, value in weights.model.state_dict().items() if value.ndim > 1 and torch.equal(own[key], value)]
    assert not same
    with torch.no_grad():
        assert not torch.allclose(clf.forward(batch).logits, head.forward(batch).logits)
    again, other = (_redrawn(clf, True, seed)[0].model.state_dict() for seed in (0, 1))
    assert torch.equal(again["classifier.weight"], new["classifier.weight"])
    assert not torch.equal(other["classifier.weight"], new["classifier.weight"])


def test_drawing_leaves_the_callers_random_numbers_alone():
    clf = classifier()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    _redrawn(clf, False, 0)
    assert torch.equal(torch.rand(2), expected)


def test_a_bilstm_has_no_encoder_apart():
    clf = classifier(family="bilstm")
    with pytest.raises(InputError, match="untrained=weights"):
        robustness([clf], EXAMPLES[:2], "gradient", untrained="head")
    assert robustness([clf], EXAMPLES[:2], "gradient", untrained="weights").overlaps[0].mean is not None


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    model = small_model(folder / "encoder")
    config = TrainConfig(epochs=1, batch=8, lr=1e-3)
    return [
        train(toy(24, 8, 8), model, seed=seed, config=config, out=folder / f"seed{seed}", progress=False).folder
        for seed in (0, 1)
    ]


def test_a_run_is_compared_with_what_it_began_from(runs):
    clf = load(runs[0])
    blank, about = _untrained(str(runs[0]), clf, None, 0)
    assert blank is not None
    assert "encoder with a head drawn from seed 0" in about
    start = load(str(runs[0].parent / "encoder"), labels=clf.labels).model.state_dict()
    body = {key: value for key, value in blank.model.state_dict().items() if key.startswith("bert.")}
    assert all(torch.equal(value, start[key]) for key, value in body.items())
    assert any(not torch.equal(value, clf.model.state_dict()[key]) for key, value in body.items())
    assert blank.labels == clf.labels


def test_it_is_said_what_the_models_differ_in(runs, tmp_path):
    """Runs of several seeds see their texts in another order too, unless the data seed is fixed."""
    assert "in the order of their texts and in dropout (seeds 0, 1" in what_differs(runs)
    assert "train.data_seed=0" in what_differs(runs)
    config, model = TrainConfig(epochs=1, batch=8, data_seed=3), small_model(tmp_path / "model")
    fixed = [
        train(toy(24, 8, 8), model, seed=seed, config=config, out=tmp_path / f"seed{seed}", progress=False).folder
        for seed in (0, 1)
    ]
    assert what_differs(fixed).startswith("The models differ in their initialisation alone (seeds 0, 1)")
    assert "data seed 3" in what_differs(fixed)
    other = replace(config, lr=1e-4)
    third = train(toy(24, 8, 8), model, seed=2, config=other, out=tmp_path / "third", progress=False).folder
    assert "more than their seeds: in train" in what_differs([*fixed, third])
    assert "not known" in what_differs([classifier(0), classifier(1)])
    assert "one model" in what_differs(runs[:1])
    found = robustness(fixed, toy(24, 8, 8).splits["test"][:3], "gradient")
    assert found.compared == what_differs(fixed)
    assert found.compared in to_text(found)


def test_the_untrained_model_reads_no_more_of_a_text_than_the_run(tmp_path):
    model = small_model(tmp_path / "model")
    config = TrainConfig(epochs=1, batch=8, max_length=6)
    run = train(toy(24, 8, 8), model, config=config, out=tmp_path / "run", progress=False).folder
    with pytest.warns(Caution, match="longer than the 6 tokens"):
        found = robustness([run], toy(24, 8, 8).splits["test"], "gradient")
    assert all(one.mean is not None for one in found.tests)


def test_a_trained_bilstm_began_with_nothing(tmp_path):
    config = TrainConfig(epochs=1, batch=8)
    run = train(toy(24, 8, 8), "bilstm:hidden=8", config=config, out=tmp_path / "run", progress=False)
    found = robustness([run.folder], list(toy().splits["test"]), "attention")
    assert "with all weights drawn anew" in found.untrained


def test_pairs_and_words(runs):
    examples = [Example(str(i), text, context=context) for i, (text, context) in enumerate(PAIRS)]
    found = robustness([classifier(0), classifier(1)], examples, "gradient", untrained="none", level="word")
    assert found.overlaps[0].n == len(PAIRS)


def test_the_explained_class_may_be_named(runs):
    found = robustness(runs, list(toy().splits["test"]), "input_x_gradient", target="good", untrained="none")
    assert found.target == "good"
    with pytest.raises(InputError, match="not a class"):
        robustness(runs, list(toy().splits["test"]), "input_x_gradient", target="nothing")


def test_mistakes_are_named():
    clf = classifier()
    with pytest.raises(InputError, match="There is no model"):
        robustness([], EXAMPLES)
    with pytest.raises(InputError, match="no texts"):
        robustness([clf], [])
    with pytest.raises(InputError, match="share is 0"):
        robustness([clf], EXAMPLES, share=0)
    with pytest.raises(InputError, match="same task"):
        robustness([clf, classifier(1, num_labels=2)], EXAMPLES, "gradient", untrained="none")


def test_models_of_one_name_are_told_apart():
    clf = classifier()
    clf.name = UNTRAINED
    assert robustness([clf], EXAMPLES[:2], "gradient", untrained="head").models == ("untrained (1)", UNTRAINED)
    found = robustness([classifier(), classifier()], EXAMPLES[:2], "gradient", untrained="none")
    assert found.models == ("seed0 (1)", "seed0 (2)")


def test_csv_has_a_line_per_pair_and_test():
    found = robustness([classifier(0), classifier(1)], EXAMPLES, "gradient", untrained="weights")
    rows = list(csv.DictReader(io.StringIO(to_csv(found))))
    assert len(rows) == 3 + 2
    assert float(rows[0]["mean"]) == pytest.approx(found.overlaps[0].mean)
    assert rows[-1]["a"] == "untrained model"


# -- the command line ---------------------------------------------------------------------------------------


def test_the_verb(runs, tmp_path):
    examples = toy().splits["test"]
    rows = [{"text": e.text, "label": ("bad", "good")[e.label]} for e in examples]  # type: ignore[index]
    store.write_jsonl(tmp_path / "data" / "test.jsonl", rows)
    given = ["robustness", *map(str, runs), "--data", str(tmp_path / "data"), "--method", "gradient,attention"]
    shown = CliRunner().invoke(app, given)
    assert shown.exit_code == 0, shown.output
    assert "gradient: Jaccard@25% of 16 texts, predicted class explained" in shown.stdout
    assert "different initialisation: 0." in shown.stdout
    made = CliRunner().invoke(app, [*given, "--json", "--target", "gold"])
    assert made.exit_code == 0, made.output
    table = json.loads(made.stdout)
    assert table["models"] == ["seed0", "seed1", UNTRAINED]
    assert len(table["overlaps"]) == 6
    assert CliRunner().invoke(app, [*given, "--format", "csv"]).stdout.startswith("method,a,b,mean")
    wrong = CliRunner().invoke(app, [*given, "--share", "0"])
    assert wrong.exit_code == 2
    assert wrong.stderr.strip() == "--share is 0; it must be above 0 and at most 1."
