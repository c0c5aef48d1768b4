"""The API: what `/api/...` answers, as FastAPI routes over the house."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from veridical import __version__
from veridical.attribution import Method
from veridical.audits.caveats import with_caveats
from veridical.core.errors import ExhaustedError, InputError
from veridical.core.registry import Choice
from veridical.playground import browsing, comparing, erasing, explanations, exporting, limits, methods, pages, watching
from veridical.playground import requests as records
from veridical.playground.answering import at_once
from veridical.playground.bounding import Planned, Size, planned, too_much, too_wide
from veridical.playground.house import House
from veridical.playground.invalid import sentence_of
from veridical.playground.job import Job, Who
from veridical.playground.problem import LateError, ProblemError, WithdrawnError, problem_of
from veridical.playground.served import Served
from veridical.playground.stream import NDJSON, Lines
from veridical.playground.text import read

ABOUT = (
    "Explanations of text classifiers, live. Rows are those of Veridical's exchange files. A token is needed, as a "
    "cookie or as `Authorization: Bearer`."
)
USUAL = (400, 401, 403, 404, 405, 409, 413, 422, 429, 500, 503)
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {NDJSON: {"schema": {"type": "string"}}}, "description": "JSON objects, one per line."}
}


def application(house: House) -> FastAPI:
    """The API over what a house holds; no pages of FastAPI's own, which would load scripts from elsewhere."""
    app = FastAPI(
        title="Veridical's playground",
        description=ABOUT,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=records.errors(*USUAL),
    )
    _handlers(app)
    _facts(app, house)
    _questions(app, house)
    _explanations(app, house)
    _files(app, house)
    _collections(app, house)
    pages.add(app, house)
    return app


# -- errors ---------------------------------------------------------------------------------------------------


def _handlers(app: FastAPI) -> None:
    def answer(problem: ProblemError) -> JSONResponse:
        return JSONResponse({"error": problem.plain()}, status_code=problem.status)

    async def known(_: Any, problem: Exception) -> JSONResponse:
        return answer(problem_of(problem))

    async def invalid(_: Any, problem: Exception) -> JSONResponse:
        assert isinstance(problem, RequestValidationError)
        return answer(sentence_of(problem.errors()))

    async def http(_: Any, problem: Exception) -> JSONResponse:
        assert isinstance(problem, HTTPException)
        if isinstance(problem.__cause__, ProblemError):  # met while the body was read
            return answer(problem.__cause__)
        codes = {404: ("missing", "There is nothing at this address."), 405: ("method", "Not asked in this way here.")}
        code, said = codes.get(problem.status_code, ("request", f"The request cannot be read: {problem.detail}."))
        return answer(ProblemError(problem.status_code, code, said))

    for kind in (ProblemError, InputError, ExhaustedError, LateError, WithdrawnError, Exception):
        app.add_exception_handler(kind, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)


# -- facts ----------------------------------------------------------------------------------------------------


def _facts(app: FastAPI, house: House) -> None:
    @app.get("/api/info")
    async def info() -> records.Info:
        """What is served, and its bounds."""
        return records.Info(
            version=__version__,
            models=[_model(house, name) for name in house.models],
            data=_data(house),
            audit=_audit(house),
            watch=list(house.watched),
            limits=records.Limits(
                characters=limits.CHARACTERS,
                methods=limits.METHODS,
                windows=limits.WINDOWS,
                queue=house.queue,
                seconds=house.seconds,
                texts=limits.TEXTS,
            ),
        )

    @app.get("/api/methods")
    async def methods_of(asked: Annotated[records.OfModel, Query()]) -> records.Methods:
        """The methods that work on a model, the cheapest first, with what the audit found about each."""
        model = house.model(asked.model)
        return records.Methods(**methods.listed(model, house.costs[model.name], house.audited(model)))


