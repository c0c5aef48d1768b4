"""The analysis of guidance: its rule on constructed figures, its measurements against other code."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tiny import tiny
from veridical.attribution import methods
from veridical.audits.corpora import Corpus
from veridical.audits.likeness import by_key, likeness, reading
from veridical.core import store
from veridical.core.errors import InputError
from veridical.core.records import Answers, Example
from veridical.core.seed import generator
from veridical.core.text import marked
from veridical.explanations.attribute import attribute
from veridical.explanations.explain import attributions, explained
from veridical.metric.agreement import kendall
from veridical.model.ask import ask, predict
from veridical.model.classifier import Classifier
from veridical.probes.guidance.alike import across, between_methods
from veridical.probes.guidance.change import Change, changes, interval
from veridical.probes.guidance.layers import TECHNIQUES, layer_rows, rows_of, techniques_of
from veridical.probes.guidance.measure import Measured, Settings
from veridical.probes.guidance.outlook import ENOUGH, correlation, foretold, tradeoff
from veridical.probes.guidance.record import AlikeRow, Cut, OverSeeds, RelianceRow, RunPoint
from veridical.probes.guidance.reliance import Reliance, reliance, relied
from veridical.probes.guidance.runs import Condition, Trained, condition, selection
from veridical.probes.guidance.summary import Findings, _moved, summarise
from veridical.probes.guidance.tables import RELIANCE, over_seeds
from veridical.probes.guidance.verdict import Evidence, details, headline, outcome_of, verdict

EXAMPLES = [
    Example("a", "the plot was boring but the acting is good", 0, rationale=((13, 19),)),
    Example("b", "a great story and a bad end", 1, rationale=((2, 13),)),
    Example("c", "really very good", 1, rationale=((0, 16),)),  # everything is marked
    Example("d", "the film was not good", 0),  # nothing is
    Example("e", "i loved this unbelievable film", 1, rationale=((2, 25),)),  # more marked than not
]


def classifier(seed: int = 0, family: str = "bert", **config: Any) -> Classifier:
    model, tokenizer = tiny(family, seed=seed, num_labels=2, **config)
    return Classifier(model, tokenizer, name=f"seed{seed}")


# -- a change from one condition to another -----------------------------------------------------------------


def seeds(mean: float, count: int = 3, texts: int = 40, spread: float = 0.01, noise: float = 0.05, key: str = "x"):
    """Values by text of some seeds: their means differ by `spread`, texts by `noise`."""
    draw = generator("seeds", key, mean, count)
    own = draw.normal(size=texts) * noise
    means = mean + spread * np.linspace(-1, 1, count) if count > 1 else [mean]
    return [{str(i): float(m + own[i] + 0.01 * draw.normal()) for i in range(texts)} for m in means]


@pytest.mark.parametrize(
    ("base", "guided", "state"),
    [
        (seeds(0.5), seeds(0.7, key="y"), "raised"),
        (seeds(0.7), seeds(0.5, key="y"), "lowered"),
        (seeds(0.5), seeds(0.505), "unchanged"),
        (seeds(0.5, spread=0.1), seeds(0.56, spread=0.1, key="y"), "unclear"),  # seeds differ by more
        (seeds(0.5, count=1), seeds(0.9, count=1), "unclear"),  # what another seed would do is not known
        (seeds(0.5, texts=4), seeds(0.9, texts=4), "unclear"),  # too few texts
    ],
)
def test_states(base, guided, state):
    change = changes({"it": (base, guided)})["it"]
    assert change.state == state
    assert change.seeds == (len(base), len(guided))
    assert change.difference == pytest.approx(change.guided - change.base)


def test_a_tiny_change_is_none_however_sure_it_is():
    base, guided = seeds(0.5, spread=0.0005, noise=0), seeds(0.51, spread=0.0005, noise=0)
    found = changes({"it": (base, guided)}, margin=0.05)["it"]
    assert found.p < 1e-6
    assert found.low > 0
    assert found.state == "unchanged"
    assert changes({"it": (base, guided)}, margin=0.005)["it"].state == "raised"


def test_the_interval_is_welchs_where_texts_do_not_vary():
    from scipy.stats import ttest_ind

    a, b = np.array([0.50, 0.53, 0.58]), np.array([0.61, 0.66, 0.62, 0.70])
    difference, low, high, freedom = interval(np.repeat(a[:, None], 9, 1), np.repeat(b[:, None], 9, 1))
    tested = ttest_ind(b, a, equal_var=False)
    wanted = tested.confidence_interval(0.95)
    assert (low, high) == pytest.approx((wanted.low, wanted.high))
    assert freedom == pytest.approx(tested.df)
    assert difference == pytest.approx(b.mean() - a.mean())


def test_the_interval_is_a_paired_t_where_seeds_do_not_vary():
    from scipy.stats import ttest_1samp

    draw = generator("paired")
    base, change = draw.normal(size=30), 0.2 + draw.normal(size=30) * 0.3
    change -= change.mean() - 0.2
    wanted = ttest_1samp(change, 0).confidence_interval(0.95)
    _, low, high, _ = interval(np.stack([base] * 2), np.stack([base + change] * 2))
    assert (low, high) == pytest.approx((wanted.low, wanted.high))


def test_holm_is_over_the_family():
    one = changes({"a": (seeds(0.5), seeds(0.53, key="y"))})["a"]
    two = changes({"a": (seeds(0.5), seeds(0.53, key="y")), "b": (seeds(0.5), seeds(0.5, key="z"))})["a"]
    assert one.p == two.p
    assert one.p_holm == one.p
    assert two.p_holm == pytest.approx(min(1.0, 2 * one.p))


def test_texts_without_a_value_on_both_sides_are_left_out():
    base, guided = seeds(0.5), seeds(0.7)
    for side in base:
        side["0"] = float("nan")
    del guided[0]["1"]  # the other seeds have it
    found = changes({"it": (base, guided)})["it"]
    assert found.texts == 39
    nothing = changes({"it": ([{"0": float("nan")}], [{"0": 1.0}])})["it"]
    assert (nothing.texts, nothing.difference, nothing.p, nothing.state) == (0, None, None, "unclear")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=12), st.floats(-0.5, 0.5))
def test_swapping_sides_swaps_the_change(values, shift):
    base = [{str(i): v + s for i, v in enumerate(values)} for s in (0.0, 0.02)]
    guided = [{str(i): v * 0.5 + shift + s for i, v in enumerate(values)} for s in (0.0, 0.03)]
    there, back = changes({0: (base, guided)})[0], changes({0: (guided, base)})[0]
    assert there.difference == pytest.approx(-back.difference, abs=1e-12)
    assert there.low == pytest.approx(-back.high, abs=1e-12)
    swapped = {"raised": "lowered", "lowered": "raised"}
    assert there.state == swapped.get(back.state, back.state)


# -- the rule -----------------------------------------------------------------------------------------------


def change(state: str, by: float = 0.0, **more: Any) -> Change:
    found = Change(0.5, 0.5 + by, by, by - 0.01, by + 0.01, 0.01, 0.02, 40, (3, 3), "unclear")
    return replace(found, state=state, **more)


def evidence(relied: str, guided: str | None, *witnesses: str, **more: Any) -> Evidence:
    names = [f"witness{i}" for i in range(len(witnesses))]
    plausibility = {name: change(state) for name, state in zip(names, witnesses, strict=True)}
    if guided is not None:
        plausibility["attention"] = change(guided, 0.3 if guided == "raised" else 0.0)
    found = Evidence(
        condition="att",
        guides=() if guided is None else ("attention",),
        witnesses=tuple(names),
        plausibility=plausibility,
        reliance=change(relied, 0.2 if relied == "raised" else 0.0),
        moved=0.3,
        margin=0.05,
    )
    return replace(found, **more)


@pytest.mark.parametrize(
    ("found", "outcome", "said"),
    [
        (evidence("raised", "raised", "raised"), "changed", "changed what the model relies on"),
        (evidence("raised", "unchanged"), "changed", "left the plausibility of attention where it was"),
        (evidence("raised", None), "changed", "guides no explanation"),
        (evidence("unchanged", "raised", "unchanged", "unclear"), "hacked", "the loss was met by what it guides alone"),
        (evidence("lowered", "raised", "lowered"), "hacked", "less than before"),
        (evidence("unchanged", "raised", "unchanged", "raised"), "mixed", "were not guided moved too"),
        (evidence("unchanged", "unchanged", "raised"), "unmoved", "moved nothing"),
        (evidence("unchanged", None), "unmoved", "moved nothing"),
        (
            evidence("unclear", "raised", reliance=change("unclear", low=-0.02, high=0.2)),
            "unclear",
            "neither leaves out 0 nor stays within the margin",
        ),
        (
            evidence("unclear", "raised", reliance=change("unclear", 0.1, p_holm=0.18)),
            "unclear",
            "leaves out 0, but text by text the change is not consistent (signed rank, p = 0.18)",
        ),
        (evidence("unchanged", "unclear"), "unclear", "whether the guided scores moved cannot be told"),
        (evidence("unchanged", "raised", moved=0.01), "unclear", "hardly moves its predictions"),
        (
            evidence("unclear", "raised", reliance=change("unclear", low=None, high=None, seeds=(1, 1))),
            "unclear",
            "cannot be told from 40 texts and 1 seed a side",
        ),
        (
            evidence("unclear", "raised", reliance=change("unclear", low=None, high=None, texts=3)),
            "unclear",
            "too few texts have a rationale",
        ),
    ],
)
def test_the_rule(found, outcome, said):
    assert outcome_of(found) == outcome
    sentence = verdict(found).sentence
    assert said in sentence
    assert sentence.endswith(".")


def test_a_sentence_has_its_figures():
    sentence = verdict(evidence("unchanged", "raised", "unchanged")).sentence
    assert "(+0.300 auc, 95% +0.290 to +0.310)" in sentence
    assert "(+0.000 of its confidence, 95% −0.010 to +0.010)" in sentence
    assert ", but erasing the words people marked" in sentence


def test_likeness_is_held_against_two_seeds_of_the_baseline_if_there_are_two():
    row = AlikeRow("d", "att", "attention", True, 0.2, 0.7, None, None, None, None, None, 0, (), ())
    found = evidence("unchanged", "raised", "unchanged")
    for within, said in ((0.7, "attention 0.200 (0.700)"), (None, "the baseline has one seed")):
        lines = details(found, alike=[replace(row, within_base=within)], specials=[], predictions=[], base="baseline")
        assert any(said in line for line in lines)


def test_a_headline_holds_every_condition():
    states = {"a": "unchanged", "b": "unchanged", "c": "raised"}
    made = [verdict(evidence(state, "raised", "unchanged", condition=name)) for name, state in states.items()]
    first, second = headline(made).split("; ")
    assert first == "c made the model rely more on the rationale"
    assert second == "a and b met the loss without changing what the model relies on."
    assert headline(made[:1]) == made[0].sentence
    unsure = [verdict(evidence("unclear", "raised", condition=name)) for name in "de"]
    assert headline(unsure) == "What d and e changed cannot be told."
    assert headline([made[0], *unsure]).endswith("relies on; what d and e changed cannot be told.")


# -- reliance -----------------------------------------------------------------------------------------------


class Bag:
    """Answers as a bag of words would: a class's probability is the share of its words that are left."""

    def __init__(self, good: set[int]):
        self.good = good

    def __call__(self, variants) -> Answers:
        p = np.array([sum(i in self.good for i in v.ids) / max(1, len(self.good)) for v in variants])
        both = np.stack([1 - p, p], 1)
        return Answers(both, both)


