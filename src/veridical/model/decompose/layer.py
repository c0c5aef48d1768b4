"""One layer on decomposed vectors [t, S, D], in place: attention source by source, the rest target by target.

A trace here is that of one text without its padding and without a batch: x [N, D], attention [H, N, N], and so on.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from veridical.model.decompose.share import How, give, line, settle, share, shares, weigh
from veridical.model.decompose.trace import LayerTrace
from veridical.model.decompose.wiring import Norm


def attend_first(trace: LayerTrace, how: How, targets: slice, rows: int) -> Tensor:
    """A new buffer with residual + attention of the first layer, for these targets."""
    layer, x, count = trace.layer, trace.x, len(trace.x)
    own, borne, norm_bias = _enter_first(trace, how)
    attention = trace.attention[:, targets]  # [H, t, N]
    outward = layer.out.weight.unflatten(1, (layer.heads, -1)).permute(1, 2, 0)  # [H, d, D]
    values = own @ layer.value.weight.T
    if how.rules == "released" and layer.value.bias is not None:
        values += layer.value.bias
    values = values.unflatten(-1, (layer.heads, -1)).transpose(0, 1) @ outward  # [H, N, D]
    vectors = x.new_empty(attention.shape[1], count + how.columns, x.shape[-1])
    vectors[:, count:] = 0
    for k in range(count):
        torch.mm(attention[:, :, k].T, values[:, k], out=vectors[:, k])
    if borne is not None:
        brought = ((layer.value.weight @ norm_bias).unflatten(0, (layer.heads, 1, -1)) @ outward)[:, 0]  # [H, D]
        for a, b in chunks(len(vectors), rows // vectors.shape[1]):
            mixed = attention[:, a:b] @ borne  # [H, t, S]
            vectors[a:b] += mixed.permute(1, 2, 0) @ brought
    if layer.post1 is not None:
        scaled(layer.post1, vectors, trace.brought[targets])
    residual = vectors[:, targets].diagonal(dim1=0, dim2=1)  # [D, t], a view
    bias = _attention_bias(trace, how, targets, first=True)
    if how.rules == "released":
        residual += x[targets].T
    for a, b in chunks(len(vectors), rows // vectors.shape[1]):
        share(how.at(slice(targets.start + a, targets.start + b)), vectors[a:b], _rows(bias, slice(a, b)))
    if how.rules == "paper":
        residual += x[targets].T
    return vectors


def _enter_first(trace: LayerTrace, how: How) -> tuple[Tensor, Tensor | None, Tensor]:
    """What enters the first attention: each token's own part [N, D], and for rules by which others bear the bias of a
    norm before it who bears it at each position [N, S]."""
    norm = trace.layer.norm1
    if not trace.layer.pre_norm or norm is None:
        return trace.x, None, trace.x[0]
    own = norm.weight * norm.centred(trace.x) / norm.deviation(trace.x)
    if norm.bias is None or how.bias == "none":
        return own, None, trace.x[0]
    if how.by_vectors:  # the only vector there is, is the token's own
        return own + norm.bias, None, norm.bias
    return own, settle(how, own.new_ones(len(own), len(own) + how.columns)), norm.bias


def attend(trace: LayerTrace, how: How, vectors: Tensor, rows: int) -> None:
    """Residual + attention of every target, in place; mixing positions leaves each source to itself."""
    layer, everyone = trace.layer, slice(0, len(vectors))
    bias = _attention_bias(trace, how, everyone)
    of_norm = _borne_of_norm(trace, how, vectors, rows)
    seen = vectors.new_zeros(vectors.shape[:-1])
    for a, b in chunks(vectors.shape[1], rows // len(vectors)):
        part = vectors[:, a:b]  # [N, c, D]
        entering = part
        if layer.pre_norm and layer.norm1 is not None:
            entering = scaled(layer.norm1, part.clone(), trace.x)
            if layer.norm1.bias is not None:
                give(entering, of_norm[:, a:b], layer.norm1.bias)
        values = entering.reshape(-1, part.shape[-1]) @ layer.value.weight.T
        values = values.view(*part.shape[:2], layer.heads, -1).permute(2, 0, 1, 3).flatten(2)  # [H, N, c d]
        mixed = torch.bmm(trace.attention, values).unflatten(-1, (b - a, -1)).permute(1, 2, 0, 3)  # [N, c, H, d]
        brought = (mixed.reshape(-1, layer.out.weight.shape[1]) @ layer.out.weight.T).view(part.shape)
        if layer.post1 is not None:
            scaled(layer.post1, brought, trace.brought)
        if bias is not None and how.rules == "paper":
            seen[:, a:b] = weigh(how, brought, bias)
        part += brought
        if bias is not None and how.rules == "released":
            seen[:, a:b] = weigh(how, part, bias)
    if bias is not None:
        borne = settle(how, seen)
        for a, b in chunks(len(vectors), rows // vectors.shape[1]):
            some = _rows(bias, slice(a, b))
            assert some is not None
            give(vectors[a:b], borne[a:b], some)


def attend_one(trace: LayerTrace, how: How, vectors: Tensor, target: slice, rows: int) -> Tensor:
    """Residual + attention of one target alone: positions are mixed before W_V and W_O. [1, S, D]"""
    layer, attention = trace.layer, trace.attention[:, target.start]  # [H, N]
    flat = vectors.flatten(1)
    if layer.pre_norm and layer.norm1 is not None:
        mixed = ((attention / layer.norm1.deviation(trace.x).T) @ flat).view(-1, *vectors.shape[1:])  # [H, S, D]
        mixed = layer.norm1.centred(mixed)
        mixed *= layer.norm1.weight
        if layer.norm1.bias is not None:
            give(mixed, attention @ _borne_of_norm(trace, how, vectors, rows), layer.norm1.bias)
    else:
        mixed = (attention @ flat).view(-1, *vectors.shape[1:])
    values = mixed @ layer.value.weight.unflatten(0, (layer.heads, -1)).transpose(1, 2)  # [H, S, d]
    brought = (values.transpose(0, 1).flatten(1) @ layer.out.weight.T)[None]
    if layer.post1 is not None:
        scaled(layer.post1, brought, trace.brought[target])
    if how.rules == "released":
        brought += vectors[target]
    share(how.at(target), brought, _attention_bias(trace, how, target))
    if how.rules == "paper":
        brought += vectors[target]
    return brought


def norms_and_feed_forward(
    trace: LayerTrace, how: How, vectors: Tensor, targets: slice, beside: Tensor | None = None
) -> None:
    """Norms and feed-forward part of some targets, in place. `beside` is what a feed-forward part reads that is
    parallel to attention: the layer's input at these targets, not used afterwards."""
    layer = trace.layer
    if layer.pre_norm:
        if how.ffn:
            entering, before = (vectors.clone(), trace.pre1) if beside is None else (beside, trace.x)
            entering = normalise(layer.norm2, how, entering, before[targets])
            vectors += _feed_forward(trace, how, entering, targets)
        return
    normalise(layer.norm1, how, vectors, trace.pre1[targets])
    if how.ffn:
        vectors += _feed_forward(trace, how, vectors, targets)
    normalise(layer.norm2, how, vectors, trace.pre2[targets])


