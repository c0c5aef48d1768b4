"""What the API takes and gives, as typed records with their bounds: its OpenAPI description is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from veridical.playground.limits import CHARACTERS, METHODS, NAME, TEXTS, TOKENS

Name = Annotated[str, Field(min_length=1, max_length=NAME)]
Words = Annotated[str, Field(min_length=1, max_length=CHARACTERS)]
Index = Annotated[int, Field(ge=0, lt=TOKENS)]
Indices = Annotated[list[Index], Field(max_length=TOKENS)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e37, le=1e37)]
Scores = Annotated[list[Number], Field(min_length=1, max_length=TOKENS)]
Specs = Annotated[list[Name], Field(min_length=1, max_length=METHODS)]
Operator = Literal["delete", "mask", "attention"]
Level = Literal["token", "word"]
Sort = Literal["first", "wrong", "confident", "disagreeing"]
Source = Literal["data", "audit"]


class Asked(BaseModel):
    """A text for a model, which may be left out where one is served. `context` is read beside it, and never explained
    or erased."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    model: Name | None = None
    text: Words
    context: Words | None = None


class PredictAsked(Asked):
    """`erased` tokens go, or all but the `kept` ones."""

    erased: Indices | None = None
    kept: Indices | None = None
    operator: Operator = "delete"


class ExplainAsked(Asked):
    """A session is a name of your choice: a newer request of the same session for the same model takes the place of
    this one. Left out, it is the connection."""

    methods: Specs
    target: Name = "predicted"
    contrast: Name | None = None
    level: Level = "word"
    session: Name | None = None


class CurvesAsked(Asked):
    """Scores of every token, special ones included, by method."""

    scores: Annotated[dict[Name, Scores], Field(min_length=1, max_length=METHODS)]
    operator: Operator = "delete"
    level: Level = "token"
    target: Name = "predicted"
    session: Name | None = None


class AgreementAsked(Asked):
    other: Name
    methods: Specs
    session: Name | None = None


class ExportAsked(Asked):
    methods: Specs
    target: Name = "predicted"
    contrast: Name | None = None
    level: Level = "word"
    format: Literal["html", "json", "parquet"]


class OfModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Name | None = None


class ExamplesAsked(OfModel):
    """Without `split` the test split, or the first that there is."""

    split: Name | None = None
    source: Source | None = None
    sort: Sort = "first"
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0
    limit: Annotated[int, Field(ge=1, le=TEXTS)] = 20


# -- answers --------------------------------------------------------------------------------------------------


class Problem(BaseModel):
    code: str
    message: str


class Problems(BaseModel):
    """Every answer that is none."""

    error: Problem


class ModelFacts(BaseModel):
    name: str
    path: str
    family: str
    labels: list[str]
    multi_label: bool
    pairs: bool
    max_tokens: int
    parameters: int
    memory_mb: float
    audited: bool
    operators: list[Operator]


class DataFacts(BaseModel):
    name: str
    splits: dict[str, int]


class AuditFacts(BaseModel):
    name: str
    verdict: str
    texts: int
    model: str
    splits: dict[str, int]
    url: str
    record: str | None


class Limits(BaseModel):
    characters: int
    methods: int
    windows: int
    queue: int
    seconds: float
    texts: int


class Info(BaseModel):
    version: str
    models: list[ModelFacts]
    data: DataFacts | None
    audit: AuditFacts | None
    watch: list[str]
    limits: Limits


class Found(BaseModel):
    standing: Literal["believe", "as good", "open", "worse", "no better than chance", "not asked", "no verdict"]
    sentence: str


class MethodFacts(BaseModel):
    name: str
    summary: str
    signed: bool
    about_class: bool
    passes: float | None
    cheap: bool
    audit: Found | None


class Methods(BaseModel):
    counting: bool
    methods: list[MethodFacts]
    default: list[str]


class Token(BaseModel):
    index: int
    text: str
    start: int
    end: int
    free: bool
    word: int | None


class Word(BaseModel):
    index: int
    text: str
    start: int
    end: int
    tokens: list[int]


class Tokens(BaseModel):
    tokens: list[Token]
    words: list[Word]
    truncated: bool
    windows: int


class Likelihood(BaseModel):
    label: str
    probability: float


class Predicted(BaseModel):
    label: str | list[str]
    probabilities: list[Likelihood]
    multi_label: bool
    erased: int
    passes: int


class Browsed(BaseModel):
    id: str
    text: str
    context: str | None
    label: str | list[str] | None
    predicted: str | list[str]
    probability: float
    disagreement: float | None
    right: bool | None


class Examples(BaseModel):
    """Where `read` texts are fewer than `of`, predictions are still worked out, and the order is that so far."""

    total: int
    read: int
    of: int
    examples: list[Browsed]


class WatchedPage(BaseModel):
    title: str
    url: str


class WatchedFolder(BaseModel):
    name: str
    kind: str
    state: Literal["running", "done", "stopped", "broken"]
    done: int
    of: int | None
    seconds_left: float | None
    figures: dict[str, float | str | None]
    pages: list[WatchedPage]


class Watched(BaseModel):
    folders: list[WatchedFolder]


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route may answer instead, for the description."""
    return {status: {"model": Problems} for status in statuses}
