"""``partial`` is called as the file calls it, where it calls it so everywhere."""

from __future__ import annotations

import pytest

from tests.convert.tools import convert

NET = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = nn.GELU()\n"


def test_the_name_that_the_file_has_imported() -> None:
    code = convert(f"from functools import partial, reduce\n\nnorm = partial(max, 1)\n\n{NET}").code
    assert "self.act = partial(jax.nn.gelu, approximate=False)" in code
    assert "import functools" not in code


@pytest.mark.parametrize(
    "before",
    [
        "",
        "import functools\nfrom functools import partial\n\n",
        "from functools import partial as p\n\n",
        "try:\n    from functools import partial\nexcept ImportError:\n    partial = None\n\n",
        "from functools import partial\n\ndef f(partial):\n    return partial\n\n",
        "from functools import partial\n\ndef f():\n    with open('x') as partial:\n        pass\n\n",
        "from functools import partial\n\ndef f():\n    from mine import partial\n    return partial\n\n",
        "from functools import partial\n\npartial = max\n\n",
    ],
)
def test_a_name_that_may_mean_something_else_is_not_taken(before: str) -> None:
    assert "self.act = functools.partial(jax.nn.gelu" in convert(f"{before}{NET}").code


def test_a_helper_that_needs_the_module_has_it() -> None:
    source = f"from functools import partial\n\nnorm = partial(max, 1)\n\n{NET}"
    source += "        self.layer = nn.TransformerEncoderLayer(8, 2)\n"
    code = convert(source).code
    assert "import functools\n" in code
    assert "functools.partial(" in code
    assert "self.act = partial(" in code
    exec(code, {})