def _model(house: House, name: str) -> records.ModelFacts:
    model = house.models[name]
    clf = model.answers
    return records.ModelFacts(
        name=name,
        path=model.path,
        family=clf.family,
        labels=list(model.labels),
        multi_label=model.multi_label,
        pairs=model.pairs,
        max_tokens=clf.limit,
        parameters=model.parameters,
        memory_mb=round(model.bytes / 1e6, 1),
        audited=house.audited(model) is not None,
        operators=model.operators,  # type: ignore[arg-type]
    )


def _data(house: House) -> records.DataFacts | None:
    if house.data is None:
        return None
    return records.DataFacts(name=house.data.name, splits={name: len(held) for name, held in house.data.splits.items()})


def _audit(house: House) -> records.AuditFacts | None:
    if house.audit is None:
        return None
    summary, key = house.audit.summary, house.key(house.audit.folder)
    shown: dict[str, int] = {}
    for text in house.audit.examples.texts:
        shown[text.corpus] = shown.get(text.corpus, 0) + 1
    has_record = (house.audit.folder / "record.html").is_file()
    return records.AuditFacts(
        name=summary.title,
        verdict=with_caveats(summary, summary.verdicts[0].corpus) if summary.verdicts else "No verdict.",
        texts=summary.verdicts[0].texts if summary.verdicts else summary.corpora[0].texts,
        model=summary.model.name,
        splits=shown,
        url=f"/watched/{key}/report.html",
        record=f"/watched/{key}/record.html" if has_record else None,
    )


# -- questions ------------------------------------------------------------------------------------------------


def _questions(app: FastAPI, house: House) -> None:
    @app.post("/api/tokens")
    async def tokens(request: Request, asked: records.Asked) -> records.Tokens:
        """A text's tokens and words."""
        model = house.model(asked.model)
        work = at_once(lambda: erasing.tokens_of(model, asked.text, asked.context))
        return records.Tokens(**await house.ask(_who(request), model, work))

    @app.post("/api/predict")
    async def predict(request: Request, asked: records.PredictAsked) -> records.Predicted:
        """What the model says of a text, also with some of it erased."""
        model = house.model(asked.model)
        work = erasing.predicted(
            model, asked.text, asked.context, erased=asked.erased, kept=asked.kept, by=asked.operator
        )
        return records.Predicted(**await house.ask(_who(request), model, work))

    @app.post("/api/curves", responses=STREAM, response_class=Lines)
    async def curves(request: Request, asked: records.CurvesAsked) -> Lines:
        """How a class's probability falls and rises as a method's tokens go and come, beside random orders."""
        model = house.model(asked.model)
        target = explanations.checked_target(model, asked.target)
        erasing.insist_on_operator(model, asked.operator)
        if sum(map(len, asked.scores.values())) > limits.SCORES:
            raise ProblemError(413, "too_long", f"There are more than {limits.SCORES:,} scores; send fewer methods.")
        how: dict[str, Any] = {"by": asked.operator, "level": asked.level, "target": target}
        return Lines(
            house.ask_along(
                _who(request, asked.session),
                model,
                lambda job: erasing.curves(model, asked.text, asked.context, asked.scores, job, **how),
            )
        )


def _who(request: Request, session: str | None = None) -> Who:
    """A request without a session is one of its connection's."""
    peer, port = request.client or ("", 0)
    return Who(peer, f"connection {port}" if session is None else session)


async def _size(house: House, who: Who, model: Served, asked: records.Asked) -> Size:
    """How long a model finds a text; by the thread whose tokenizer it is."""
    return await house.ask(who, model, at_once(lambda: Size.of(read(model.answers, asked.text, asked.context))))


