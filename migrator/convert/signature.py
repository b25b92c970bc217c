"""Default arguments of rule functions and classes, read from their source, so that they need not be written."""

from __future__ import annotations

import ast

from rules.defaults import target_defaults
from rules.definitions import Rule, RuleFile, module_file


def target_signature(file: RuleFile, name: str) -> dict[str, str] | None:
    """Keyword → default as source, for a function or class of the rules; None for any other name."""
    while file.imports.get(name, ("", None))[0].startswith("rules.compat"):
        module, attribute = file.imports[name]
        file, name = module_file(module), attribute or name
    node = file.definitions.get(name)
    if isinstance(node, ast.ClassDef):
        return _constructor_signature(file, node)
    return _defaults(node.args) if isinstance(node, ast.FunctionDef) else None


def _constructor_signature(file: RuleFile, node: ast.ClassDef) -> dict[str, str] | None:
    inherited: dict[str, str] = {}
    for base in node.bases:
        text = ast.unparse(base)
        found = target_signature(file, text)
        if found is None:
            table = target_defaults(text).items()
            found = {n: v if v == "jnp.float32" else repr(v) for n, v in table}
        inherited |= found
    init = next(
        (s for s in node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None
    )
    if init is None:
        return inherited
    own = _defaults(init.args)
    return {**inherited, **own} if init.args.kwarg else own


def _defaults(args: ast.arguments) -> dict[str, str]:
    positional = [*args.posonlyargs, *args.args]
    pairs = list(
        zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
    )
    pairs += [
        (a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None
    ]
    return {a.arg: ast.unparse(d) for a, d in pairs}


_IGNORED = frozenset({"device", "dtype", "rngs"})


def plain_class(rule: Rule) -> str | None:
    """The compat class that takes a layer rule's arguments as they stand; None where the rule does more than pass."""
    statements = [s for s in rule.node.body if not isinstance(s, ast.Expr)]
    if len(statements) != 1 or not isinstance(statements[0], ast.Return):
        return None
    made = statements[0].value
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return None
    init = _constructor(rule.file, made.func.id)
    if init is None:
        return None
    passed = {ast.unparse(a): ast.unparse(a) for a in made.args}
    passed |= {k.arg: ast.unparse(k.value) for k in made.keywords if k.arg is not None}
    wanted = [p for p in rule.params if p.name not in _IGNORED]
    if any(passed.get(p.name) != p.name for p in wanted):
        return None
    defaults = _defaults(init)
    taken = [a.arg for a in (*init.posonlyargs, *init.args)][1:]
    positional = [p.name for p in wanted if p.mode == "positional"]
    same = all(
        defaults.get(p.name) == (None if p.default is None else ast.unparse(p.default))
        for p in wanted
    )
    return made.func.id if same and taken[: len(positional)] == positional else None


def never(rule: Rule) -> str:
    """Why a definition converts no call at all, in its own words; empty for those that do."""
    last = rule.node.body[-1]
    call = last.value if isinstance(last, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "unsupported":
        return ""
    return str(ast.literal_eval(call.args[0]))


def _constructor(file: RuleFile, name: str) -> ast.arguments | None:
    """The parameters of a compat class, its own or those of the first base that has them."""
    while file.imports.get(name, ("", None))[0].startswith("rules.compat"):
        module, attribute = file.imports[name]
        file, name = module_file(module), attribute or name
    node = file.definitions.get(name)
    if not isinstance(node, ast.ClassDef):
        return None
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return statement.args
    found = (_constructor(file, ast.unparse(base)) for base in node.bases)
    return next((args for args in found if args is not None), None)