def ask_bag(example: Example, decides: str, **how: Any):
    """The reliance of a model whose prediction is the share of these words' tokens that it still sees."""
    clf = classifier()
    (encoded,) = clf.encode([example])
    free = [i for i, f in enumerate(encoded.free) if f]
    words = example.text.split()
    ids = {encoded.ids[i] for i in free if words[encoded.words[i]] in decides.split()}
    bag = Bag(ids)
    asker = reliance(explained(clf, encoded, 1, np.array([0.0, 1.0]), np.array([0.0, 1.0])), **how)
    asked = next(asker)
    try:
        asker.send(bag(asked))
    except StopIteration as end:
        return end.value
    raise AssertionError("it asks once")


def test_a_model_that_uses_the_marked_words_relies_on_them():
    found = ask_bag(EXAMPLES[0], "boring")
    assert found.words == 1
    assert found.rationale == 1
    assert found.others == 0
    assert found.confidence == 0.5
    assert relied({"a": found}) == {"a": 2.0}  # it falls from surely right to surely wrong
    assert found.alone == 0
    assert found.flips_rationale == 1
    assert found.flips_others == 0


def test_a_model_that_uses_other_words_does_not():
    found = ask_bag(EXAMPLES[0], "plot acting", draws=64)
    assert found.rationale == 0
    assert 0 < found.others < 1
    assert relied({"a": found})["a"] < 0
    assert found.alone == 1
    assert found.empty == 1
    assert 0 < found.flips_others < 1


