"""What transformers makes of a ``PreTrainedModel`` where the file does not say it itself.

``self.post_init()`` is what is done once a model is built: draw the weights, and tie the head.

Where the file says how, the constructor says it itself: ``self.apply(self._init_weights)``, and for a model with output
embeddings ``if self.config.tie_word_embeddings: self.lm_head.weight = self.model.embed_tokens.weight``.
A class with one of the heads that all models share, ``GenericForTokenClassification``, gets the constructor that makes
its model and its head.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax

BASE = "PreTrainedModel"
_OWN = frozenset({"post_init", "init_weights", "tie_weights"})
"""Methods that change what ``post_init`` does."""
_HEADS = {
    "GenericForSequenceClassification": """\
self.num_labels = config.num_labels
self.{name} = {model}(config)
self.score = {nn}.Linear(config.hidden_size, self.num_labels, bias=False)
""",
    "GenericForQuestionAnswering": """\
self.{name} = {model}(config)
self.qa_outputs = {nn}.Linear(config.hidden_size, 2)
""",
    "GenericForTokenClassification": """\
self.num_labels = config.num_labels
self.{name} = {model}(config)
dropout = getattr(config, "classifier_dropout", None)
if dropout is None:
    dropout = getattr(config, "hidden_dropout", None)
self.dropout = {nn}.Dropout(0.1 if dropout is None else dropout)
self.score = {nn}.Linear(config.hidden_size, config.num_labels)
""",
}
"""What the constructor of a head makes: the model, which is that of the configuration, and its last layer."""
_KNOWN = frozenset({BASE, "GenerationMixin", "BackboneMixin", "object", *_HEADS})
_TIES = 'getattr(self.config.get_text_config(decoder=True), "tie_word_embeddings", True)'
"""Whether transformers ties the head of a model."""
OVERRIDES = _OWN | {"get_output_embeddings", "get_input_embeddings", "_tie_weights"}
"""Methods of a class that derives from a model by which the constructor of that does something else."""
_OF_PARTS = f"""\
for child in self.children():
    if not isinstance(child, {BASE}):
        child.apply(self._init_weights)"""
"""A part that is a model has drawn its own weights."""
_MOST = 8
"""Modules within one another that are looked into for the embedding."""


def as_built(tree: cst.Module, text: str) -> cst.Module:
    """The file with what ``post_init`` does in its place, where that is known."""
    if "transformers" not in text or not _imports_base(tree):
        return tree
    if "def load_tf_weights" in text:
        tree = without_readers(tree)
    if "def set_input_embeddings" in text or "def set_output_embeddings" in text:
        tree = without_setters(tree)
    if "(GenericFor" in text:
        tree = with_heads(tree, text)
        text += ".post_init()"
    if ".post_init()" not in text and ".init_weights()" not in text:
        return tree
    classes = {node.name.value: node for node in tree.body if isinstance(node, cst.ClassDef)}
    if not all(_ties_nothing_more(classes, node) for node in classes.values()):
        return tree  # post_init() asks every part to
    made: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
    for node in classes.values():
        init = _methods(node).get("__init__")
        for line in init.body.body if init is not None else ():
            if isinstance(line, cst.SimpleStatementLine) and _asks(line):
                lines = _done(classes, node)
                if lines is not None:
                    made[line] = lines
                    tie = _methods(node).get("_tie_weights")
                    if tie is not None:
                        made[tie] = []
    if "._tie_weights()" not in text:  # nobody but transformers asks a part to
        for node in classes.values():
            tie = _methods(node).get("_tie_weights")
            if tie is not None and not _is_model(classes, node):
                made[tie] = []
    if not made:
        return tree

    def visit(node: cst.CSTNode) -> Any:
        if not isinstance(node, cst.IndentedBlock) or not any(one in made for one in node.body):
            return syntax.rebuild(node, visit)
        body: list[cst.CSTNode] = []
        for one in node.body:
            body += made[one] if one in made else [syntax.rebuild(one, visit)]
        return syntax.changed(node, body=body)

    found: cst.Module = visit(tree)
    return found


def without_readers(tree: cst.Module) -> cst.Module:
    """The file with functions that read checkpoints of TensorFlow, for ``from_pretrained``, which no port has, refusing."""
    lines: list[Any] = []
    for one in tree.body:
        if isinstance(one, cst.FunctionDef) and one.name.value.startswith(READERS):
            doc: list[Any] = [line for line in one.body.body[:1] if syntax.is_docstring(line)]
            one = syntax.changed(one, body=cst.IndentedBlock([*doc, syntax.statement(_REFUSED)]))
        lines.append(one)
    found: cst.Module = syntax.changed(tree, body=lines)
    return found


def without_setters(tree: cst.Module) -> cst.Module:
    """The file whose models refuse other embeddings, as those that stand in do: only a model that is resized gets some."""
    classes = {node.name.value: node for node in tree.body if isinstance(node, cst.ClassDef)}
    setters = {
        method
        for node in classes.values()
        if _is_model(classes, node)
        for name, method in _methods(node).items()
        if name in SETTERS
    }
    inside = {id(one) for method in setters for one in syntax.walk(method)}
    for node in syntax.walk(tree):
        asked = isinstance(node, cst.Attribute) and node.attr.value in SETTERS
        if asked and id(node) not in inside:
            return tree

    def visit(node: cst.CSTNode) -> Any:
        if node not in setters:
            return syntax.rebuild(node, visit)
        return syntax.changed(node, body=cst.IndentedBlock([syntax.statement(_UNSET)]))

    found: cst.Module = visit(tree)
    return found


SETTERS = ("set_input_embeddings", "set_output_embeddings")
_UNSET = 'raise NotImplementedError("the embeddings of a model are those of its configuration")'
READERS = "load_tf_weights"
"""How functions are called that put the arrays of a checkpoint of TensorFlow into a model."""
_REFUSED = 'raise NotImplementedError("checkpoints of TensorFlow are not read")'


def with_heads(tree: cst.Module, text: str) -> cst.Module:
    """The file with the constructors of classes that say which head they have, and no more."""
    nn = next((name for pattern, name in _NN if re.search(pattern, text, re.M)), None)
    classes = {node.name.value for node in tree.body if isinstance(node, cst.ClassDef)}
    shared = _shared_heads(tree) - classes
    configs = {n.name.value: _configuration(n) for n in tree.body if isinstance(n, cst.ClassDef)}
    body: list[Any] = []
    for node in tree.body:
        made = None
        if isinstance(node, cst.ClassDef) and nn:
            made = _with_head(node, classes, nn, shared, configs)
        body.append(node if made is None else made)
    found: cst.Module = syntax.changed(tree, body=body)
    return found


_NN = (
    (r"^from torch import .*\bnn\b|^import torch\.nn as nn$", "nn"),
    (r"^import torch$", "torch.nn"),
)
"""How a file calls ``torch.nn``."""


def _shared_heads(tree: cst.Module) -> set[str]:
    """The heads that a file imports of transformers."""
    found = set()
    for node in syntax.walk(tree):
        if isinstance(node, cst.ImportFrom) and not isinstance(node.names, cst.ImportStar):
            if node.module is not None and "transformers" in syntax.code(node.module):
                found |= {one.evaluated_name for one in node.names if one.asname is None}
    return found & set(_HEADS)


def _configuration(node: cst.ClassDef) -> str:
    """``X`` of ``config: XConfig``, ``config_class = XConfig`` in a class."""
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    for line in lines:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        text = syntax.code(small).strip() if small is not None else ""
        found = re.fullmatch(r"config(?:_class)?(?: = |: )(\w+)Config", text)
        if found:
            return found[1]
    return ""


def _with_head(
    node: cst.ClassDef, classes: set[str], nn: str, shared: set[str], configs: dict[str, str]
) -> cst.ClassDef | None:
    """``XForTokenClassification`` with a constructor that makes ``XModel``; None where it has one, or there is no such.

    The model is that of the configuration, which has its name."""
    head = next((name for b in node.bases if (name := syntax.code(b.value)) in shared), None)
    if head is None or "__init__" in _methods(node):
        return None
    model = node.name.value.removesuffix(head.removeprefix("Generic")) + "Model"
    if model not in classes or model == f"{node.name.value}Model":
        return None
    owners = [node.name.value, *(syntax.code(b.value) for b in node.bases)]
    said = next((configs[name] for name in owners if configs.get(name)), "")
    if f"{said}Model" != model:
        return None
    lines = list(node.body.body) if isinstance(node.body, cst.IndentedBlock) else []
    own = [one for one in lines if syntax.code(one).strip() not in ("...", "pass")]
    made = _HEADS[head].format(name=_prefix([node]) or "model", model=model, nn=nn)
    text = f"super().__init__(config)\n{made}self.post_init()\n"
    block = "".join(f"    {line}\n" for line in text.splitlines())
    init = cst.parse_statement(f"def __init__(self, config):\n{block}")
    first = next((i for i, one in enumerate(own) if isinstance(one, cst.FunctionDef)), len(own))
    changed: cst.ClassDef = syntax.changed(
        node, body=cst.IndentedBlock(body=[*own[:first], init, *own[first:]])
    )
    return changed


def _imports_base(tree: cst.Module) -> bool:
    """Whether ``PreTrainedModel`` is that of transformers, or what stands in for it."""
    for node in syntax.walk(tree):
        if not isinstance(node, cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
            continue
        root = syntax.code(node.module).partition(".")[0] if node.module is not None else ""
        if root in ("transformers", "transformers_flax"):
            if any(one.evaluated_name == BASE for one in node.names):
                return True
    return False


def _ties_nothing_more(classes: dict[str, cst.ClassDef], node: cst.ClassDef) -> bool:
    """Whether ``_tie_weights`` of a class, if it has one, says what its constructor has said, or what it says is known."""
    tie, init = _methods(node).get("_tie_weights"), _methods(node).get("__init__")
    if tie is None:
        return True
    if _is_model(classes, node) and init is not None:
        if any(isinstance(one, cst.SimpleStatementLine) and _asks(one) for one in init.body.body):
            return _tied(classes, node, tie.body) is not None
    body = [one for one in tie.body.body if not syntax.is_docstring(one)]
    first = body[0] if len(body) == 1 else None
    if isinstance(first, cst.If) and isinstance(first.orelse, cst.Else) and _is_meta(first.test):
        body = list(first.orelse.body.body)
    said = set(_lines(init.body.body)) if init is not None else set()
    for line in _lines(body):
        left, _, right = line.partition(" = ")
        if not right or not {f"{left} = {right}", f"{right} = {left}"} & said:
            return False
    return True


def _is_meta(test: cst.BaseExpression) -> bool:
    """Whether layers are asked if they are on no device, where those of a model that is built are not."""
    text = syntax.code(test).replace("'", '"')
    found = re.fullmatch(
        r'[\w.]+\.device(\.type == "meta"| == torch\.device\(\s*"meta"\s*\))(\s+and .*)?',
        text,
        re.S,
    )
    return found is not None


def _is_model(classes: dict[str, cst.ClassDef], node: cst.ClassDef) -> bool:
    """Whether a class derives from ``PreTrainedModel``."""
    chain, _ = _chain(classes, node)
    names = (syntax.code(b.value).rpartition(".")[2] for one in chain for b in one.bases)
    return BASE in names


def _tied(
    classes: dict[str, cst.ClassDef], node: cst.ClassDef, body: cst.BaseSuite
) -> list[str] | None:
    """What ``_tie_weights`` of a model does, line by line; None where that is not known."""
    parts, found = dict(_assigned(_chain(classes, node)[0])), list[str]()
    for one in body.body:
        if syntax.is_docstring(one):
            continue
        if isinstance(one, cst.If) and one.orelse is None and not _is_meta(one.test):
            inner = _tied(classes, node, one.body)
            if inner is None:
                return None
            found += [
                f"if {syntax.code(one.test)}:",
                *(f"    {line}" for line in inner or ("pass",)),
            ]
            continue
        if isinstance(one, cst.If) and isinstance(one.orelse, cst.Else) and _is_meta(one.test):
            inner = _tied(classes, node, one.orelse.body)
            if inner is None:
                return None
            found += inner
            continue
        text = next(_lines([one]), "")
        several = re.fullmatch(r"self\._tie_or_clone_weights\((self[\w.]+), (self[\w.]+)\)", text)
        part = re.fullmatch(r"self\.(\w+)\._tie_weights\(\)", text)
        if several:
            found.append(f"{several[1]}.weight = {several[2]}.weight")
        elif part:
            made = parts.get(part[1])
            inner_class = (
                classes.get(syntax.code(made.func)) if isinstance(made, cst.Call) else None
            )
            if inner_class is None or not _is_model(classes, inner_class):
                return None
            # it has tied its own where it was built
        else:
            return None
    return found


def _lines(body: Sequence[cst.CSTNode]) -> Iterator[str]:
    """The text of each statement, without comments; of one with a body nothing that any other says."""
    for one in body:
        parts = one.body if isinstance(one, cst.SimpleStatementLine) else ()
        yield syntax.code(parts[0]).strip() if len(parts) == 1 else ""


def _asks(line: cst.SimpleStatementLine) -> bool:
    """``self.post_init()``, and as older releases have it."""
    asked = syntax.code(line.body[0]) if len(line.body) == 1 else ""
    return asked in ("self.post_init()", "self.init_weights()")


def _methods(node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    return {one.name.value: one for one in lines if isinstance(one, cst.FunctionDef)}


def _chain(classes: dict[str, cst.ClassDef], node: cst.ClassDef) -> tuple[list[cst.ClassDef], bool]:
    """A class and those of the file that it derives from; whether they lead to ``PreTrainedModel`` and nowhere else."""
    found, known = [node], True
    for base in node.bases:
        name = syntax.code(base.value)
        if name in classes and classes[name] is not node:
            more, leads = _chain(classes, classes[name])
            found += more
            known &= leads
        else:
            known &= name.rpartition(".")[2] in _KNOWN
    return found, known


def _method(chain: list[cst.ClassDef], name: str) -> cst.FunctionDef | None:
    return next((m for one in chain if (m := _methods(one).get(name)) is not None), None)


def _done(classes: dict[str, cst.ClassDef], node: cst.ClassDef) -> list[cst.BaseStatement] | None:
    """What ``post_init`` does for a class; None where that is not known."""
    chain, known = _chain(classes, node)
    if not known or any(_method(chain, name) is not None for name in _OWN):
        return None
    for other in classes.values():
        if other is not node and node in _chain(classes, other)[0]:
            if not OVERRIDES.isdisjoint(_methods(other)):
                return None
    lines = ["self.apply(self._init_weights)"]
    otherwise = [call for call in _built(chain) if not _drawn_alike(classes, chain, call)]
    if otherwise:
        if any(all(call is not value for _, value in _assigned(chain)) for call in otherwise):
            return None
        lines = [_OF_PARTS, "self._init_weights(self)"]
    tie = _methods(node).get("_tie_weights")
    output = _method(chain, "get_output_embeddings")
    has_head = output is None and any(name == "lm_head" for name, _ in _assigned(chain))
    if has_head and not any("lm_head.weight" in _class_text(one) for one in chain):
        return None  # newer releases tie it, older ones do not
    if output is not None or has_head:
        head = ".lm_head" if output is None else _given(output)
        embedding = _embedding(classes, node, 0)
        if head is None or (embedding is None and head != "None"):
            return None
        if head != "None":
            said = f"self{head}.weight = self{embedding}.weight"
            lines.append(f"if {_TIES}:\n    {said}")
    if tie is not None:
        text = "\n".join(_tied(classes, node, tie.body) or ())
        lines += [] if not text else [text]
    every = cst.parse_module("".join(f"{line}\n" for line in lines)).body
    return list(every)


def _class_text(node: cst.ClassDef) -> str:
    """The statement of a class that says which weights it ties."""
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    texts = (syntax.code(one) for one in lines if isinstance(one, cst.SimpleStatementLine))
    return "".join(text for text in texts if text.lstrip().startswith("_tied_weights_keys"))


def _built(chain: list[cst.ClassDef]) -> Iterator[cst.Call]:
    """The calls in the constructors of a class."""
    inits = (init for one in chain if (init := _methods(one).get("__init__")) is not None)
    return (node for init in inits for node in syntax.walk(init) if isinstance(node, cst.Call))


def _drawn_alike(
    classes: dict[str, cst.ClassDef], chain: list[cst.ClassDef], call: cst.Call
) -> bool:
    """Whether a call makes no model that draws its weights otherwise: transformers leaves those of a part to the part."""
    part = classes.get(syntax.code(call.func))
    if part is None:
        return True
    inner, known = _chain(classes, part)
    if "__init__" not in {name for one in inner for name in _methods(one)} or not known:
        return True
    if not any(syntax.code(b.value).rpartition(".")[2] == BASE for one in inner for b in one.bases):
        return True  # a module like others
    same = _method(inner, "_init_weights") is _method(chain, "_init_weights")
    config = syntax.code(call.args[0].value) if call.args else ""
    return same and config in ("config", "self.config")


def _given(method: cst.FunctionDef) -> str | None:
    """``.lm_head`` of a method that does nothing but ``return self.lm_head``; ``None`` as a text for ``return None``."""
    body = [one for one in method.body.body if not syntax.is_docstring(one)]
    line = body[0] if len(body) == 1 else None
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Return) or small.value is None:
        return None
    text = syntax.code(small.value)
    if text == "None":
        return text
    plain = text.startswith("self.") and text.replace(".", "").replace("_", "").isalnum()
    return text.removeprefix("self") if plain else None


def _assigned(chain: list[cst.ClassDef]) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The attributes that constructors set, and their values."""
    for one in chain:
        init = _methods(one).get("__init__")
        for node in syntax.walk(init) if init is not None else ():
            if isinstance(node, cst.Assign) and len(node.targets) == 1:
                target = node.targets[0].target
                if isinstance(target, cst.Attribute) and syntax.code(target.value) == "self":
                    yield target.attr.value, node.value


