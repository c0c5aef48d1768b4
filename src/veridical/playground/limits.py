"""The bounds of the playground: what one request may ask for, and how many may wait."""

from __future__ import annotations

CHARACTERS = 20_000  # of a text, and of its context
METHODS = 24  # in one request
WINDOWS = 16  # that a long text is read in
TOKENS = 50_000  # of a text: indices and scores
SCORES = 100_000  # in one request, of all methods together
TEXTS = 100  # examples in one answer
NAME = 300  # characters of a model's, method's or split's name
BODY = 3 * 2**20  # bytes of a request: so many scores, and what stands beside them
MODELS = 2

QUEUE = 64  # requests under way or waiting
QUICK = 32  # predictions and readings of texts beside them, in a queue of their own
SESSION = 8  # requests of one session among them
SECONDS = 120.0  # for one request, its time in the queue included
STEP = 30.0  # for one method on one text, where others wait
CONNECTIONS = 512  # open at once
HEAD = 10.0  # seconds in which a connection has to send a request's head, and then its body

WORK = 1_000_000  # tokens that one method may run through the model for one text: passes times its length
QUICK_WORK = 4096  # of a method that is explained beside the dear ones
ASKED = 1024  # tokens, of a text or a window, for methods that ask about parts of it
OPTIONS = {"samples": 10_000, "steps": 1000, "memory": 2.0}  # the most that a method's option may be here
EXPORTED = 20_000  # words times methods on an exported page

POINTS = 20  # steps of a deletion or insertion curve
FEWEST_POINTS = 5  # of a text in many windows
ORDERS = 5  # random orders behind it
TURN = 4096  # tokens that one request may ask the model about before the others have their turn
REMEMBERED = 64  # explanations that are kept, for export and for comparing models
CHEAP = 8.0  # passes up to which a method is cheap
