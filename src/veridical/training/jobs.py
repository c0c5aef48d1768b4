"""Several trainings as one job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelerate import PartialState

from veridical.core.options import takes
from veridical.core.progress import Report
from veridical.training import bound_search
from veridical.training.options import SeedsOptions
from veridical.training.train import Run, for_several, train, train_seeds


@takes(SeedsOptions)
def train_all(options: SeedsOptions) -> list[Run]:
    """Train every seed. A bound that is to be searched (`TERM=search`) is found first, in the folder `bound` beside the
    seeds'; then all seeds are trained under it. With several seeds, or after a search, each has a folder of its own."""
    same: dict[str, Any] = {
        "objective": options.objective,
        "config": options.settings(),
        "limit": options.limit,
        "report_to": options.report_to,
        "progress": options.progress,
    }
    data, bound, out = for_several(options.data), options.bound, options.out
    searched = bound_search.is_searched(bound)
    if searched and bound is not None:
        place = None if out is None else Path(out) / "bound"
        bound = bound_search.search_bound(data, options.model, bound=bound, out=place, **same)
        if PartialState().is_main_process:
            Report("", 1, progress=options.progress).say(f"bound: {bound}")
    if len(options.seeds) == 1 and not searched:
        return [train(data, options.model, seed=options.seeds[0], bound=bound, out=out, **same)]
    return train_seeds(data, options.model, seeds=options.seeds, bound=bound, out=out, **same)
