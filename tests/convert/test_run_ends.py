"""Groups of inputs of one size, as networks that see several crops of a picture count them."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded

CROPS = """
def f(x: list):
    places = torch.cumsum(torch.unique_consecutive(
        torch.tensor([one.{size} for one in x]),
        return_counts=True,
    )[1], 0)
    start, output = 0, torch.empty(0)
    for end in places:
        output = torch.cat((output, torch.cat(x[start: end]).mean(1)))
        {more}
        start = end
    return output
"""


@pytest.mark.parametrize("size", ["shape[-1]", "size(1)"])
def test_crops_of_one_size_go_together(size: str) -> None:
    theirs, ours, code = loaded(CROPS.format(size=size, more="pass"))
    assert "unique" not in code
    x = [torch.randn(2, n) for n in (5, 5, 3, 3, 3, 5)]
    got = ours["f"]([jnp.asarray(one.numpy()) for one in x])
    np.testing.assert_allclose(got, theirs["f"](x).numpy(), atol=1e-6)


def test_places_that_are_asked_for_more_stay_tensors() -> None:
    for more in ("output = output * end", "print(places)", "output = output[: end.item()]"):
        result = convert(CROPS.format(size="shape[-1]", more=more))
        assert not result.complete