def _feed_forward(trace: LayerTrace, how: How, vectors: Tensor, targets: slice) -> Tensor:
    """What the feed-forward part makes of each source's vector, its biases included. [t, S, D]"""
    layer, u = trace.layer, trace.u[targets]
    inner, inner_bias, intercept = layer.inner.weight, layer.inner.bias, None
    if layer.gated:  # activation(first) * second: what is activated is held, as attention is, and weighs the second
        slopes = layer.activation(u.chunk(2, dim=-1)[0])  # [t, F]
        inner = inner.chunk(2)[1]
        inner_bias = None if inner_bias is None else inner_bias.chunk(2)[1]
    else:
        slopes, intercept = line(how, layer.activation, u, trace.a[targets])
    flat = vectors.flatten(0, 1)
    if how.by_size or intercept is not None:  # word for word
        hidden = (flat @ inner.T).view(*vectors.shape[:-1], -1)
        share(how, hidden, inner_bias)
        hidden *= slopes[:, None]
        share(how, hidden, intercept)
        result = (hidden.flatten(0, 1) @ layer.outer.weight.T).view(vectors.shape)
    else:
        if saves_by_fusing(vectors.shape[1], *inner.shape):
            result, weighed = torch.empty_like(vectors), torch.empty_like(layer.outer.weight)
            for sources, slope, out in zip(vectors, slopes, result, strict=True):
                torch.mul(layer.outer.weight, slope, out=weighed)
                torch.mm(sources, (weighed @ inner).T, out=out)
        else:
            hidden = (flat @ inner.T).view(*vectors.shape[:-1], -1)
            hidden *= slopes[:, None]
            result = (hidden.flatten(0, 1) @ layer.outer.weight.T).view(vectors.shape)
        # <W_1 y, b_1> = <y, W_1^T b_1>, and what b_1 becomes is one vector per target
        if inner_bias is not None and how.bias != "none":
            give(result, shares(how, vectors, inner_bias @ inner), (slopes * inner_bias) @ layer.outer.weight.T)
    share(how, result, layer.outer.bias)
    if layer.post2 is not None:
        scaled(layer.post2, result, trace.fed[targets])
    return result