def _embedding(classes: dict[str, cst.ClassDef], node: cst.ClassDef, depth: int) -> str | None:
    """``.model.embed_tokens``: where the input embedding of a class is."""
    chain, known = _chain(classes, node)
    parts = dict(_assigned(chain))
    method = _method(chain, "get_input_embeddings")
    if depth > _MOST:
        return None
    if method is not None:
        path = _given(method)
        if path is not None:
            return None if path == "None" else path
        inner = _inner(method)
        return _within(classes, parts, inner, depth) if inner is not None else None
    if not known:
        return None
    if "embed_tokens" in parts:
        return ".embed_tokens"
    return _within(classes, parts, _prefix(chain), depth)


def _inner(method: cst.FunctionDef) -> str | None:
    """``model`` of ``return self.model.get_input_embeddings()``."""
    body = [one for one in method.body.body if not syntax.is_docstring(one)]
    text = syntax.code(body[0]).strip() if len(body) == 1 else ""
    begin, end = "return self.", ".get_input_embeddings()"
    name = text[len(begin) : -len(end)] if text.startswith(begin) and text.endswith(end) else ""
    return name if name.isidentifier() else None


def _prefix(chain: list[cst.ClassDef]) -> str:
    """``base_model_prefix`` of a class."""
    for one in chain:
        lines = one.body.body if isinstance(one.body, cst.IndentedBlock) else ()
        for line in lines:
            small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
            if isinstance(small, cst.Assign) and isinstance(small.value, cst.SimpleString):
                if syntax.code(small.targets[0].target) == "base_model_prefix":
                    return str(small.value.evaluated_value)
    return ""


def _within(
    classes: dict[str, cst.ClassDef],
    parts: dict[str, cst.BaseExpression],
    name: str,
    depth: int,
) -> str | None:
    made = parts.get(name)
    inner = classes.get(syntax.code(made.func)) if isinstance(made, cst.Call) else None
    path = _embedding(classes, inner, depth + 1) if inner is not None else None
    return f".{name}{path}" if path is not None else None