def test_as_many_are_erased_on_both_sides():
    clf = classifier()
    for example in EXAMPLES:
        (encoded,) = clf.encode([example])
        asker = reliance(explained(clf, encoded, 0, np.zeros(2), np.zeros(2)), draws=5)
        marks = marked(encoded)
        words = {w for w, f in zip(encoded.words, encoded.free, strict=True) if f}
        inside = {w for w, m in zip(encoded.words, marks, strict=True) if m}
        k = min(len(inside), len(words) - len(inside))
        if k == 0:
            with pytest.raises(StopIteration):
                next(asker)
            continue
        pieces = {w: encoded.words.count(w) for w in words}
        for gone in next(asker)[2:]:
            assert len(encoded.ids) - len(gone.ids) in {
                sum(pieces[w] for w in chosen) for side in (inside, words - inside) for chosen in combinations(side, k)
            }


def test_nothing_to_compare_is_undefined():
    clf = classifier()
    encoded = clf.encode(EXAMPLES)
    full = predict(clf, encoded)
    askers = [
        reliance(explained(clf, e, int(z.argmax()), z, p))
        for e, z, p in zip(encoded, full.logits, full.probabilities, strict=True)
    ]
    found = [one for one, _ in ask(clf, askers)]
    assert [one is None for one in found] == [False, False, True, True, False]
    assert found[4].words == 2  # i and film, and as many of the three marked ones


