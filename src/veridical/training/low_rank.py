"""What cannot be trained by low-rank adapters, told before anything is loaded."""

from __future__ import annotations

from veridical.attribution import methods
from veridical.core.errors import InputError
from veridical.core.spec import INSIDE, Spec, base_name
from veridical.model.lora import insist_on_peft
from veridical.training.config import TrainConfig
from veridical.training.term import Objective


def insist_on_low_rank(config: TrainConfig, chosen: Objective, model: str) -> None:
    if config.lora is None:
        return
    insist_on_peft()
    if base_name(model) == "bilstm":
        raise InputError(f"lora is {config.lora}, but 'bilstm' has no attention maps to adapt; leave lora out.")
    for term in chosen:
        guide = term.choice.options.get("method")
        name = Spec.read(guide, INSIDE).name if isinstance(guide, str) else ""
        if name in methods and "layers" in methods[name].needs:
            raise InputError(
                f"{name} reads the weights of every layer, and lora holds what is learnt beside them; guide with "
                "another method, such as attention, or leave lora out."
            )
