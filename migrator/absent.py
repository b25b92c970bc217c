"""Kernels that a model file of transformers may take where they are installed: a port has none of them.

What asks whether they are there is known: of ``if is_flash_attn_2_available():`` only the other branch is left, and what
it would have imported is None. A model that is told to take them, ``config._attn_implementation == "flash_attention_2"``,
is refused in the branch that would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax

_QUESTIONS = frozenset(
    "is_flash_attn_2_available is_flash_attn_3_available is_flash_attn_greater_or_equal_2_10 is_flash_attn_available "
    "is_torch_fx_available is_torch_fx_proxy is_torchdynamo_compiling is_torch_flex_attn_available "
    "flash_attn_supports_top_left_mask is_deepspeed_zero3_enabled is_fsdp_managed_module is_causal_conv1d_available "
    "is_mamba_ssm_available is_mamba_2_ssm_available is_triton_available is_ninja_available is_torch_cuda_available "
    "is_cuda_platform is_torch_xla_available is_torch_npu_available is_torch_xpu_available is_kernels_available "
    "is_peft_available is_accelerate_available is_bitsandbytes_available is_xlstm_available is_fla_available".split()
)
"""Functions of transformers that say no."""
_KERNELS = frozenset(("flash_attention_2", "flash_attention_3", "flex_attention", "flash_paged"))
"""Ways to compute attention that are kernels."""
_CLASS = 'class {}:\n    """What no object here is one of."""\n'
REFUSED = 'raise NotImplementedError("kernels for attention are not converted")'
"""What stands in the branch of a model that is told to take one."""
_ASKED = re.compile(
    r"\b(is_\w+(available|2_10|compiling|proxy|enabled|module|platform)|flash_attn_supports)|_attn_impl"
)


def without_kernels(tree: cst.Module, text: str) -> cst.Module:
    """A file without the branches that no port takes."""
    if "is_autocast_enabled" not in text:
        if "transformers" not in text or _ASKED.search(text) is None:
            return tree
    asked = frozenset(_questions(tree))
    if not asked and "_attn_implementation" not in text and "is_autocast" not in text:
        return tree
    answers = _Answers(asked)

    def visit(node: cst.CSTNode) -> Any:
        made: Any = syntax.rebuild(node, visit)
        if isinstance(made, (cst.Module, cst.IndentedBlock)):
            body = [line for one in made.body for line in answers.lines(one)]
            if len(body) != len(made.body) or any(
                a is not b for a, b in zip(body, made.body, strict=True)
            ):
                rest = body or [cst.parse_statement("pass\n")]
                return syntax.changed(made, body=rest)
        if isinstance(made, cst.IfExp):
            answer = answers.of(made.test)
            if answer is not None:
                return made.body if answer else made.orelse
        return made

    found: cst.Module = visit(tree)
    return found


def _questions(tree: cst.Module) -> Iterator[str]:
    """The names under which a file has such functions of transformers."""
    for node in tree.body:
        for small in node.body if isinstance(node, cst.SimpleStatementLine) else ():
            if not isinstance(small, cst.ImportFrom) or isinstance(small.names, cst.ImportStar):
                continue
            root = syntax.code(small.module).partition(".")[0] if small.module is not None else ""
            if root not in ("transformers", "transformers_flax"):
                continue
            for one in small.names:
                if one.evaluated_name in _QUESTIONS:
                    yield one.evaluated_alias or one.evaluated_name


class _Answers:
    """What is known of tests."""

    def __init__(self, asked: frozenset[str]) -> None:
        self.asked = asked

    def of(self, node: cst.BaseExpression) -> bool | None:
        """Whether a test holds; None where that is not known."""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            return False if node.func.value in self.asked else None
        if isinstance(node, cst.Call) and syntax.code(node.func) == "torch.is_autocast_enabled":
            return False  # its regions become dtypes
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.of(node.expression)
            return None if inner is None else not inner
        if isinstance(node, cst.BooleanOperation):
            left, right = self.of(node.left), self.of(node.right)
            decides = isinstance(node.operator, cst.Or)
            if left is decides or (right is decides and _asks_only(node.left)):
                return decides
            return left if left == right else None
        return None

    def rest(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A test without the parts of it that are known: ``a`` of ``a and not is_torchdynamo_compiling()``."""
        if not isinstance(node, cst.BooleanOperation):
            return node
        decides = isinstance(node.operator, cst.Or)
        if self.of(node.left) is (not decides):
            return self.rest(node.right)
        if self.of(node.right) is (not decides):
            return self.rest(node.left)
        left, right = self.rest(node.left), self.rest(node.right)
        if left is node.left and right is node.right:
            return node
        return syntax.changed(node, left=left, right=right)

    def lines(self, line: Any) -> Sequence[Any]:
        """What is left of a statement."""
        if not isinstance(line, cst.If):
            return (line,)
        made = self._branch(line)
        if made is line or isinstance(made, cst.If):
            return (made,)
        kept = list(made.body) if isinstance(made, cst.IndentedBlock) else []
        return [*self._unbound(line, kept), *kept]

    def _branch(self, line: cst.If) -> Any:
        """What is left of a branch: another, the lines of one, or nothing."""
        answer = self.of(line.test)
        if answer is None:
            test = self.rest(line.test)
            made = line if test is line.test else syntax.changed(line, test=test)
            kernel = _kernel(test)
            if kernel is not None:
                refused = cst.IndentedBlock([syntax.statement(REFUSED)])
                made = syntax.changed(made, test=syntax.unparenthesized(kernel), body=refused)
            if not isinstance(line.orelse, cst.If):
                return made
            other = self._branch(line.orelse)
            if other is line.orelse:
                return made
            if isinstance(other, cst.IndentedBlock):
                other = cst.Else(other)
            return syntax.changed(made, orelse=other)
        if answer:
            return line.body
        if line.orelse is None:
            return None
        if isinstance(line.orelse, cst.Else):
            return line.orelse.body
        below = self._branch(line.orelse)
        if isinstance(below, cst.If):
            return syntax.changed(below, leading_lines=line.leading_lines)
        return below

    def _unbound(self, line: cst.If, kept: list[Any]) -> Iterator[cst.BaseStatement]:
        """``name = None`` for what a branch that is gone has imported, and nothing else gives."""
        given = {n for one in kept for n in syntax.names(one)}
        if self.of(line.test) is not False or not isinstance(line.body, cst.IndentedBlock):
            return
        for one in line.body.body:
            for small in one.body if isinstance(one, cst.SimpleStatementLine) else ():
                if isinstance(small, cst.ImportFrom) and not isinstance(
                    small.names, cst.ImportStar
                ):
                    for alias in small.names:
                        name = alias.evaluated_alias or alias.evaluated_name
                        if name not in given:
                            is_class = name[:1].isupper() and name.upper() != name
                            yield syntax.statement(
                                _CLASS.format(name) if is_class else f"{name} = None"
                            )


