"""Every metric, every soft mask and the scheduler: the pretend device answers what the CPU answers."""

from __future__ import annotations

import numpy as np
import pytest
from on_device import EXAMPLES, both, close, texts

import pretend
import veridical
from tiny import FAMILIES, tiny
from veridical.audits.evaluate import evaluate
from veridical.core.errors import ExhaustedError
from veridical.explanations.explain import explained
from veridical.metric import metrics
from veridical.model import memory
from veridical.model.ask import answer, ask, predict
from veridical.model.classifier import Classifier
from veridical.model.erase import erase, soften

SPECS = [
    *(metric.name for metric in metrics if metric.kind == "faithfulness"),
    "sufficiency:by=attention:divisor=plus_one:dedup=true",
    "comprehensiveness:by=mask:undefined=zero",
    "comprehensiveness:preset=ood_faith",
    "decision_flip:exact=true",
    "soft_sufficiency:mode=gaussian_sd:variance=2",
    "soft_comprehensiveness:mode=attention",
]
MODES = ("bernoulli", "gaussian", "gaussian_sd", "attention")


@pytest.mark.parametrize("family", ["bert", "modernbert", "bilstm"])
def test_scores_of_explanations_are_those_of_the_cpu(family):
    here, there = (evaluate(clf, EXAMPLES, ["random", "attention"], SPECS) for clf in both(family))
    assert len(here.cells) == len(there.cells) > len(SPECS)
    for a, b in zip(here.cells, there.cells, strict=True):
        assert (a.metric, a.method, a.score.value is None) == (b.metric, b.method, b.score.value is None)
        if a.score.value is not None:
            assert b.score.value == pytest.approx(a.score.value, abs=1e-5)


