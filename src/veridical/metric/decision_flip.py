from __future__ import annotations

from veridical.core.records import Explained, Score
from veridical.metric import metric
from veridical.model.ask import Asker
from veridical.model.erase import Level, Operator, erase, ranked_units


@metric("decision_flip", kind="faithfulness", better="lower", bounds=(0, 1), needs=("questions",), order=True)
def decision_flip(
    ex: Explained, *, by: Operator = "delete", level: Level = "token", exact: bool = False
) -> Asker[Score]:
    """The share of tokens, highest score first, that must go before the predicted class changes (Serrano and Smith
    2019, SaLoss section 4): tried at every 5% of the tokens, or token by token with `exact`.

    A decision that never changes counts as 1. The curve has one entry, 1 if it never changed and else 0, so that its
    mean over texts is the share never flipped; a value of 1 alone may also be a change with the very last token.
    """
    groups = ranked_units(ex, level)
    n = len(groups)
    step = 1 if exact else max(1, (n + 10) // 20)  # floor(0.05 n + 0.5)
    sizes = [*range(step, n, step), n] if n else []
    label, start, count = int(ex.logits.argmax()), 0, 4
    while start < len(sizes):
        # A flip found early saves the rest, so few are asked at first.
        asked = sizes[start : start + count]
        answers = yield [erase(ex, [p for group in groups[:k] for p in group], by) for k in asked]
        for k, predicted in zip(asked, answers.logits.argmax(-1), strict=True):
            if predicted != label:
                return Score(k / n, (0.0,))
        start, count = start + count, 2 * count
    return Score(1.0, (1.0,)) if n else Score(None, (None,))
