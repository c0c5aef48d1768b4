"""The API: what `/api/...` answers, as FastAPI routes over the house."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from veridical import __version__
from veridical.audits.caveats import with_caveats
from veridical.core.errors import ExhaustedError, InputError
from veridical.playground import browsing, comparing, erasing, explanations, exporting, limits, methods, pages, watching
from veridical.playground import requests as records
from veridical.playground.answering import at_once
from veridical.playground.house import House
from veridical.playground.invalid import sentence_of
from veridical.playground.problem import LateError, ProblemError, WithdrawnError, problem_of
from veridical.playground.stream import NDJSON, Lines

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
    async def tokens(asked: records.Asked) -> records.Tokens:
        """A text's tokens and words."""
        model = house.model(asked.model)
        work = at_once(lambda: erasing.tokens_of(model, asked.text, asked.context))
        return records.Tokens(**await house.ask(model, work))

    @app.post("/api/predict")
    async def predict(asked: records.PredictAsked) -> records.Predicted:
        """What the model says of a text, also with some of it erased."""
        model = house.model(asked.model)
        work = erasing.predicted(
            model, asked.text, asked.context, erased=asked.erased, kept=asked.kept, by=asked.operator
        )
        return records.Predicted(**await house.ask(model, work))

    @app.post("/api/curves", responses=STREAM, response_class=Lines)
    async def curves(asked: records.CurvesAsked) -> Lines:
        """How a class's probability falls and rises as a method's tokens go and come, beside random orders."""
        model, job = house.model(asked.model), house.job()
        target = explanations.checked_target(model, asked.target)
        house.newest(asked.session, model.name, "curves", ["curves"], job)
        how: dict[str, Any] = {"by": asked.operator, "level": asked.level, "target": target}
        work = erasing.curves(model, asked.text, asked.context, asked.scores, job, **how)
        return Lines(house.ask_along(job, model, work))


def _explanations(app: FastAPI, house: House) -> None:
    @app.post("/api/explain", responses=STREAM, response_class=Lines)
    async def explain(asked: records.ExplainAsked) -> Lines:
        """What each method says of a text, a line as each is done, the cheapest first."""
        model = house.model(asked.model)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        which = explanations.checked_question(model, asked.target, asked.contrast)
        job = house.job()
        house.newest(asked.session, model.name, "explain", ["explain", "curves", "agreement"], job)
        counted = house.costs[model.name].passes
        work = explanations.lines(house.explainer, model, asked.text, asked.context, choices, which, job, counted)
        return Lines(house.explain_along(job, work))

    @app.post("/api/agreement", responses=STREAM, response_class=Lines)
    async def agreement(asked: records.AgreementAsked) -> Lines:
        """How alike two models explain a text, method by method."""
        model, other = house.model(asked.model), house.model(asked.other)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        job = house.job()
        if asked.session is not None:
            house.newest(asked.session, model.name, "agreement", ["agreement"], job)
        work = comparing.lines(house.explainer, (model, other), asked.text, asked.context, choices, job)
        return Lines(house.explain_along(job, work))

    @app.post("/api/export", responses=exporting.FILES, response_class=Response)
    async def export(asked: records.ExportAsked) -> Response:
        """The explanations of a text as a file: a page of its own, or rows of the exchange schema."""
        model = house.model(asked.model)
        choices = methods.chosen(asked.methods, house.costs[model.name])
        which = explanations.checked_question(model, asked.target, asked.contrast)
        job = house.job()
        work = explanations.all_of(house.explainer, model, asked.text, asked.context, choices, which, job)
        found = [each async for each in house.explain_along(job, work).lines()]
        body = exporting.written(asked, found, model.path)
        return exporting.attachment(asked.format, body)


def _collections(app: FastAPI, house: House) -> None:
    @app.get("/api/examples")
    async def examples(asked: Annotated[records.ExamplesAsked, Query()]) -> records.Examples:
        """Texts of the data or of the audit, in the order that is asked for."""
        model = house.model(asked.model)
        source = asked.source or ("data" if house.data is not None else "audit")
        if source == "audit":
            rows = browsing.of_audit(house.audit, asked.split, asked.sort)
        else:
            rows = await browsing.of_data(house, model, asked.split, asked.sort, asked.offset, asked.limit)
        return records.Examples(**browsing.part(rows, asked.offset, asked.limit))

    @app.get("/api/watch")
    def watch() -> records.Watched:
        """How far the work in the watched folders is."""
        return records.Watched.model_validate({"folders": watching.folders(house)})