def test_draws_are_of_the_text_and_the_seed_alone():
    clf = classifier()
    encoded = clf.encode(EXAMPLES[:2])

    def asked(e, **how):
        return next(reliance(explained(clf, e, 0, np.zeros(2), np.zeros(2)), **how))

    assert asked(encoded[0]) == asked(encoded[0])
    assert asked(encoded[0]) != asked(encoded[0], seed=1)
    assert asked(encoded[0], draws=3) == asked(encoded[0])[:8]
    with pytest.raises(InputError, match="draws is 0"):
        asked(encoded[0], draws=0)
    assert len(asked(encoded[0], level="token")) == 18


def test_a_timid_model_relies_as_a_bold_one_does():
    """A tenth of the probability at stake, the same share of the confidence."""
    clf = classifier()
    (encoded,) = clf.encode(EXAMPLES[:1])
    found = []
    for scale in (1.0, 0.1):
        full = np.array([0.5 - scale / 2, 0.5 + scale / 2])
        asker = reliance(explained(clf, encoded, 1, full, full))
        asked = next(asker)
        p = 0.5 + scale * (np.array([len(v.ids) / len(encoded.ids) for v in asked]) - 0.5)
        with pytest.raises(StopIteration) as end:
            asker.send(Answers(np.stack([1 - p, p], 1), np.stack([1 - p, p], 1)))
        found.append(end.value.value)
    assert found[0].rationale == pytest.approx(10 * found[1].rationale)
    assert relied({"a": found[0]})["a"] == pytest.approx(relied({"a": found[1]})["a"])
    assert relied({}) == {}


# -- layers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "modernbert", "distilbert"])
def test_rows_of_a_layer_are_the_methods_ended_there(family):
    clf = classifier(family=family)
    names = [name for name in TECHNIQUES if family != "modernbert" or "decompx" not in name]
    encoded = clf.encode(EXAMPLES)
    batch = clf.collate(encoded)
    with clf.eager(), clf.at_rest():
        rows = layer_rows(clf, batch, names)
        attentions = clf.forward(batch, attentions=True).attentions
    ids, mask, types = batch.ids, batch.mask.long(), batch.types

    def run(method: str, **options: Any) -> torch.Tensor:
        return attribute(clf.model, ids, mask, method=method, token_type_ids=types, **options)

    for layer in range(len(attentions)):
        for name in names:
            if name in ("attention", "rollout"):
                continue
            method, _, alone = name.partition(":")
            options = {"rollout": False} if alone else {}
            assert torch.allclose(rows[name][:, layer], run(method, layer=layer + 1, **options), atol=1e-5)
    assert torch.allclose(rows["attention"][:, -1], run("attention"), atol=1e-6)
    assert torch.allclose(rows["rollout"][:, -1], run("rollout"), atol=1e-6)
    if family == "bert":  # its head reads the first position
        first = torch.where(batch.mask, attentions[0].mean(1)[:, 0], 0.0)
        assert torch.allclose(rows["attention"][:, 0], first, atol=1e-6)
        assert torch.allclose(rows["rollout"][:, 0] * 2 - torch.eye(ids.shape[1])[0], first, atol=1e-6)


