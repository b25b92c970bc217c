"""Writes ``docs/coverage.md``: what each torch name becomes, and what was measured.

``python -m tests.rules.coverage`` writes the page from the definitions and from ``tests/rules/results.json``, in which
the sweep noted its outcomes. Nothing is run, and neither torch nor JAX is imported.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from rules import definitions
from rules.torch_names import table as torch_names
from tests.rules import beyond

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "coverage.md"
RECORD = Path(__file__).with_name("results.json")
BEYOND = "tests/rules/test_beyond.py"
NAMESPACES = {
    "torch": "torch and Tensor",
    "torch.nn": "torch.nn",
    "torch.nn.functional": "torch.nn.functional",
    "torch.linalg": "torch.linalg",
    "torch.fft": "torch.fft",
    "torch.special": "torch.special",
    "torch.signal.windows": "torch.signal.windows",
    "torch.nn.init": "torch.nn.init",
    "torch.nn.utils": "torch.nn.utils",
    "torch.nn.utils.rnn": "torch.nn.utils.rnn",
    "torch.nn.utils.parametrizations": "torch.nn.utils.parametrizations",
    "torch.func": "torch.func",
    "torch.autograd.functional": "torch.autograd.functional",
    "torch.masked": "torch.masked",
}
OPERATORS = {
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "bitwise_not",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "iadd": "add",
    "isub": "sub",
    "imul": "mul",
    "itruediv": "div",
    "ipow": "pow",
}
FOREIGN = (
    (
        r"sparse|coalesce|ccol|crow|row_indices|col_indices|hspmm|hsmm|sspaddmm|\bsmm|saddmm|bsc|csr|"
        r"dense_dim|_values$|\.values$|\.indices$|indices_copy|values_copy",
        "sparse layouts",
    ),
    (r"quant|qscheme|q_scale|q_zero|q_per|int_repr|fbgemm|qparams", "quantised tensors"),
    (r"cudnn|miopen|mkldnn|vulkan|mtia|\bipu\b|is_(cpu|xla|ipu|maia|xpu)$", "one vendor's kernels"),
    (r"\bsym_|Sym(Int|Bool|Float)|guard|constrain_range", "symbolic shapes of torch's compiler"),
    (
        r"autocast|deterministic|num_threads|anomaly|inference_mode|is_grad|warn_always|flush|debug|"
        r"default_(device|dtype|tensor)|printoptions|float32_matmul|interop|profiler|multiprocessing",
        "a setting of torch's run time",
    ),
    (
        r"jit|script|parse_|merge_type|unify_type|import_ir|wait$|fork$|type_comment|Type$|Graph$|"
        r"typename|cxx11|overload|has_torch_function|handle_torch_function|boolean_dispatch",
        "a part of torch's own machinery",
    ),
    (
        r"storage|dlpack|from_file|frombuffer|\.load$|\.save$|data_ptr|record_stream|set_$|pinned|"
        r"get_file_path|is_shared|shared_memory|module_load",
        "memory, files and streams",
    ),
    (
        r"batch_norm_(backward|elemt|gather|stats|update)|native_|_backward|norm_except_dim|"
        r"embedding_renorm",
        "an internal of another function",
    ),
    (
        r"is_set_to|is_inference|is_distributed|output_nr|retains_grad|volatile|reinforce|hook|"
        r"storage_type|dim_order|as_subclass|get_device",
        "the object, not its values",
    ),
)


@cache
def record() -> dict[str, Any]:
    """The outcomes the sweep noted, by oracle, database name and dtype."""
    loaded: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return loaded


def save_record(outcomes: dict[str, Any]) -> None:
    """Write the record, a line for each name, so that a change is easy to read."""
    lines = []
    for oracle, names in sorted(outcomes.items()):
        if oracle == "versions":
            lines.append(f'"versions": {json.dumps(names)}')
            continue
        noted = ",\n".join(f" {json.dumps(n)}: {json.dumps(o)}" for n, o in sorted(names.items()))
        lines.append(f"{json.dumps(oracle)}: {{\n{noted}\n}}")
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@dataclass
class Row:
    """One line of the page."""

    name: str
    forms: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """``verified``, ``flagged: why``, ``not applicable: why``."""
        return status_of(self.forms)


@cache
def database_names() -> dict[str, list[str]]:
    """Qualified name → names of the database under which it was run."""
    found: dict[str, list[str]] = {}
    for entry, forms in record()["forms"].items():
        for form in forms:
            found.setdefault(form, []).append(entry)
    return found


@cache
def siblings() -> dict[str, set[str]]:
    """Qualified name → all names that share one of its definitions."""
    found: dict[str, set[str]] = {}
    for group in ("op", "layer"):
        for name, rules in definitions.index(group).items():
            for rule in rules:
                found.setdefault(name, set()).update(rule.names)
    return found


def rules_of(name: str) -> tuple[definitions.Rule, ...]:
    """The definitions of a name; of an in-place name those of the function it is the in-place form of."""
    for candidate in (name, name.removesuffix("_")):
        if found := definitions.ops(candidate) or definitions.layers(candidate):
            return tuple(found)
    return ()


def outcomes(name: str) -> list[tuple[str, str, str]]:
    """(oracle, dtype, outcome) of everything that was run for a name."""
    entries = database_names().get(name, [])
    if not entries:
        names = siblings().get(name, set())
        entries = [e for other in sorted(names) for e in database_names().get(other, [])]
    short = name.removeprefix("torch.")
    found = []
    for oracle in ("definitions", "conversions"):
        for entry in dict.fromkeys(entries):
            for dtype, outcome in record().get(oracle, {}).get(entry, {}).items():
                found.append((oracle, dtype, outcome))
    for oracle in ("layers", "converted layers"):
        for dtype, outcome in record().get(oracle, {}).get(short, {}).items():
            found.append((oracle, dtype, outcome))
    return found


def status_of(forms: list[str]) -> str:
    """The status of a row, from what was measured of any of its forms."""
    known = [form for form in forms if rules_of(form)]
    if not known:
        return _without_rule(forms)
    found = [o for form in known for o in outcomes(form)]
    if not found:
        tested = next((t for form in known if (t := own_test(form))), None)
        if tested:
            return f"verified by {tested}"
        refused = [refusal(rule) for form in known for rule in rules_of(form)]
        if refused and all(refused):
            return f"flagged: {_short(str(refused[0]))}"
        return "not measured: converted by its definition"
    statuses = {outcome.split()[0] for _, _, outcome in found}
    if "verified" in statuses:
        rest = {re.sub(r"^\w+ \d+ of \d+: ", "", o) for _, _, o in found if o.startswith("flagged")}
        dtypes = list(dict.fromkeys(d for _, d, o in found if o.startswith("verified")))
        said = f"verified ({', '.join(dtypes)})"
        return f"{said}; flagged: {_short(sorted(rest)[0])}" if rest else said
    reasons = [o.partition(": ")[2] for _, _, o in found if o.startswith("flagged")]
    return f"flagged: {_short(next((r for r in reasons if r), 'not applicable to dense tensors'))}"


def refusal(rule: definitions.Rule) -> str | None:
    """Why a definition converts no use at all; None where it converts some."""
    last = rule.node.body[-1] if isinstance(rule.node, ast.FunctionDef) else None
    call = getattr(last, "value", None)
    if len(rule.node.body) > 2 or not isinstance(call, ast.Call) or not call.args:
        return None
    said = call.args[0]
    refuses = isinstance(call.func, ast.Name) and call.func.id == "unsupported"
    return str(said.value) if refuses and isinstance(said, ast.Constant) else None


def _without_rule(forms: list[str]) -> str:
    for pattern, reason in FOREIGN:
        if any(re.search(pattern, form) for form in forms):
            return f"not applicable: {reason}"
    return "flagged: no definition, a use is an API001 finding"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 110 else text[:107] + "…"


@cache
def _tests() -> dict[str, str]:
    folder = ROOT / "tests" / "rules"
    paths = sorted(p for p in folder.rglob("test_*.py"))
    return {p.relative_to(ROOT).as_posix(): p.read_text(encoding="utf-8") for p in paths}


def own_test(name: str) -> str | None:
    """The test file that was found to use the name when the page was last written.

    It is noted beside the outcomes: a page that followed the text of every test would be stale after any change.
    """
    found: str | None = record().get("own tests", {}).get(name)
    return found


def find_test(name: str) -> str | None:
    """A test file that uses the name as a user would."""
    if name in beyond.names():
        return BEYOND
    return next((path for path in _tests() if uses(path, name)), None)


def uses(path: str, name: str) -> bool:
    """Whether the test file at a path calls what a qualified name stands for."""
    if path == BEYOND:
        return name in beyond.names()
    owner, _, last = name.rpartition(".")
    owner = owner.rpartition(".")[2]
    if last.startswith("__") or path not in _tests():
        return False
    spelled = {"Tensor": rf"\.{last}\b", "functional": rf"\b(F|functional)\.{last}\b"}
    return bool(re.search(spelled.get(owner, rf"\b{owner}\.{last}\b"), _tests()[path]))


def becomes(row: Row) -> str:
    """What a use of the name turns into, by the example of its definition."""
    examples: dict[str, str] = {}
    for form in row.forms:
        for rule in rules_of(form):
            examples.update(rule.example)
    last = row.name.rpartition(".")[2]
    own = [(a, b) for a, b in examples.items() if re.search(rf"\b{re.escape(last)}\(", a)]
    chosen = (own or list(examples.items()))[:1]
    if chosen:
        return f"`{chosen[0][0]}` → `{chosen[0][1]}`".replace("|", "\\|")
    rule = next((r for form in row.forms for r in rules_of(form)), None)
    return f"`{rule.node.name}`, a helper" if rule is not None else ""


def rows() -> dict[str, list[Row]]:
    """The rows of each section, in order."""
    made: dict[str, dict[str, Row]] = {section: {} for section in NAMESPACES.values()}
    for name in sorted(universe()):
        owner, _, last = name.rpartition(".")
        owner = "torch" if owner == "Tensor" else owner
        section = NAMESPACES.get(owner)
        if section is None:
            continue
        base = _base(last)
        row = made[section].setdefault(base, Row(base if owner == "torch" else f"{owner}.{base}"))
        row.forms.append(name)
    return {section: list(found.values()) for section, found in made.items()}


def _base(last: str) -> str:
    if last.startswith("__") and last.endswith("__"):
        plain = last.strip("_")
        plain = OPERATORS.get(plain, plain)
        reverse = plain[1:] if plain.startswith("r") else plain
        return OPERATORS.get(reverse, reverse) if reverse in _DUNDER else plain
    return last.removesuffix("_") or last


_DUNDER = frozenset("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split())


def universe() -> set[str]:
    """Every public name of the sections, and every name that has a definition."""
    table = torch_names()
    found = {name for group in ("function",) for name in table[group]}
    found |= {name for name in table["class"] if name.startswith("torch.nn.")}
    found |= {f"Tensor.{name}" for group in ("method", "attribute") for name in table[group]}
    found |= set(definitions.index("op")) | set(definitions.index("layer"))
    return {n for n in found if not n.rpartition(".")[2].startswith("_") or "__" in n}


def page() -> str:
    """The text of ``docs/coverage.md``."""
    versions = ", ".join(f"{k} {v}" for k, v in record()["versions"].items())
    parts = [
        "# What becomes of each torch name\n",
        "Made by `python -m tests.rules.coverage` from the definitions under `rules/` and from what "
        f"`make sweep` measured with {versions}.\n",
        "*Verified* means that values, shapes, dtypes and gradients are torch's on all float32 samples that torch's own "
        "databases have for the name, by the definition run directly or by the conversion of the source a user "
        "would write; `tests/rules/results.json` says on how many samples by which of the two. *Flagged* uses are findings; what is not written differently "
        "here is never converted silently. A method, its function and its in-place form share a line; an axis "
        "named for a tensor without axes raises in JAX. What the sweep has not reached is *not measured*.\n",
        _databases(),
        _totals(),
    ]
    for section, found in rows().items():
        if found:
            lines = [f"| `{r.name}` | {_forms(r)} | {becomes(r)} | {r.status} |" for r in found]
            parts += [
                f"## {section}\n",
                "| name | forms | becomes | status |\n| --- | --- | --- | --- |",
            ]
            parts += ["\n".join(lines) + "\n"]
    return "\n".join(parts)


def _forms(row: Row) -> str:
    found = []
    for form in row.forms:
        last = form.rpartition(".")[2]
        if last.startswith("__"):
            kind = "operator"
        elif last.endswith("_"):
            kind = "in place"
        elif form.startswith("Tensor."):
            kind = "method" if last in torch_names()["method"] else "attribute"
        else:
            kind = "class" if last[:1].isupper() else "function"
        found.append(kind)
    return ", ".join(dict.fromkeys(found))


def _databases() -> str:
    lines = [
        "| torch's database | names | verified | flagged | not applicable | raises | wrong |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for oracle, label in (
        ("definitions", "ops, definitions run directly, float32"),
        ("conversions", "ops, converted source, float32"),
        ("layers", "layers, definitions run directly"),
        ("converted layers", "layers, converted source"),
    ):
        counts: Counter[str] = Counter()
        for outcome in record().get(oracle, {}).values():
            first = outcome.get("float32") or next(iter(outcome.values()))
            counts["not applicable" if first.startswith("not") else first.split()[0]] += 1
        cells = [str(sum(counts.values()))]
        cells += [
            str(counts[s]) for s in ("verified", "flagged", "not applicable", "raises", "wrong")
        ]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _totals() -> str:
    lines = [
        "| section | names | verified | flagged | not measured | not applicable |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    total: Counter[str] = Counter()
    for section, found in rows().items():
        counts = Counter(r.status.split(" (")[0].split(":")[0].split(" by")[0] for r in found)
        counts["names"] = len(found)
        total.update(counts)
        cells = [
            str(counts[s])
            for s in ("names", "verified", "flagged", "not measured", "not applicable")
        ]
        lines.append(f"| {section} | {' | '.join(cells)} |")
    cells = [
        str(total[s]) for s in ("names", "verified", "flagged", "not measured", "not applicable")
    ]
    lines.append(f"| together | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def note_tests() -> None:
    """Look for the tests of what the sweep has not run, and note them beside its outcomes."""
    known = {form for found in rows().values() for row in found for form in row.forms}
    found = {
        form: find_test(form)
        for form in sorted(known)
        # A test that uses a name which is always flagged says nothing about a conversion of it.
        if not all(map(refusal, rules_of(form))) and not outcomes(form)
    }
    save_record({**record(), "own tests": {form: path for form, path in found.items() if path}})
    record.cache_clear()


def main() -> int:
    """Write the page."""
    note_tests()
    PAGE.write_text(page(), encoding="utf-8")
    print(_totals())
    return 0


if __name__ == "__main__":
    sys.exit(main())
