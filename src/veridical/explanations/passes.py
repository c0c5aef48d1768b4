"""What an explanation, or scoring one, costs: in forward passes of the same text, at its full length.

Counted, not timed, so that every machine says the same. Two counts are made of a method that looks inside the model,
and the larger is its cost:

    through the model    1 for every copy of the text, 2 for every pass back
    multiplied           operations of all matrix products, in the model and beside it, over those of one forward pass

The first misses what is worked out beside the model: DecompX runs the text once and multiplies 0.7 passes for every
token of it. The second misses fused kernels. Both miss what is done element by element: ALTI counts 1.4 at 128 tokens
and takes the time of 2.4. A method or metric that asks questions costs the tokens of its distinct questions over those
of the text, and a method one more, for the text itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from veridical.attribution import Method
from veridical.core.records import Attribution, Encoded, Score
from veridical.core.registry import Choice
from veridical.explanations.explain import attributions, explained
from veridical.metric import Metric
from veridical.model.ask import Asker, ask, predict
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import check
from veridical.model.target import Which

BACKWARD = 2  # passes; with frozen parameters it is nearer to 1, so what differentiates is rather over- than underrated


def passes_of(
    clf: Classifier, encoded: Encoded, choice: Choice[Method], which: Which = "predicted"
) -> tuple[Attribution, float]:
    """One text explained once, and how many full-length passes that took."""
    if choice.entry.asks:
        asked = clf.asked
        (attribution,) = attributions(clf, [encoded], choice, which)
        return attribution, 1 + (clf.asked - asked) / len(encoded.ids)
    if "layers" in choice.entry.needs:
        check(clf.model)  # once for a model: no text bears it
    with _Products() as products:
        (attribution,) = attributions(clf, [encoded], choice, which)
    through = attribution.cost.forward + BACKWARD * attribution.cost.backward
    return attribution, max(through, products.operations / max(1, one_forward(clf, encoded)))


def passes_of_metrics(
    clf: Classifier, explanations: Sequence[Attribution], chosen: Sequence[Choice[Metric]], *, seed: int = 0
) -> float:
    """How many full-length passes it takes to score explanations of one text with metrics, all together: what two of
    them ask counts once. The prediction for the text itself is not counted."""
    encoded = explanations[0].encoded
    full = predict(clf, [encoded])
    askers: list[Asker[Score]] = []
    for explanation in explanations:
        plain = explained(clf, encoded, explanation.target, full.logits[0], full.probabilities[0])
        seen = replace(plain, scores=explanation.scores, seed=seed)
        askers += [metric.entry.run(seen, **metric.options) for metric in chosen if metric.entry.asks]
    asked = clf.asked
    ask(clf, askers)
    return (clf.asked - asked) / len(encoded.ids)


def one_forward(clf: Classifier, encoded: Encoded) -> int:
    """Operations of the matrix products in one forward pass over a text."""
    batch = clf.collate([encoded])
    # The plain way, since fused kernels of attention show no products.
    with clf.at_rest(), clf.eager(), torch.no_grad(), _Products() as products:
        clf.forward(batch)
    return products.operations


def _fused_lstm(inputs: torch.Tensor, weights: Sequence[torch.Tensor]) -> int:
    """Operations of an LSTM in one kernel, of one layer and direction or of several. Such kernels cannot be switched
    off for a thread alone, and the last digits of all others would change."""
    return 2 * inputs.shape[0] * inputs.shape[1] * sum(weight.numel() for weight in weights if weight.dim() == 2)


FUSED: dict[Any, Callable[..., int]] = {
    torch.ops.aten.mkldnn_rnn_layer: lambda inputs, *weights: _fused_lstm(inputs, weights[:2]),
    torch.ops.aten._cudnn_rnn: lambda inputs, weights, *_: _fused_lstm(inputs, weights),
}


class _Products(TorchDispatchMode):
    """Counts additions and multiplications of matrix products, forward and back.

    torch's own FlopCounterMode hooks into every module as well, which breaks methods that alter the way back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func._overloadpacket in FUSED:
            self.operations += FUSED[func._overloadpacket](*args)
        elif func._overloadpacket in flop_registry:
            self.operations += flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=result)
        return result