def test_rows_do_not_depend_on_batches():
    clf = classifier()
    encoded = clf.encode(EXAMPLES)
    together = dict(rows_of(clf, encoded, list(TECHNIQUES)))
    for place, rows in rows_of(clf, encoded, list(TECHNIQUES), budget=1):
        for name, own in rows.items():
            assert own.shape == (2, len(encoded[place].ids))
            assert torch.allclose(own, together[place][name], atol=1e-5)


def test_techniques_follow_the_methods():
    assert techniques_of(["occlusion", "alti"]) == ("alti:rollout=false", "alti")
    assert techniques_of(["occlusion"]) == ()


# -- what was trained ---------------------------------------------------------------------------------------


def fake_run(
    folder: Path,
    objective: str = "cross_entropy",
    seed: int = 0,
    bound: str = "",
    failed: str = "",
    select: str = "loss",
) -> Path:
    spec = {"objective": objective, "seed": seed, "model": "m", "train": {"select": select}}
    spec |= {"bound": bound} if bound else {}
    scores = {"scores": {} if failed else {"dev": {"loss": 0.5, "explanation": 0.1}}, "epochs": 1, "best_epoch": 1}
    store.write_json(folder / "spec.json", spec)
    rest = {"seconds": 1, "cut": {}, **({"failed": failed} if failed else {})}
    store.write_json(folder / "scores.json", {**scores, **rest})
    return folder


@pytest.mark.parametrize(
    ("objective", "bound", "guides", "setting"),
    [
        ("cross_entropy", "", (), ""),
        ("explanation:weight=0.6:method=rollout", "", ("rollout",), "weight 0.6"),
        ("explanation:method=alti/layer=2", "", ("alti:layer=2",), "weight 1"),
        ("explanation:method=rollout", "explanation=0.03+0.031:lr=0.1", ("rollout",), "bound 0.03+0.031"),
        ("cross_entropy:weight=0,explanation", "", ("attention",), "alone"),
        ("saloss:weight=0.01", "", ("attention",), ""),
        ("explanation:weight=0", "", (), "weight 0"),
    ],
)
def test_what_an_objective_guides(tmp_path, objective, bound, guides, setting):
    one = condition("it", [fake_run(tmp_path / "r", objective, bound=bound)])
    assert (one.guides, one.setting) == (guides, setting)
    assert one.dev_bound == (0.031 if bound else None)


def test_seeds_in_a_folder(tmp_path):
    for seed in (10, 2, 0):
        fake_run(tmp_path / f"seed{seed}", seed=seed)
    fake_run(tmp_path / "bound" / "seed7", seed=7)  # of a bound's search
    fake_run(tmp_path / "seed3", seed=3, failed="No epoch keeps the bound.")
    found = condition("it", [tmp_path])
    assert [run.seed for run in found.runs] == [0, 2, 10]
    assert found.failed == (3,)


def test_conditions_that_were_selected_by_different_scores_are_told_apart(tmp_path):
    rules = {"base": "macro_f1", "att": "macro_f1", "c-rollout": "loss"}
    found = [condition(name, [fake_run(tmp_path / name, select=rule)]) for name, rule in rules.items()]
    assert selection(found[:2]) == ""
    assert "(base by macro_f1, att by macro_f1, c-rollout by loss)" in selection(found)
    mixed = [fake_run(tmp_path / "x", seed=1, select="loss"), fake_run(tmp_path / "y", seed=2, select="macro_f1")]
    with pytest.raises(InputError, match=r"were not trained alike .*select=loss"):
        condition("it", mixed)


def test_mistakes_in_runs(tmp_path):
    a, b = fake_run(tmp_path / "a"), fake_run(tmp_path / "b", "explanation", seed=1)
    with pytest.raises(InputError, match="were not trained alike"):
        condition("it", [a, b])
    with pytest.raises(InputError, match="have seed 0"):
        condition("it", [a, fake_run(tmp_path / "c")])
    with pytest.raises(InputError, match="is no training run"):
        condition("it", [tmp_path / "nowhere"])
    with pytest.raises(InputError, match="Every run of 'it' failed"):
        condition("it", [fake_run(tmp_path / "d", failed="no")])
    store.remove(a / "scores.json")
    with pytest.raises(InputError, match="not a finished run"):
        condition("it", [a])


