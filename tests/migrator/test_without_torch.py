"""Names of a library built on torch that need none: configurations and tokenizers of transformers stay imported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from migrator import convert_source
from migrator.infer.without_torch import needs_torch
from migrator.project import analyze_paths
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, code, convert

CONFIG = """
from transformers import PretrainedConfig
from transformers.utils import logging

logger = logging.get_logger(__name__)


class NetConfig(PretrainedConfig):
    model_type = "net"

    def __init__(self, width=3, **kwargs):
        self.width = width
        super().__init__(**kwargs)
"""
NET = """
import torch
from torch import nn
from .config import NetConfig


class Net(nn.Module):
    def __init__(self, config: NetConfig):
        super().__init__()
        self.config = config
        self.fc = nn.Linear(config.width, 2)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("transformers.PretrainedConfig", False),
        ("transformers.configuration_utils.PreTrainedConfig", False),
        ("transformers.models.bert.configuration_bert.BertConfig", False),
        ("transformers.BertConfig", False),
        ("transformers.AutoTokenizer", False),
        ("transformers.LlamaTokenizerFast", False),
        ("transformers.utils.logging", False),
        ("transformers.__version__", False),
        ("transformers", True),
        ("transformers.BertModel", True),
        ("transformers.PreTrainedModel", True),
        ("transformers.BitsAndBytesConfig", True),
        ("transformers.QuantoConfig", True),
        ("transformers.utils", True),
        ("timm.AutoTokenizer", True),
        ("numpy.ndarray", False),
    ],
)
def test_what_needs_torch(name: str, expected: bool) -> None:
    assert needs_torch(name) is expected


def test_a_configuration_stays_as_it_is(tmp_path: Path) -> None:
    found = convert(tmp_path, {"config.py": CONFIG, "net.py": NET})
    assert not blocking(found)
    assert code(found, "config.py").strip() == CONFIG.strip()
    assert "def __init__(self, config: NetConfig, *, rngs: nnx.Rngs):" in code(found, "net.py")
    assert not [f for f in analyze_paths([tmp_path / "src"])[1] if f.rule == "API004"]


def test_what_is_imported_beside_a_model_stays(tmp_path: Path) -> None:
    source = (
        "import torch\nfrom transformers import BertModel, BertTokenizer as Words\n\n\n"
        "def words(text):\n    return Words.from_pretrained('a')(text)\n\n\n"
        "def net():\n    return BertModel()\n"
    )
    found = convert(tmp_path, {"net.py": source})
    assert [one.partition(" ")[2][:7] for one in blocking(found)] == ["API004 "]
    text = code(found, "net.py")
    assert "\nfrom transformers import BertTokenizer as Words\n" in text
    assert "BertModel = NotConverted(" in text
    assert "Words = NotConverted" not in text


def test_a_tokenizer_is_a_fallback_of_nothing() -> None:
    source = (
        "import torch\ntry:\n    from transformers import AutoTokenizer\n"
        "except ImportError:\n    AutoTokenizer = None\n\n\ndef words(text):\n"
        "    return AutoTokenizer.from_pretrained('a')(text)\n"
    )
    done = convert_source(source)
    assert done.complete
    assert "try:\n    from transformers import AutoTokenizer\nexcept ImportError:" in done.code


@pytest.mark.parametrize("line", ['words(text, return_tensors="pt")', "words(torch.ones(3))"])
def test_tensors_of_torch_that_it_gives_or_is_given_are_findings(line: str, tmp_path: Path) -> None:
    source = (
        "import torch\nfrom transformers import BertTokenizer\n\n\n"
        f"def f(text):\n    words = BertTokenizer('a')\n    return {line}\n"
    )
    done = convert_source(source)
    assert [f.rule for f in done.findings if f.blocks] == ["API004"]
    if "return_tensors" in line:
        path = tmp_path / "a.py"
        path.write_text(source)
        assert [f.rule for f in analyze_paths([path])[1]] == ["API004"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import transformers.utils.logging", ["API004"]),  # which is a way to all of it
        ("import transformers.utils.logging as transformers", []),
    ],
)
def test_an_import_of_a_module_in_it(line: str, expected: list[str], tmp_path: Path) -> None:
    source = f"import torch\n{line}\n\n\ndef f():\n    return transformers.a()\n"
    done = convert_source(source)
    assert [f.rule for f in done.findings if f.blocks] == expected
    path = tmp_path / "a.py"
    path.write_text(source)
    assert [f.rule for f in analyze_paths([path])[1]] == expected


def test_a_tokenizer_that_a_module_holds_and_gives_tensors_is_a_finding() -> None:
    source = """
import torch
from torch import nn
from transformers import AutoTokenizer


class Net(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.words = AutoTokenizer.from_pretrained(name) if name else None
        self.fc = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor):
        return self.fc(x), self.words.decode(x)
"""
    assert [f.rule for f in convert_source(source).findings if f.blocks] == ["API004"]


def test_what_is_asked_of_all_of_the_library_keeps_no_file_from_being_imported(
    tmp_path: Path,
) -> None:
    source = (
        "import torch\nimport transformers\n\nV = transformers.__version__\n"
        "words = transformers.AutoTokenizer.from_pretrained('a')\n\n\n"
        "class Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x + 1\n"
    )
    assert len(blocking(convert(tmp_path, {"net.py": source}))) == 3
    module = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    np.testing.assert_array_equal(module.Net()(np.ones(2)), np.full(2, 2.0))
    with pytest.raises(NotImplementedError, match=r"words: pkg/net\.py:5"):
        module.words("a")
