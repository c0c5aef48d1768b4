"""The bounds of the playground: what one request may ask for, and how many may wait."""

from __future__ import annotations

CHARACTERS = 20_000  # of a text, and of its context
METHODS = 24  # in one request
WINDOWS = 16  # that a long text is read in
TOKENS = 50_000  # of a text: indices and scores
QUEUE = 64  # requests under way or waiting
SECONDS = 120.0  # for one request, its time in the queue included
TEXTS = 100  # examples in one answer
NAME = 300  # characters of a model's, method's or split's name
BODY = 8 * 2**20  # bytes of a request
MODELS = 2

POINTS = 20  # steps of a deletion or insertion curve
ORDERS = 5  # random orders behind it
TURN = 4096  # tokens that one request may ask the model about before the others have their turn
REMEMBERED = 64  # explanations that are kept, for export and for comparing models
CHEAP = 8.0  # passes up to which a method is cheap