async def _bounded(
    house: House, who: Who, model: Served, asked: records.Asked, choices: Sequence[Choice[Method]]
) -> tuple[list[Planned], list[dict[str, Any]]]:
    """The methods of a request that are not too much for its text, and lines that say why the others are."""
    size = await _size(house, who, model, asked)
    plan = planned(choices, house.costs[model.name], size)
    refused = {each.choice.label: problem for each in plan if (problem := too_much(each, size)) is not None}
    if len(refused) == len(plan) and refused:
        raise next(iter(refused.values()))
    lines = [{"method": label, "error": problem.plain()} for label, problem in refused.items()]
    return [each for each in plan if each.choice.label not in refused], lines


def _explanations(app: FastAPI, house: House) -> None:
    @app.post("/api/explain", responses=STREAM, response_class=Lines)
    async def explain(request: Request, asked: records.ExplainAsked) -> Lines:
        """What each method says of a text, a line as each is done, the least work first."""
        model, who = house.model(asked.model), _who(request, asked.session)
        which = explanations.checked_question(model, asked.target, asked.contrast)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        plan, refused = await _bounded(house, who, model, asked, choices)
        question = explanations.Question(asked.text, asked.context, plan, which)
        counted = house.costs[model.name].passes

        def steps(job: Job) -> Iterator[Any]:
            yield from refused
            yield from explanations.lines(house.explainer, model, question, job, counted)

        return Lines(house.explain_along(who, model, steps, "explain", ["explain", "curves", "agreement"]))

    @app.post("/api/agreement", responses=STREAM, response_class=Lines)
    async def agreement(request: Request, asked: records.AgreementAsked) -> Lines:
        """How alike two models explain a text, method by method."""
        model, other, who = house.model(asked.model), house.model(asked.other), _who(request, asked.session)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        refused: list[dict[str, Any]] = []
        for each in (model, other):
            plan, more = await _bounded(house, who, each, asked, choices)
            choices, refused = [one.choice for one in plan], [*refused, *more]
        question = explanations.Question(asked.text, asked.context, plan)

        def steps(job: Job) -> Iterator[Any]:
            yield from refused
            yield from comparing.lines(house.explainer, (model, other), question, job)

        return Lines(house.explain_along(who, model, steps, "agreement", ["agreement"]))


def _files(app: FastAPI, house: House) -> None:
    @app.post("/api/export", responses=exporting.FILES, response_class=Response)
    async def export(request: Request, asked: records.ExportAsked) -> Response:
        """The explanations of a text as a file: a page of its own, or rows of the exchange schema."""
        model, who = house.model(asked.model), _who(request)
        which = explanations.checked_question(model, asked.target, asked.contrast)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        size = await _size(house, who, model, asked)
        plan = planned(choices, house.costs[model.name], size)
        for problem in (*(too_much(each, size) for each in plan), too_wide(size, len(plan))):
            if problem is not None and (problem.code != "too_wide" or asked.format == "html"):
                raise problem
        question = explanations.Question(asked.text, asked.context, plan, which)
        job = house.explain_along(who, model, lambda job: explanations.all_of(house.explainer, model, question, job))
        found = [each async for each in job.lines()]
        async with house.writing:  # beside the loop: everybody else goes on meanwhile
            body = await run_in_threadpool(exporting.written, asked, found, model.path)
        return exporting.attachment(asked.format, body)


def _collections(app: FastAPI, house: House) -> None:
    @app.get("/api/examples")
    async def examples(request: Request, asked: Annotated[records.ExamplesAsked, Query()]) -> records.Examples:
        """Texts of the data or of the audit, in the order that is asked for."""
        model = house.model(asked.model)
        source = asked.source or ("data" if house.data is not None else "audit")
        if source == "audit":
            rows = browsing.of_audit(house.audit, asked.split, asked.sort)
        else:
            return records.Examples(**await browsing.of_data(house, _who(request), model, asked))
        return records.Examples(**browsing.part(rows, asked.offset, asked.limit))

    @app.get("/api/watch")
    def watch() -> records.Watched:
        """How far the work in the watched folders is."""
        return records.Watched.model_validate({"folders": watching.folders(house)})