def _asks_only(node: cst.BaseExpression) -> bool:
    """Whether looking at a test does nothing."""
    return not any(isinstance(n, (cst.NamedExpr, cst.Await, cst.Yield)) for n in syntax.walk(node))


def _kernel(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``config._attn_implementation == "flash_attention_2"``, if a test holds only where that does."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        left = _kernel(test.left)
        return left if left is not None else _kernel(test.right) if _asks_only(test.left) else None
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    left, operator, right = test.left, test.comparisons[0].operator, test.comparisons[0].comparator
    if isinstance(operator, cst.In) and isinstance(left, cst.SimpleString):
        word = left.evaluated_value  # "flash" in config._attn_implementation
        return test if word in ("flash", "flash_attention") and _is_choice(right) else None
    several = [right]
    if isinstance(operator, cst.In):
        if not isinstance(right, (cst.List, cst.Tuple, cst.Set)):
            return None
        several = [one.value for one in right.elements]
    elif not isinstance(operator, cst.Equal):
        return None
    names = [one.evaluated_value if isinstance(one, cst.SimpleString) else "" for one in several]
    return test if _is_choice(left) and names and all(n in _KERNELS for n in names) else None


def _is_choice(node: cst.BaseExpression) -> bool:
    """``self.config._attn_implementation``."""
    return isinstance(node, cst.Attribute) and node.attr.value == "_attn_implementation"
