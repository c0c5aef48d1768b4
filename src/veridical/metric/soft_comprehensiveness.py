from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.metric.soft_faithfulness import Preset, Scale, Setting, Where, soft_score
from veridical.model.ask import Asker
from veridical.model.erase import Mode


@metric("soft_comprehensiveness", kind="faithfulness", better="higher", bounds=(0, 1), needs=("questions",))
def soft_comprehensiveness(
    ex: Explained,
    *,
    scale: Scale = "minmax",
    mode: Mode = "bernoulli",
    where: Where = "word",
    samples: int = 10,
    variance: float = 0.5,
    seed: int = 0,
    preset: Preset = "",
) -> Asker[Score]:
    """How much of the prediction goes when every token loses a share of its vector that grows with its score
    (Soft-NC, Zhao and Aletras 2023 eq. 3 and 5), as a share of what goes with all tokens.

    `preset` released follows the authors' code, in which the direction is turned round (see docs/soft-faithfulness.md).
    """
    how = Setting(scale, mode, where, samples, variance, seed, preset)
    return (yield from soft_score(ex, "comprehensiveness", how))
