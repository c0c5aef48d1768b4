"""What explaining a decoder costs, as multiples of one plain forward pass of the same text with eager attention.

A random decoder of SmolLM2's size (135 million parameters), one text of 128 tokens, one process: each method is timed
between two passes of the model, and matrix products are counted (`explanations/passes.py`).
"""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForSequenceClassification

from benchmarks.results import machine, markdown, show, spread, write_json, write_text
from benchmarks.subject import arguments
from benchmarks.timing import Contender, measure
from veridical.attribution import methods
from veridical.core.records import Encoded, Example
from veridical.explanations.attribute import attribute
from veridical.explanations.passes import one_forward, passes_of
from veridical.model.classifier import Classifier
from veridical.model.decompose.rebuild import check

METHODS = ("frozen_gradient", "alti", "attention_norm", "globenc", "attnlrp", "input_x_gradient", "deeplift")
MOST = {"frozen_gradient": 3.0, "alti": 5.0}  # passes, as a goal
TOKENS, WORDS = 128, 49152


def decoder() -> LlamaForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 30, "hidden_size": 576, "intermediate_size": 1536, "vocab_size": WORDS}
    heads = {"num_attention_heads": 9, "num_key_value_heads": 3, "num_labels": 2, "pad_token_id": 0}
    return LlamaForSequenceClassification(LlamaConfig(**sizes, **heads, attn_implementation="eager")).eval()


def main() -> None:
    parser = arguments(__doc__ or "", texts=1, repeats=3)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    clf = Classifier(decoder(), name="a decoder of SmolLM2's size")
    for parameter in clf.model.parameters():
        parameter.requires_grad_(False)
    check(clf.model)
    ids = torch.randint(5, WORDS, (1, TOKENS))
    free = (False, *(True,) * (TOKENS - 1))
    nothing = ((0, 0),) * TOKENS
    encoded = Encoded(Example("0", ""), tuple(ids[0].tolist()), (0,) * TOKENS, nothing, tuple(range(TOKENS)), free)

    def forward() -> None:
        with torch.inference_mode():
            clf.model(ids, use_cache=False)

    works = [Contender(name, lambda name=name: attribute(clf, ids, method=name, target=0)) for name in METHODS]
    unit, timings = measure(Contender("forward pass", forward), works, repeats=options.repeats)
    rows = []
    for name in METHODS:
        counted = passes_of(clf, encoded, methods.choose(name))[1]
        goal = f"{MOST[name]:g}" if name in MOST else ""
        rows.append((name, spread(timings[name].ratios), f"{counted:.2f}", goal))
    head = ("method", "time, in forward passes", "counted", "goal")
    show(f"{TOKENS} tokens, {one_forward(clf, encoded) / 1e9:.1f} GFLOP a pass", head, rows)
    ratios = {name: timing.ratios for name, timing in timings.items()}
    record = {"machine": machine(options.threads), "tokens": TOKENS, "unit_seconds": unit.seconds, "ratios": ratios}
    print(write_json(options.out / "decoders.json", record))
    print(write_text(options.out / "decoders.md", markdown(head, rows) + "\n"))


if __name__ == "__main__":
    main()
