"""Everything that the server holds: models, data, the audit, watched folders, and the threads at work."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veridical.audits.record import AuditSummary, ShownTexts, read_examples, read_summary
from veridical.core.records import Dataset
from veridical.playground import limits, methods
from veridical.playground.answering import Answering, Asking
from veridical.playground.explaining import Explaining
from veridical.playground.explanations import Explainer
from veridical.playground.job import Job, Who
from veridical.playground.problem import ProblemError
from veridical.playground.served import Served

WRITERS = 2  # files that are written at once


@dataclass(frozen=True)
class Audited:
    """An audit folder, read once."""

    folder: Path
    summary: AuditSummary
    examples: ShownTexts

    @classmethod
    def read(cls, folder: Path) -> Audited:
        return cls(folder, read_summary(folder), read_examples(folder))

    def of(self, model: Served) -> AuditSummary | None:
        """What it found, if it is about these very weights."""
        known = self.summary.model.hash
        return self.summary if known is not None and known == model.weights else None


@dataclass
class House:
    """What is served, and the work under way."""

    models: Mapping[str, Served]
    token: str
    data: Dataset | None = None
    audit: Audited | None = None
    watched: Mapping[str, Path] = field(default_factory=dict)  # by name
    budget: int | None = None
    queue: int = limits.QUEUE
    seconds: float = limits.SECONDS

    def __post_init__(self) -> None:
        self.costs = {name: methods.Costs() for name in self.models}
        self.explainer = Explainer(self.budget)
        self.answering, self.explaining = Answering(self.budget), Explaining()
        self.quick = Explaining(then=self.explaining)
        self.writing = asyncio.Semaphore(WRITERS)  # of files, in threads beside the loop
        self.predictions: dict[tuple[str, str], Any] = {}  # of whole splits, by model and split
        self._jobs: set[Job] = set()
        self._quick: set[Job] = set()  # predictions and the like: they do not wait behind the others
        self._sessions: dict[tuple[str, str, str], Job] = {}  # by session, model and kind

    def open(self) -> None:
        """Start the threads, and have what methods cost counted when nobody waits, the cheap ones first."""
        self.answering.start()
        self.explaining.start()
        self.quick.start()
        for name, model in self.models.items():
            specs = methods.specs_of(self.audited(model))
            for spec in sorted(specs, key=lambda spec: self.costs[name].order(methods.known.choose(spec))):
                self.explaining.spare(
                    lambda model=model, spec=spec, costs=self.costs[name]: methods.count(model, spec, costs)
                )

    def close(self) -> None:
        self.answering.stop()
        self.explaining.stop()
        self.quick.stop()

    # -- what there is ----------------------------------------------------------------------------------------

    def model(self, name: str | None) -> Served:
        """The model of a request, which may leave it out where there is but one."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is None and self.models:
            raise ProblemError(422, "missing", f"model is missing; name one of: {', '.join(self.models)}.")
        if name is None or name not in self.models:
            there = ", ".join(self.models) or "none, it only watches work"
            raise ProblemError(404, "model", f"There is no model {(name or '')[:80]!r} here; there is: {there}.")
        return self.models[name]

    def audited(self, model: Served) -> AuditSummary | None:
        return None if self.audit is None else self.audit.of(model)

    def key(self, folder: Path) -> str:
        """In the address of a folder's pages: known to whoever was shown it, and to nobody else."""
        return hmac.new(self.token.encode(), str(folder).encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]

    def folders(self) -> dict[str, Path]:
        """Folders whose pages may be read, by their key."""
        held = [*self.watched.values(), *([self.audit.folder] if self.audit else [])]
        return {self.key(folder): folder for folder in held}

    # -- work -------------------------------------------------------------------------------------------------

    async def ask(self, who: Who, model: Served, asker: Asking) -> Any:
        """The result of some quick questions."""
        job = self._job(who, self._quick, min(limits.QUICK, self.queue))
        self.answering.submit(job, model.answers, asker)
        return await job.result()

    def ask_along(self, who: Who, model: Served, asker: Callable[[Job], Asking]) -> Job:
        """Curves, for a reader who takes each line as it comes. A newer request of the session takes their place."""
        job = self._job(who, self._jobs, self.queue)
        self._newest(model.name, "curves", ("curves",), job)
        self.answering.submit(job, model.answers, asker(job))
        return job

    def explain_along(
        self,
        who: Who,
        model: Served,
        steps: Callable[[Job], Iterator[Any]],
        kind: str = "export",
        replaces: Sequence[str] = (),
    ) -> Job:
        """Explanations, for such a reader; what earlier requests of the session still do of some kinds is withdrawn."""
        job = self._job(who, self._jobs, self.queue)
        self._newest(model.name, kind, replaces, job)
        self.quick.submit(job, steps(job))
        return job

    def _job(self, who: Who, lane: set[Job], most: int) -> Job:
        """A place in a queue, if there is one. Whoever takes it submits it at once: nothing may fail between."""
        lane.difference_update([job for job in lane if not job.counts])
        share = most - most // 4
        if len(lane) >= most:
            raise _busy(f"{most} requests are under way or waiting, which is all")
        if sum(job.who.peer == who.peer for job in lane) >= share:
            raise _busy(f"{share} requests from your address are under way or waiting, which is its share")
        if sum(job.who == who for job in lane) >= limits.SESSION:
            raise _busy(f"{limits.SESSION} requests of this session are under way or waiting, which is its share")
        job = Job(self.seconds, who)
        lane.add(job)
        return job

    def _newest(self, model: str, kind: str, replaces: Sequence[str], job: Job) -> None:
        """Withdraw what earlier requests of a session still do for a model, and remember this one."""
        session = job.who.session
        for other in replaces:
            earlier = self._sessions.pop((session, model, other), None)
            if earlier is not None:
                earlier.withdraw()
        self._sessions = {key: held for key, held in self._sessions.items() if not held.over}
        self._sessions[session, model, kind] = job


def _busy(what: str) -> ProblemError:
    return ProblemError(429, "busy", f"{what}; try again in a moment.")