# -- over runs ----------------------------------------------------------------------------------------------


def measured(f1: float = 0.5, readings: Any = None) -> Measured:
    return Measured({"macro_f1": f1}, {}, readings or {}, {}, {}, {})


def conditions_of(**sizes: int) -> list[Condition]:
    def runs(count: int) -> tuple[Trained, ...]:
        return tuple(Trained(Path(), seed, {"loss": 0.3 + seed / 10, "explanation": 0.1}) for seed in range(count))

    return [Condition(name, "cross_entropy", "", "loss", runs(count), ()) for name, count in sizes.items()]


def test_means_over_seeds():
    few, many = over_seeds([0.1, 0.3, None]), over_seeds([0.1, 0.2, 0.3, 0.4, 0.5])
    assert few == OverSeeds(pytest.approx(0.2), None, None, (0.1, 0.3))
    assert many.low < 0.3 < many.high
    assert over_seeds([]) == OverSeeds(None, None, None, ())


def test_correlations():
    from scipy.stats import spearmanr

    draw = generator("correlation")
    x, noise = draw.normal(size=30), draw.normal(size=30)
    found = correlation(list(x), list(x + noise))
    assert found.rho == pytest.approx(spearmanr(x, x + noise).statistic)
    assert -1 < found.low < found.rho < found.high < 1
    assert found.p < 0.01
    assert correlation(range(9), range(9)).low == pytest.approx(1)
    assert correlation(list(x[: ENOUGH - 1]), list(noise[: ENOUGH - 1])).rho is None
    assert correlation([1.0] * 9, range(9)).rho is None


def test_what_foretells_f1_elsewhere():
    (one,) = conditions_of(a=9)
    found = {
        ("a", i): {
            "home": replace(measured(0.5 + i / 100), values={("auc", "attention"): {"t": i % 2, "u": np.nan}}),
            "away": measured(0.4 + i / 50),
        }
        for i in range(9)
    }
    rows = {(row.what, row.method): row for row in foretold(found, [one], "home", ["away"], ["auc"])}
    assert rows["macro_f1", ""].rho == pytest.approx(1)
    assert rows["auc", "attention"].points[3] == RunPoint("a", 3, 1.0, 0.46)
    assert abs(rows["auc", "attention"].rho) < 0.2
    assert rows["reliance", ""].n == 0
    few = foretold(found, conditions_of(a=3), "home", ["away"], ["auc"])
    assert all(row.rho is None for row in few)
    assert few[0].n == 3


def test_the_tradeoff_starts_at_weight_0():
    (base,) = conditions_of(baseline=2)
    guided = [
        replace(base, name=name, objective=f"explanation:weight={weight}:method=rollout")
        for name, weight in (("a", 0.5), ("b", 4))
    ]
    held = replace(base, name="c", objective="explanation:method=rollout", bound="explanation=0.03+0.02")
    label = "explanation:method=rollout"
    rows = tradeoff(base, [*guided, held], {(label, 0): 0.4, (label, 1): 0.6})
    assert [(row.condition, row.setting) for row in rows] == [
        ("baseline", "weight 0"),
        ("a", "weight 0.5"),
        ("b", "weight 4"),
        ("c", "bound 0.03+0.02"),
    ]
    assert rows[0].explanation.values == (0.4, 0.6)
    assert rows[1].cross_entropy.values == pytest.approx((0.3, 0.4))
    assert rows[3].dev_bound == 0.02
    assert {row.method for row in rows} == {"rollout"}


def test_explanations_are_compared_across_different_seeds_only():
    models = [classifier(seed) for seed in range(4)]
    own = [attributions(clf, clf.encode(EXAMPLES), methods.choose("gradient")) for clf in models]
    read = [{"gradient": {(r.id, r.text): r for r in map(reading, one)}} for one in own]
    found = {
        ("baseline", 0): {"d": measured(readings=read[0])},
        ("baseline", 1): {"d": measured(readings=read[1])},
        ("att", 0): {"d": measured(readings=read[2])},
        ("att", 1): {"d": measured(readings=read[3])},
    }
    base, att = conditions_of(baseline=2, att=2)
    (row,) = across(found, base, [att], ["d"])

    def tau(a: int, b: int) -> float:
        return float(np.mean(likeness(own[a], own[b], abs=True).tau))

    assert row.within_base == pytest.approx(tau(0, 1))
    assert row.within_own == pytest.approx(tau(2, 3))
    assert row.to_base == pytest.approx((tau(0, 3) + tau(1, 2)) / 2)
    assert row.difference == pytest.approx(row.to_base - row.within_base)
    assert sum(row.histogram) == len(EXAMPLES)


