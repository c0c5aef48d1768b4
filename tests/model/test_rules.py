"""Rules replace operations wherever they stand, in place or not."""

from __future__ import annotations

import torch

from veridical.model.rules.rescale import RESCALE
from veridical.model.rules.rules import Rules


def test_an_operation_in_place_has_its_rule_and_its_effect():
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()

    def run() -> torch.Tensor:
        product = x * 2
        product.mul_(torch.tanh(x))  # what it returns is dropped: only the effect counts
        return product

    plain = run()
    with Rules(RESCALE, "a test"):
        ruled = run()
    torch.testing.assert_close(ruled, plain)
    (multiplier,) = torch.autograd.grad(ruled.sum(), x)
    step = (x[:2] - x[2:]).detach()
    torch.testing.assert_close((multiplier[:2] * step).sum(), (ruled[:2] - ruled[2:]).sum(), atol=1e-5, rtol=0)
