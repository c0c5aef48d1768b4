"""The evaluation of an audit as one would write it without Veridical: a loop over texts, methods and metrics.

Methods are Captum's, or the model's own attentions; metrics are their formulas. A text's altered inputs go through the
model one by one, or (`together`) those of one metric and one explanation in one padded batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from captum.attr import FeatureAblation
from scipy.stats import kendalltau

from benchmarks.peer_captum import Captum, Scores
from benchmarks.subject import Subject
from veridical.core.records import Attribution, Encoded

RATIOS = (0.01, 0.05, 0.1, 0.2, 0.5)
NOISE = 1e-6  # a smaller change of a probability is none

Ids = tuple[int, ...]


class Loop:
    """Methods and metrics one text after the other."""

    def __init__(self, subject: Subject, *, together: bool):
        self.subject, self.model, self.together = subject, subject.clf.model, together
        captum = Captum(subject)
        self.methods: dict[str, Callable[[], Scores]] = {
            "attention": lambda: self._attentions(lambda layers: layers[-1]),
            "rollout": lambda: self._attentions(_roll),
            "gradient": lambda: captum.gradient(captum.single),
            "input_x_gradient": lambda: captum.input_x_gradient(captum.single),
            "integrated_gradients": lambda: captum.integrated_gradients(captum.single),
            "occlusion:by=mask": self._ablations,
        }
        self.metrics: dict[str, Callable[[Attribution], float | None]] = {
            "sufficiency": self.sufficiency,
            "comprehensiveness": self.comprehensiveness,
            "decision_flip": self.decision_flip,
            "monotonicity": self.monotonicity,
            "corr": self.corr,
            "loo_tau": self.loo_tau,
        }

    # -- the model ------------------------------------------------------------------------------------------

    def probabilities(self, texts: Sequence[Ids]) -> np.ndarray:
        """[n, C]"""
        groups = [list(texts)] if self.together else [[ids] for ids in texts]
        found = []
        for group in groups:
            longest = max(map(len, group))
            ids = torch.tensor([[*own, *[0] * (longest - len(own))] for own in group])
            mask = torch.tensor([[1] * len(own) + [0] * (longest - len(own)) for own in group])
            with torch.inference_mode():
                found.append(self.model(input_ids=ids, attention_mask=mask).logits.softmax(-1).numpy())
        return np.concatenate(found)

    # -- methods --------------------------------------------------------------------------------------------

    def _attentions(self, read: Callable[[list[torch.Tensor]], torch.Tensor]) -> Scores:
        found = []
        with self.subject.clf.eager(), torch.inference_mode():
            for e in self.subject.encoded:
                layers = self.model(input_ids=torch.tensor([e.ids]), output_attentions=True).attentions
                found.append(read([layer.mean(1) for layer in layers])[0, 0].numpy() * np.array(e.free))
        return found

    def _ablations(self) -> Scores:
        """Captum's ablation of the ids, a token at a time, each replaced by the mask token."""
        tokenizer: Any = self.subject.clf.tokenizer
        explainer = FeatureAblation(lambda ids: self.model(input_ids=ids).logits)
        found = []
        for e in self.subject.encoded:
            ids = torch.tensor([e.ids])
            with torch.inference_mode():
                target = int(self.model(input_ids=ids).logits.argmax())
                scores = explainer.attribute(
                    ids,
                    baselines=torch.full_like(ids, tokenizer.mask_token_id),
                    target=target,
                    perturbations_per_eval=len(e.ids) if self.together else 1,
                )
            found.append(scores[0].float().numpy() * np.array(e.free))
        return found

    # -- metrics --------------------------------------------------------------------------------------------

    def sufficiency(self, a: Attribution) -> float | None:
        order = _ranked(a)
        share = self._falls(a, [order[_budget(len(order), ratio) :] for ratio in RATIOS])
        return None if share is None else float(np.clip(1 - share, 0, 1).mean())

    def comprehensiveness(self, a: Attribution) -> float | None:
        order = _ranked(a)
        share = self._falls(a, [order[: _budget(len(order), ratio)] for ratio in RATIOS])
        return None if share is None else float(np.clip(share, 0, 1).mean())

    def decision_flip(self, a: Attribution) -> float | None:
        order = _ranked(a)
        n = len(order)
        step = max(1, int(0.05 * n + 0.5))
        sizes = [*range(step, n, step), n]
        label = int(a.probabilities.argmax())
        texts = [_without(a.encoded, order[:k]) for k in sizes]
        if self.together:
            changed = np.flatnonzero(self.probabilities(texts).argmax(-1) != label)
            return sizes[changed[0]] / n if len(changed) else 1.0
        for k, ids in zip(sizes, texts, strict=True):
            if self.probabilities([ids])[0].argmax() != label:
                return k / n
        return 1.0

    def monotonicity(self, a: Attribution) -> float | None:
        order = _ranked(a)
        texts = [_without(a.encoded, order[:k]) for k in range(len(order), -1, -1)]
        return float((np.diff(self.probabilities(texts)[:, a.target].astype(float)) >= -NOISE).mean())

    def corr(self, a: Attribution) -> float | None:
        scores, p = self._left_out(a)
        if np.ptp(scores) == 0 or np.ptp(p) < NOISE:
            return None
        return float(-np.corrcoef(scores, p)[0, 1])

    def loo_tau(self, a: Attribution) -> float | None:
        scores, p = self._left_out(a)
        found: Any = kendalltau(scores, np.round((float(a.probabilities[a.target]) - p) / NOISE))
        return None if np.isnan(found.statistic) else float(found.statistic)

    def _falls(self, a: Attribution, gone: Sequence[Sequence[int]]) -> np.ndarray | None:
        """How far the class falls, as a share of how far it falls without any token. [ratios]"""
        everything = np.flatnonzero(a.encoded.free)
        p = self.probabilities([_without(a.encoded, out) for out in (everything, *gone)])[:, a.target].astype(float)
        fall = np.maximum(0, float(a.probabilities[a.target]) - p)
        return None if fall[0] < 1e-5 else fall[1:] / fall[0]

    def _left_out(self, a: Attribution) -> tuple[np.ndarray, np.ndarray]:
        """Scores, and the class's probability without each token. [free] each"""
        free = np.flatnonzero(a.encoded.free)
        p = self.probabilities([_without(a.encoded, free[[i]]) for i in range(len(free))])[:, a.target].astype(float)
        return a.scores[free].astype(float), p


def _roll(layers: list[torch.Tensor]) -> torch.Tensor:
    product = torch.eye(layers[0].shape[-1])[None]
    for layer in layers:
        mixed = layer + torch.eye(layer.shape[-1])
        product = mixed / mixed.sum(-1, keepdim=True) @ product
    return product


def _ranked(a: Attribution) -> list[int]:
    return sorted(np.flatnonzero(a.encoded.free).tolist(), key=lambda i: (-a.scores[i], i))


def _budget(n: int, ratio: float) -> int:
    return max(1, int(np.ceil(round(ratio * n, 9))))


def _without(e: Encoded, gone: Sequence[int] | np.ndarray) -> Ids:
    out = set(map(int, gone))
    return tuple(id_ for i, id_ in enumerate(e.ids) if i not in out)
