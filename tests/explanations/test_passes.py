"""What explanations and scores cost, counted in full-length forward passes."""

from __future__ import annotations

import pytest

from tiny import TEXTS, tiny
from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.explanations.passes import one_forward, passes_of, passes_of_metrics
from veridical.metric import metrics
from veridical.model.classifier import Classifier

SOME = ["bert", "deberta_v2", "modernbert", "bilstm"]


def subject(family: str, text: str = TEXTS[4], **config):
    clf = Classifier(*tiny(family, **config))
    (encoded,) = clf.encode([Example("0", text)])
    return clf, encoded


@pytest.mark.filterwarnings("ignore::veridical.core.errors.Caution")  # what is counted here need not be right
@pytest.mark.parametrize("family", SOME)
def test_passes_through_the_model_are_counted(family):
    clf, e = subject(family)
    due = {"random": 1, "attention": 1, "gradient": 3, "input_x_gradient": 3, "deeplift": 4}
    due |= {"integrated_gradients:rule=mid:aggregate=l2": 1 + 3 * 50, "integrated_gradients:steps=4:rule=right": 2 + 12}
    for spec, passes in due.items():
        attribution, counted = passes_of(clf, e, methods.choose(spec))
        assert counted == pytest.approx(passes, rel=0.01), spec
        assert attribution.method == methods.choose(spec).label


@pytest.mark.parametrize("family", SOME)
def test_questions_are_counted_by_their_tokens(family):
    clf, e = subject(family)
    n, free = len(e.ids), sum(e.free)
    _, masked = passes_of(clf, e, methods.choose("occlusion:by=attention"))
    assert masked == free + 2  # the prediction, the whole text among the questions, and as long a text per token
    _, deleted = passes_of(clf, e, methods.choose("occlusion"))
    assert free - 2 < deleted < masked  # the questions are one token shorter, and two equal neighbours ask the same
    _, few = passes_of(clf, e, methods.choose("lime:samples=20"))
    assert 1 + 1 + 20 * (n - free) / n < few < 1 + 1 + 20


def test_what_is_multiplied_beside_the_model_counts():
    """12 layers of DecompX come to 0.75 forward passes a token (docs/benchmarks.md); of four tiny ones it is less."""
    clf, e = subject("bert", num_hidden_layers=4)
    counts = {spec: passes_of(clf, e, methods.choose(spec))[1] for spec in ("decompx", "decompx_classifier", "alti")}
    assert counts["decompx"] > 0.3 * len(e.ids)
    assert counts["decompx_classifier"] > 0.3 * len(e.ids)
    assert 1 < counts["alti"] < 3
    short, e = subject("bert", "The plot was boring, but the acting is really very good.", num_hidden_layers=4)
    assert passes_of(short, e, methods.choose("decompx"))[1] < 0.7 * counts["decompx"]


def test_a_count_is_the_same_again_and_for_a_model_that_is_seen_for_the_first_time():
    clf, e = subject("bert")
    first = passes_of(clf, e, methods.choose("alti"))[1]  # decomposing checks a model once
    assert passes_of(clf, e, methods.choose("alti"))[1] == first
    assert passes_of(clf, e, methods.choose("decompx"))[1] == passes_of(*subject("bert"), methods.choose("decompx"))[1]


@pytest.mark.parametrize("family", ["bert", "bilstm"])
def test_one_forward_pass_has_the_products_of_its_layers(family):
    clf, e = subject(family)
    n, operations = len(e.ids), one_forward(clf, e)
    if family == "bert":  # per layer: four of 32 x 32, two of 32 x 48, scores and mixing; pooler and head on one vector
        assert operations == 2 * (2 * (n * (4 * 32 * 32 + 2 * 32 * 48) + 2 * n * n * 32) + 32 * 32 + 32 * 3)
    else:  # the LSTM has four gates in two directions
        lstm = 2 * n * 2 * 4 * 16 * (24 + 16)
        assert lstm < operations < 1.5 * lstm


def test_a_model_that_cannot_be_decomposed_says_so():
    with pytest.raises(InputError, match="no wiring"):
        passes_of(*subject("bilstm"), methods.choose("decompx"))


def test_metrics_are_counted_together_by_their_distinct_questions():
    clf, e = subject("bert")
    n, free = len(e.ids), sum(e.free)
    two = [passes_of(clf, e, methods.choose(name))[0] for name in ("gradient", "attention")]
    monotonicity, comprehensiveness, soft, auc = (
        metrics.choose(name) for name in ("monotonicity", "comprehensiveness", "soft_sufficiency", "auc")
    )
    alone = passes_of_metrics(clf, two[:1], [monotonicity])
    assert alone == sum(range(n - free, n + 1)) / n
    assert passes_of_metrics(clf, two[:1], [monotonicity, comprehensiveness]) == alone  # all of it is asked already
    assert alone < passes_of_metrics(clf, two, [monotonicity]) < 2 * alone  # they share the whole and the empty text
    assert passes_of_metrics(clf, two[:1], [soft]) == 11  # ten draws at full length, and the empty text once
    assert passes_of_metrics(clf, two, [auc]) == 0


def test_a_classifier_counts_the_tokens_of_what_it_is_asked():
    clf, e = subject("bert")
    attribution, _ = passes_of(clf, e, methods.choose("gradient"))
    assert clf.asked == 0
    passes = passes_of_metrics(clf, [attribution], [metrics.choose("sufficiency")])
    assert clf.asked == passes * len(e.ids) > 0