def test_methods_are_compared_by_what_they_say_of_the_text_alone():
    """Special tokens score 0 by every method: with them two methods would look more alike than they are."""
    names = ("gradient", "input_x_gradient")
    models = [classifier(seed) for seed in range(2)]
    said = [{name: attributions(clf, clf.encode(EXAMPLES), methods.choose(name)) for name in names} for clf in models]
    found = {
        ("baseline", seed): {"d": measured(readings={name: by_key(map(reading, by[name])) for name in names})}
        for seed, by in enumerate(said)
    }
    (pair,) = between_methods(found, conditions_of(baseline=2), ["d"])
    taus = [
        kendall(*(np.abs(a.scores[list(a.encoded.free)]) for a in both))
        for by in said
        for both in zip(by["gradient"], by["input_x_gradient"], strict=True)
    ]
    assert (pair.a, pair.b, pair.n) == (*names, len(taus))
    assert pair.tau == pytest.approx(np.mean(taus))


def whole(moves: dict[str, float], relies: float) -> Findings:
    """A summary of three seeds a side: by how much the condition's AUC of each method and its reliance differ."""
    base, att = conditions_of(baseline=3, att=3)
    att = replace(att, objective="explanation:weight=1")
    examples = tuple(Example(str(i), "a good film", 1, rationale=((2, 6),)) for i in range(30))
    found = {}
    for one, on in ((base, 0.0), (att, 1.0)):
        for run in one.runs:
            draw = generator("whole", one.name, run.seed)
            values = {
                ("auc", method): {e.id: 0.4 + on * by + 0.005 * draw.normal() for e in examples}
                for method, by in moves.items()
            }
            words = {
                e.id: Reliance(1, 0.4, 0.1 + 0.4 * on * relies + 0.002 * draw.normal(), 0.05, 0.2, 0.1, 0.1, 0.4)
                for e in examples
            }
            found[one.name, run.seed] = {"d": replace(measured(), values=values, reliance=words)}
    how = Settings(tuple(moves), ("auc",), 8, "delete", 0)
    corpora, cuts = [Corpus("d", "in", examples, 0)], {"d": Cut(0, 0)}
    return summarise([base, att], corpora, found, {}, how, ["occlusion"], 0.05, cuts)


@pytest.mark.parametrize(
    ("moves", "relies", "outcome"),
    [
        ({"attention": 0.4, "occlusion": 0.0}, 0.0, "hacked"),
        ({"attention": 0.4, "occlusion": 0.0}, -0.3, "hacked"),
        ({"attention": 0.4, "occlusion": 0.2}, 0.0, "mixed"),
        ({"attention": 0.4, "occlusion": 0.2}, 0.3, "changed"),
        ({"attention": 0.0, "occlusion": 0.0}, 0.0, "unmoved"),
    ],
)
def test_from_measured_runs_to_the_verdict(moves, relies, outcome):
    made = whole(moves, relies)
    (found,) = made.verdicts
    assert found.outcome == outcome
    assert made.headline == found.sentence
    (change,) = [row for row in made.changes if row.what == "reliance"]
    assert change.difference == pytest.approx(relies, abs=0.01)
    assert any("occlusion" in line for line in found.details)


def test_a_model_that_no_word_moves_is_not_judged():
    def mean(value: float) -> OverSeeds:
        return OverSeeds(value, None, None, (value,))

    row = RelianceRow("d", "a", mean(0.0), **{key: mean(0.0) for key in RELIANCE}, texts=1)
    assert _moved([row], "d", ["a"]) == 0
    timid = replace(row, rationale=mean(-0.01), confidence=mean(0.04))
    assert _moved([row, timid], "d", ["a"]) == pytest.approx(0.25)
    assert _moved([row, replace(row, flips_others=mean(0.3))], "d", ["a"]) == 0.3
    assert _moved([timid], "other", ["a"]) == 0