@pytest.mark.parametrize("where", ["word", "block"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_soft_masks(family, mode, where):
    if where == "block" and (family == "bilstm" or mode == "attention"):
        pytest.skip("a BiLSTM has no embedding block; attention is softened in the layers")
    answers = []
    for clf in both(family):
        asked = []
        for e in texts(family):
            ex = explained(clf, e, 0, np.zeros(3), np.zeros(3))
            keep = np.where(e.free, np.linspace(0, 1, len(e.ids)), 1.0).astype(np.float32)
            asked.append(soften(ex, keep, seed=3, mode=mode, where=where))
        answers.append(answer(clf, asked))
    close(answers[0].logits, answers[1].logits)


@pytest.mark.parametrize("by", ["delete", "mask", "attention", "zero_id_attended"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_scheduler(family, by):
    def asker(clf, e):
        ex = explained(clf, e, 0, np.zeros(3), np.zeros(3))
        first = yield [erase(ex, [position], by) for position in np.flatnonzero(e.free)[:3]]
        second = yield [erase(ex, np.flatnonzero(e.free)[::2], by)]
        return np.concatenate([first.probabilities.ravel(), second.logits.ravel()])

    if by == "mask" and both(family)[0].tokenizer.mask_token_id is None:
        pytest.skip("no mask token")
    here, there = ([reply for reply, _ in ask(clf, [asker(clf, e) for e in texts(family)])] for clf in both(family))
    close(np.concatenate(here), np.concatenate(there))


# -- memory -------------------------------------------------------------------------------------------------


@pytest.fixture
def clf():
    memory._rooms.clear()
    return both("bert")[1]


def longest() -> int:
    return max(len(e.ids) for e in texts("bert"))


def bytes_of(rows: int) -> int:
    """The largest tensor of a pass: the middle of a feed-forward layer, or the attention of the longest text."""
    return max(rows * longest() * 48 * 4, rows * 2 * longest() ** 2 * 4)


def block_bytes(clf, spec: str) -> int:
    """SmoothGrad keeps eight sums of a text's gradients, to know its sampling error."""
    return 8 * longest() * clf.model.config.hidden_size * 4 if spec.startswith("smoothgrad") else 0


def table_bytes(clf) -> int:
    return max(p.numel() * 4 for p in clf.model.parameters())


def test_a_pass_that_does_not_fit_is_halved_and_that_is_remembered(clf, monkeypatch):
    many, sizes = texts("bert") * 8, []
    whole = predict(clf, many).logits
    memory._rooms.clear()
    forward = clf.forward

    def watched(batch, **how):
        sizes.append(len(batch.ids))
        return forward(batch, **how)

    monkeypatch.setattr(clf, "forward", watched)
    with pretend.memory(max(bytes_of(4), table_bytes(clf))):
        close(whole, predict(clf, many).logits)
        tried = len(sizes)
        assert sizes[0] > sizes[tried - 1] or sizes[0] > 4
        close(whole, predict(clf, many).logits)
    assert sizes[tried] < sizes[0]  # what did not fit once is not tried again
    assert memory.room_for(clf, "questions").settled


def test_the_budget_grows_while_passes_fit(clf, monkeypatch):
    monkeypatch.setattr(memory, "START", 64)
    many = texts("bert") * 30
    whole = predict(clf, many).logits
    room = memory.room_for(clf, "questions")
    assert room.tokens > 64
    assert not room.settled
    memory._rooms.clear()
    with pretend.memory(max(bytes_of(6), table_bytes(clf))):
        close(whole, predict(clf, many).logits)
        room = memory.room_for(clf, "questions")
        assert room.settled
        kept = room.tokens
        predict(clf, many)
        assert room.tokens == kept


@pytest.mark.parametrize(
    "spec", ["input_x_gradient", "integrated_gradients:steps=20", "attention_x_gradient", "smoothgrad:samples=9"]
)
def test_methods_that_look_inside_halve_too(clf, spec):
    from veridical.attribution import methods
    from veridical.explanations.explain import attributions

    choice, many = methods.choose(spec), texts("bert") * 4
    whole = attributions(clf, many, choice)
    memory._rooms.clear()
    with pretend.memory(max(bytes_of(3), table_bytes(clf), block_bytes(clf, spec))):
        for a, b in zip(whole, attributions(clf, many, choice), strict=True):
            scale = max(1.0, float(np.abs(a.scores).max()))
            np.testing.assert_allclose(b.scores / scale, a.scores / scale, atol=1e-5)
    assert memory.room_for(clf, choice.label).settled


@pytest.mark.parametrize("spec", ["gradient", "smoothgrad:samples=9", "attention", "occlusion"])
def test_tensors_are_explained_in_passes_that_fit(clf, spec):
    batch = clf.collate(texts("bert") * 4)
    given = (clf.model, batch.ids, batch.mask, spec, 1)
    whole = veridical.attribute(*given).cpu().numpy()
    memory._rooms.clear()
    with pretend.memory(max(bytes_of(3), table_bytes(clf), block_bytes(clf, spec))):
        close(whole, veridical.attribute(*given).cpu().numpy())


def test_weights_that_do_not_fit_stay_where_they_were():
    clf = Classifier(*tiny("bert"))
    before = predict(clf, texts("bert")).logits
    names = [name for name, weight in clf.model.named_parameters() if weight.numel() * 4 > 4000]
    assert names != [clf.model.named_parameters().__next__()[0]]  # some of them are moved before one does not fit
    with pretend.memory(4000), pytest.raises(ExhaustedError, match=r"do not fit into the memory of pretend"):
        memory.move(clf, pretend.register())
    assert {weight.device.type for weight in clf.model.parameters()} == {"cpu"}
    close(before, predict(clf, texts("bert")).logits)


def test_one_text_that_does_not_fit_is_a_sentence(clf):
    with (
        pretend.memory(longest() * 16),
        pytest.raises(
            ExhaustedError, match=r"A text of \d+ tokens does not fit into the memory of pretend:0.*device=\"cpu\""
        ),
    ):
        predict(clf, texts("bert"))
    assert np.isfinite(predict(clf, texts("bert")).logits).all()  # and nothing is left of it
