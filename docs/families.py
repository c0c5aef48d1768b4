"""Write the tables of decoders.md anew from tiny random models of every family: `python docs/families.py`.

Every method explains one text with every family; what is refused is listed with the reason that a user is given, what
is warned of with the warning. A test says when the page is out of date.
"""

from __future__ import annotations

import math
import re
import runpy
import sys
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import torch

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from tiny import FURTHER, TRANSFORMERS, tiny  # noqa: E402
from tiny_families import DECODERS, ENCODERS, OTHERS  # noqa: E402
from veridical.attribution import methods  # noqa: E402
from veridical.core import store  # noqa: E402
from veridical.core.errors import Caution, InputError  # noqa: E402
from veridical.core.records import Example  # noqa: E402
from veridical.explanations.explain import attributions  # noqa: E402
from veridical.model.classifier import Classifier  # noqa: E402
from veridical.model.decompose.rebuild import compare, made_up  # noqa: E402
from veridical.model.decompose.wiring import wire  # noqa: E402

PAGE = DOCS / "decoders.md"
TEXT = "The plot was boring, but the acting is really very good."
FAST = {"lime": "lime:samples=40", "kernel_shap": "kernel_shap:samples=40", "smoothgrad": "smoothgrad:samples=4"}
FAST["integrated_gradients"] = "integrated_gradients:rule=adaptive"
OLDER = (*TRANSFORMERS, "bilstm")
READS = {
    "first": "the first token",
    "last": "the last token",
    "mean": "the mean of all",
    "late": "each, logits averaged",
}


def family_rows() -> list[Sequence[str]]:
    """What layers are made of, and how well they are rebuilt from their parts."""
    rows = [("family", "norms", "layers", "the head reads", "rebuilt to")]
    for family in FURTHER:
        model, _ = tiny(family)
        wired = wire(model)
        layer = wired.layers[-1]
        norm = layer.norm1 or layer.norm2 or layer.post1
        assert norm is not None
        where = "before each part" if layer.pre_norm else "behind each sum"
        if layer.post1 is not None:
            where = f"{where} and of what it gives" if layer.norm1 is not None else "of what each part gives"
        groups = getattr(model.config, "num_key_value_heads", None) or layer.heads
        traits = [
            *(["gated"] if layer.gated else []),
            *(["parallel"] if layer.parallel else []),
            *(["grouped heads"] if groups < layer.heads else []),
            *(["shared"] if len({id(each.out.module) for each in wired.layers}) < len(wired.layers) else []),
        ]
        kind = "RMS" if norm.kind == "rms" else "LayerNorm"
        error = compare(model, wired, made_up(model))
        below = f"below 1e{math.ceil(math.log10(error))}"
        rows.append((f"`{family}`", f"{kind}, {where}", ", ".join(traits), READS[wired.head.pool], below))
    return rows


def method_rows() -> list[Sequence[str]]:
    """On how many families each method runs, and where not or with a caution."""
    encoders = {*ENCODERS, *OLDER}
    rows = [("method", f"decoders ({len(DECODERS)})", f"encoders ({len(encoders)})", "refused or warned of")]
    for method in methods:
        if not method.run.__module__.startswith("veridical."):
            continue
        ran, told = set(), defaultdict(list)
        for family in (*DECODERS, *OTHERS, *ENCODERS, *OLDER):
            reason = _outcome(family, FAST.get(method.name, method.name))
            if not reason.startswith("refused"):
                ran.add(family)
            if reason:
                told[reason].append(family)
        notes = [f"{', '.join(families)} {reason}" for reason, families in told.items()]
        counts = (len(ran & set(DECODERS)), len(ran & encoders))
        rows.append((f"`{method.name}`", *(str(count) for count in counts), "; ".join(notes)))
    return rows


def _outcome(family: str, spec: str) -> str:
    """Empty where a method runs, else what a user is told."""
    clf = Classifier(*tiny(family), name="the model")
    encoded = clf.encode([Example("0", TEXT)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            (found,) = attributions(clf, encoded, methods.choose(spec))
        except InputError as problem:
            return f"refused: {_short(str(problem))}"
    if not torch.isfinite(torch.from_numpy(found.scores)).all():
        raise RuntimeError(f"{spec} on {family} gave no finite scores")
    said = [str(w.message) for w in caught if issubclass(w.category, Caution) and "rounding noise" in str(w.message)]
    return "warned of: the scores are rounding noise" if said else ""


def _short(reason: str) -> str:
    """What is wrong, without the list of what would be right."""
    reason = re.sub(r"There is no wiring for models of type \S+ so.*", "no layers of attention to take apart", reason)
    reason = re.sub("the model is a Falcon, which", "", reason).strip()
    return reason.partition(";")[0].rstrip(".")


def pages() -> dict[Path, str]:
    """The page as it should be."""
    table = runpy.run_path(str(DOCS / "tables.py"))["table"]
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in (("families", family_rows()), ("runs", method_rows())):
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, after = text.partition(begin)
        text = f"{before}{begin}{table(rows)}\n{end}{after.partition(end)[2]}"
    return {PAGE: text}


if __name__ == "__main__":
    for page, text in pages().items():
        store.write_text(page, text)
        print(page)
