"""Batches put together from encodings laid end to end are those of `collate`, to the last bit."""

from __future__ import annotations

import pytest
import torch

from tiny import tiny
from veridical.core.errors import InputError
from veridical.core.records import Example
from veridical.model.classifier import Classifier
from veridical.model.flat import flat_of


@pytest.mark.parametrize("context", [None, "which one ?"])
def test_a_batch_is_that_of_collate(context):
    clf = Classifier(*tiny("bert"))
    texts = ["good", "the plot was not boring at all", "a film", "so very good"]
    encoded = clf.encode([Example(str(i), text, 0, context) for i, text in enumerate(texts)])
    flat = flat_of(clf, encoded)
    for rows in ([1, 0], [3], [2, 2, 0, 3, 1]):
        ours, theirs = flat.batch(clf, rows), clf.collate([encoded[i] for i in rows])
        assert ours.encoded == theirs.encoded
        for name in ("ids", "types", "mask", "free"):
            a, b = getattr(ours, name), getattr(theirs, name)
            assert a.dtype == b.dtype
            assert torch.equal(a, b)


def test_a_token_without_a_word_vector_is_refused():
    clf = Classifier(*tiny("bert"))
    encoded = clf.encode([Example("x", "good", 0)])
    clf.model.resize_token_embeddings(2)
    with pytest.raises(InputError, match="has word vectors for 0 to 1"):
        flat_of(clf, encoded)
