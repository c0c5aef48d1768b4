"""BigBird with the head of explanation regularisation (Ferreira et al., appendix H; their `modeling_big_bird.py`).

A linear layer over the last state of [CLS], tanh, a linear layer to the classes, and no dropout; transformers' own head
has the encoder's activation and its dropout there. It is a model type of its own, registered with the Auto classes, so
that what was trained with it is never loaded with the other head in its place.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.big_bird import BigBirdConfig, BigBirdForSequenceClassification


class TanhHeadConfig(BigBirdConfig):
    model_type = "big_bird_tanh"


class TanhHead(nn.Module):
    def __init__(self, config: TanhHeadConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.out_proj = nn.Linear(config.hidden_size, len(config.id2label or {}))

    def forward(self, states: Tensor, **_: Any) -> Tensor:
        return self.out_proj(torch.tanh(self.dense(states[:, 0])))  # [B, T, D] -> [B, C]


class TanhHeadBigBird(BigBirdForSequenceClassification):
    config_class = TanhHeadConfig

    def __init__(self, config: TanhHeadConfig):
        super().__init__(config)
        self.classifier = TanhHead(config)
        self.post_init()


def with_tanh_head(config: BigBirdConfig) -> TanhHeadConfig:
    """The same BigBird with that head."""
    settings = {key: value for key, value in config.to_dict().items() if key != "model_type"}
    return TanhHeadConfig.from_dict(settings)


AutoConfig.register(TanhHeadConfig.model_type, TanhHeadConfig)
AutoModelForSequenceClassification.register(TanhHeadConfig, TanhHeadBigBird)
AutoTokenizer.register(TanhHeadConfig, fast_tokenizer_class=PreTrainedTokenizerFast)
