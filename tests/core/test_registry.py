from __future__ import annotations

import subprocess
import sys
from typing import Literal

import pytest

from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.registry import declared, declared_options, options_of, resolve
from veridical.core.spec import INSIDE, Spec
from veridical.core.values import read
from veridical.metric import metrics


def sample(
    x,
    *,
    steps: int = 50,
    rate: float = 1e-3,
    rule: Literal["left", "right"] = "left",
    deep: bool = False,
    ratios: tuple[float, ...] = (0.1, 0.5),
    seed: int | None = None,
):
    """A function with every kind of option."""


def test_options_are_read_by_their_annotation():
    found = resolve(sample, {"steps": "1e2", "rate": "0.5", "rule": "right", "deep": "yes", "ratios": "0.1+0.2"}, "it")
    assert found == {"steps": 100, "rate": 0.5, "rule": "right", "deep": True, "ratios": (0.1, 0.2), "seed": None}
    assert resolve(sample, {"seed": "none"}, "it")["seed"] is None
    assert resolve(sample, {"seed": "7"}, "it")["seed"] == 7


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stepz": 3}, "Did you mean 'steps'"),
        ({"steps": "2.5"}, "whole number"),
        ({"steps": "inf"}, "whole number"),
        ({"steps": "many"}, "must be a number"),
        ({"rate": "nan"}, "must be a number"),
        ({"rule": "middle"}, "allowed: left, right"),
        ({"deep": "perhaps"}, "allowed: true, false"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(given, message):
    with pytest.raises(InputError, match=message):
        resolve(sample, given, "it")


def test_a_spec_gives_back_itself():
    for spec in (
        "attention",
        "integrated_gradients:steps=20:rule=right",
        "occlusion:by=mask",
        "gradient:over=vocabulary",
    ):
        assert methods.choose(spec).label == spec
    assert methods.choose("integrated_gradients:steps=50").label == "integrated_gradients"
    assert [c.label for c in methods.choose_all("attention, random:seed=3,")] == ["attention", "random:seed=3"]


def test_a_spec_that_is_read_already_is_chosen_too():
    inside = Spec.read("integrated_gradients/steps=20", INSIDE)
    assert methods.choose(inside).spec == inside
    assert methods.choose(inside, rule="right").label == "integrated_gradients:steps=20:rule=right"


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'integrated_gradients'"):
        methods.choose("integrated_gradient")
    with pytest.raises(InputError, match="takes no options"):
        methods.choose("attention:heads=3")
    with pytest.raises(InputError, match="'seed' in 'random:seed' is not option=value"):
        methods.choose("random:seed")
    with pytest.raises(InputError, match="'seed' of attribution method 'random' is '3:4'; it must be a number"):
        methods.choose("random:seed=3:4")


def test_an_annotation_that_no_option_can_have_is_a_programming_error():
    with pytest.raises(TypeError):
        read("x", dict, "it")


def test_a_name_is_found_without_running_the_files_of_others_and_so_is_that_there_is_none():
    code = (
        "import sys; from veridical.attribution import methods; from veridical.metric import metrics; "
        "assert 'gradiend' not in methods; assert 'torch' not in sys.modules; "
        "assert methods['gradient'].name == 'gradient'; assert metrics['iou'].name == 'iou'; "  # in plausibility.py
        "assert not {'veridical.attribution.alti', 'veridical.metric.corr'} & {*sys.modules}; "
        "assert 'alti' in {method.name for method in methods}"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def test_a_wrong_option_is_refused_without_importing_what_takes_seconds():
    code = (
        "import sys\n"
        "from veridical.attribution import methods\n"
        "from veridical.core.errors import InputError\n"
        "for spec in ('lime:sample=3', 'occlusion:bye=mask'):\n"
        "    try:\n"
        "        methods.choose(spec)\n"
        "    except InputError as problem:\n"
        "        print(problem)\n"
        "print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0].startswith("The attribution method 'lime' has no option 'sample'. Did you mean 'samples'?")
    assert said[1].startswith("The attribution method 'occlusion' has no option 'bye'. Did you mean 'by'?")
    assert said[2] == "False"


def test_options_in_the_source_are_those_of_what_it_registers():
    for registry in (methods, metrics):
        modules, _ = declared(registry.package, registry.decorator)
        for name, module in modules.items():
            shown = declared_options(module, registry.decorator, name)
            assert shown is None or shown == list(options_of(registry[name].run)), name
    assert declared_options("veridical.attribution.lime", "method", "lime")
