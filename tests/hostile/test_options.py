"""Options out of range: every number that a registered thing takes has a range, and what is outside is refused."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any

import pytest

from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.ranges import ranges
from veridical.core.registry import Registry, options_of, resolve
from veridical.data import datasets
from veridical.metric import metrics
from veridical.model import bilstm
from veridical.training.prior import priors
from veridical.training.term import terms

REGISTRIES: tuple[Registry[Any], ...] = (methods, metrics, terms, priors, datasets)
FAR_OUT = ("-1", "-1e9", "nan", "inf", "-inf", 10**400, "9" * 5000)


def is_number(annotation: Any) -> bool:
    """Whether an int or a float may be given, alone, in a union or in a tuple."""
    return annotation in (int, float) or any(map(is_number, typing.get_args(annotation)))


def numbers() -> Iterator[Any]:
    """Every option with a number, of every registered thing and of the one model with options of its own."""
    runs = [(f"{registry.kind} {entry.name!r}", entry.run) for registry in REGISTRIES for entry in registry]
    for who, run in [*runs, ("model 'bilstm'", bilstm.build)]:
        hints = typing.get_type_hints(run, include_extras=True)
        for name, parameter in options_of(run).items():
            if is_number(hints[name]):
                yield pytest.param(who, run, name, hints[name], parameter.default, id=f"{who}:{name}")


@pytest.mark.parametrize(("who", "run", "name", "annotation", "default"), list(numbers()))
def test_every_number_has_a_range(who, run, name, annotation, default):
    allowed = ranges(annotation)
    assert allowed, "say in the annotation what is allowed: Annotated[int, at_least(1)]"
    for limit in allowed:
        limit.check(default, name)  # and the default is in it
    needed = {key: "x" for key, p in options_of(run).items() if p.default is p.empty}
    for value in FAR_OUT:
        with pytest.raises(InputError) as refusal:
            resolve(run, {**needed, name: value}, who)
        assert str(refusal.value).startswith(f"option {name!r} of {who} is ")
    with pytest.raises(InputError) as refusal:
        resolve(run, {**needed, name: "-1"}, who)
    assert str(refusal.value) == f"option {name!r} of {who} is -1; it must be {allowed[0].phrase}."


def test_the_test_sees_the_numbers():
    seen = {str(case.id) for case in numbers()}
    assert {"attribution method 'lime':samples", "metric 'sufficiency':ratios", "model 'bilstm':hidden"} <= seen
    assert {"term 'virtual_adversarial':radius", "prior 'textrank':damping", "dataset 'babi/1':size"} <= seen
    assert all(map(is_number, (int, tuple[float, ...], int | None)))
    assert not any(map(is_number, (bool, str | None)))


CASES = [
    (methods, "lime:samples=0", "is 0; it must be from 1 to 1,000,000"),
    (methods, "lime:samples=1e12", "is 1e+12; it must be from 1 to 1,000,000"),
    (methods, "lime:width=-1", "is -1; it must be from 0.01 to 100"),
    (methods, "lime:width=0", "is 0; it must be from 0.01 to 100"),
    (methods, "lime:width=1e200", "is 1e+200; it must be from 0.01 to 100"),
    (methods, "lime:alpha=-0.1", "is -0.1; it must be at least 0"),
    (methods, "lime:seed=0.5", "is '0.5'; it must be a whole number"),
    (methods, "kernel_shap:samples=0", "is 0; it must be from 2 to 1,000,000"),
    (methods, "kernel_shap:samples=1", "is 1; it must be from 2 to 1,000,000"),
    (methods, "kernel_shap:samples=ten", "is 'ten'; it must be a number"),
    (methods, "smoothgrad:noise=-1", "is -1; it must be at least 0"),
    (methods, "smoothgrad:samples=0", "is 0; it must be from 1 to 100,000"),
    (methods, "integrated_gradients:steps=0", "is 0; it must be from 1 to 5,000"),
    (methods, "integrated_gradients:steps=1e12", "is 1e+12; it must be from 1 to 5,000"),
    (methods, "integrated_gradients:tolerance=-1", "is -1; it must be from 0 to 1"),
    (methods, "random:seed=-1", "is -1; it must be from 0 to 4,294,967,295"),
    (methods, "alti:layer=0", "is 0; it must be at least 1"),
    (methods, "attention_norm:memory=0", "is 0; it must be above 0"),
    (methods, "globenc:memory=nan", "is 'nan'; it must be a number"),
    (methods, "decompx:layer=-1", "is -1; it must be at least 1"),
    (methods, "decompx_classifier:memory=-2", "is -2; it must be above 0"),
    (metrics, "sufficiency:ratios=0.1+1.5", "is 1.5; it must be from 0 to 1"),
    (metrics, "comprehensiveness:ratios=-0.1", "is -0.1; it must be from 0 to 1"),
    (metrics, "sparsity:ratios=2", "is 2; it must be from 0 to 1"),
    (metrics, "jaccard:share=0", "is 0; it must be above 0 and at most 1"),
    (metrics, "soft_sufficiency:samples=0", "is 0; it must be from 1 to 100,000"),
    (metrics, "soft_comprehensiveness:variance=0", "is 0; it must be above 0"),
    (terms, "explanation_guided:ratio=0", "is 0; it must be above 0 and at most 1"),
    (terms, "explanation_guided:label_consistency=-1", "is -1; it must be at least 0"),
    (terms, "virtual_adversarial:radius=0", "is 0; it must be above 0"),
    (terms, "virtual_adversarial:steps=1e9", "is 1e+09; it must be from 1 to 1,000"),
    (priors, "textrank:window=1", "is 1; it must be at least 2"),
    (priors, "textrank:damping=1", "is 1; it must be at least 0 and below 1"),
    (priors, "lexicon:least=-1", "is -1; it must be at least 0 and below 4"),
    (datasets, "planted:size=1e12", "is 1e+12; it must be from 10 to 1,000,000"),
    (datasets, "planted:length=-1", "is -1; it must be from 1 to 10,000"),
    (datasets, "planted:shortcut=0.3", "is 0.3; it must be 0, for none, or the share of training texts"),
    (datasets, "babi/1:size=0", "is 0; it must be from 10 to 1,000,000"),
    (datasets, "amazon/pantry:size=0", "is 0; it must be at least 1"),
]


@pytest.mark.parametrize(("registry", "spec", "sentence"), CASES, ids=[spec for _, spec, _ in CASES])
def test_a_value_out_of_range_is_refused_with_the_range(registry, spec, sentence):
    with pytest.raises(InputError) as refusal:
        registry.choose(spec)
    assert sentence in str(refusal.value)


def test_no_ratios_at_all_are_refused():
    with pytest.raises(InputError, match="'ratios' of metric 'sparsity' is empty; give at least one number, each from"):
        metrics.choose("sparsity", ratios=())