def saves_by_fusing(sources: int, inner: int, width: int) -> bool:
    """Whether a matrix W_2 diag(slopes) W_1 per target (D D F, then D D per source) beats W_1 and W_2 per source
    (2 D F): from 4/7 D sources on where F is 4 D."""
    return sources * (2 * inner - width) > width * inner


def normalise(norm: Norm | None, how: How, vectors: Tensor, x: Tensor) -> Tensor:
    """A norm in place, its deviation that of the whole vectors `x` [t, D]."""
    if norm is not None:
        scaled(norm, vectors, x)
        share(how, vectors, norm.bias)
    return vectors


def scaled(norm: Norm, vectors: Tensor, x: Tensor) -> Tensor:
    """That without the norm's bias: each part is centred by its own mean, where the norm centres."""
    if norm.kind == "layer":
        vectors -= vectors.mean(-1, keepdim=True)
    vectors *= (norm.weight / norm.deviation(x))[:, None]
    return vectors


def chunks(count: int, size: int) -> Iterator[tuple[int, int]]:
    """Starts and ends of parts of at most `size`."""
    size = max(1, size)
    return ((a, min(a + size, count)) for a in range(0, count, size))


def _attention_bias(trace: LayerTrace, how: How, targets: slice, *, first: bool = False) -> Tensor | None:
    """W_O b_V + b_O [D]; in the first layer the released rules leave the value bias with the attended token. Behind a
    norm of what attention brings it is another vector at each target [t, D]."""
    layer = trace.layer
    value, out = layer.value.bias, layer.out
    if how.bias == "none":
        return None
    bias = out.bias
    if value is not None and not (first and how.rules == "released"):
        through = out.weight @ value
        bias = through if bias is None else through + bias
    if bias is None or layer.post1 is None:
        return bias
    return layer.post1.weight * layer.post1.centred(bias) / layer.post1.deviation(trace.brought[targets])


def _rows(bias: Tensor | None, targets: slice) -> Tensor | None:
    return bias[targets] if bias is not None and bias.ndim > 1 else bias


def _borne_of_norm(trace: LayerTrace, how: How, vectors: Tensor, rows: int) -> Tensor:
    """Who bears the bias of a LayerNorm before attention: known only when all sources have been seen. [N, S]"""
    norm = trace.layer.norm1
    borne = vectors.new_zeros(vectors.shape[:-1])
    if trace.layer.pre_norm and norm is not None and norm.bias is not None:
        for a, b in chunks(len(vectors), rows // vectors.shape[1]):
            borne[a:b] = shares(how.at(slice(a, b)), scaled(norm, vectors[a:b].clone(), trace.x[a:b]), norm.bias)
    return borne
