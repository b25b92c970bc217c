"""The commands a user types: options in, exit status out, no logic."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

import click

import migrator
from migrator.findings import INTERNAL, UNREADABLE, Finding

F = TypeVar("F", bound=Callable[..., Any])

FOUND = 1
"""Findings, parts left to a person, or models that are not equal."""
FAILED = 2
"""The command could not do its work."""


def _usage(error: click.UsageError, command: str = "migrate") -> NoReturn:
    """Say in one line what is wrong with an option or argument, and where they are listed."""
    command = error.ctx.command_path if error.ctx is not None else command
    message = " ".join(error.format_message().split()).rstrip(".")
    _fail(f"{message} (try '{command} --help')")


class _Group(click.Group):
    """The program, whose errors of usage are one line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(FAILED)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _usage(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            _usage(error)


class _Command(click.Command):
    """A command whose errors are one line for the person who reads them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _usage(error, ctx.command_path)

    def invoke(self, ctx: click.Context) -> Any:
        from migrator.errors import UserError

        debug = ctx.params.get("debug", False)
        try:
            return super().invoke(ctx)
        except UserError as error:
            if debug:
                _trace()
            _fail(str(error))
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            _fail("interrupted", 130)
        except BrokenPipeError:
            sys.stderr.close()
            sys.exit(FAILED)
        except Exception as error:
            if debug:
                _trace()
                sys.exit(FAILED)
            text = " ".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            text = " ".join(text.split())
            _fail(f"internal error: {text} (--debug shows where; please report it)")


def _trace() -> None:
    import traceback

    traceback.print_exc()


def _fail(message: str, status: int = FAILED) -> NoReturn:
    click.echo(f"migrate: {message}", err=True)
    sys.exit(status)


def _common(function: F) -> F:
    """Options that every command has."""
    for option in (
        click.option("--debug", is_flag=True, help="Show the traceback of an error."),
        click.option("-q", "--quiet", is_flag=True, help="No progress and no summary."),
    ):
        function = option(function)
    return function


_format = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For a person or for a program.",
)


def _project(function: F) -> F:
    """Options of the commands that read many files."""
    for option in (
        click.option("--no-cache", is_flag=True, help="Work on every file anew."),
        click.option("-j", "--jobs", type=click.IntRange(1), help="Processes. [default: by cores]"),
        click.option(
            "--exclude",
            multiple=True,
            metavar="PATTERN",
            help="Leave out files, as in a .gitignore.",
        ),
        click.option(
            "--include", multiple=True, metavar="PATTERN", help="Only files such as 'models/'."
        ),
    ):
        function = option(function)
    return function


_paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")


def _status(findings: Sequence[Finding], found: bool) -> int:
    """The exit status of a run over files: 2 where one of them could not be worked on."""
    if any(finding.rule in (INTERNAL, UNREADABLE) for finding in findings):
        return FAILED
    return FOUND if found else 0


@click.group(
    "migrate",
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(migrator.__version__, prog_name="migrate")
def main() -> None:
    """Bring PyTorch code to TPU: analyze it, convert it to Flax NNX, verify that both agree."""
    # the interpreter looks for cycles in all there is before it ends, a second where rules and caches are large
    atexit.register(gc.freeze)


@main.command(cls=_Command)
@_paths
@_project
@_format
@_common
def analyze(
    paths: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    jobs: int | None,
    no_cache: bool,
    style: str,
    quiet: bool,
    debug: bool,
) -> None:
    """What stands in the way of TPU and JAX, where, and how much work is it?

    Status: 0 nothing found, 1 findings, 2 could not run.
    """
    from migrator.project import analyze_paths, default_cache
    from migrator.report import json, progress, text

    files, findings = analyze_paths(
        paths,
        progress.tracker(quiet),
        include=include,
        exclude=exclude,
        jobs=jobs,
        cache=None if no_cache else default_cache(),
        strict=debug,
    )
    if style == "json":
        click.echo(json.document("analyze", findings, files=[str(f.path) for f in files]))
    else:
        for line in text.findings_text(findings):
            click.echo(line)
        if not quiet:
            click.echo(text.summary(findings, len(files)))
    sys.exit(_status(findings, bool(findings)))


@main.command(cls=_Command)
@_paths
@click.option("-o", "--out", metavar="OUT", help="Directory, or NAME.py for a single file.")
@click.option("--force", is_flag=True, help="Overwrite outputs that were edited.")
@click.option("--diff", is_flag=True, help="Print the changes; write nothing.")
@click.option("--dry-run", is_flag=True, help="Report as usual; write nothing.")
@click.option(
    "--follow",
    multiple=True,
    metavar="PACKAGE",
    help="Convert what is imported of this installed library as well.",
)
@click.option(
    "--observe",
    multiple=True,
    metavar="CASE",
    help="Run this case of verify, or FILE[:CLASS], to see what cannot be inferred.",
)
@_project
@_format
@_common
def convert(
    paths: tuple[str, ...],
    out: str | None,
    force: bool,
    diff: bool,
    dry_run: bool,
    follow: tuple[str, ...],
    observe: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    jobs: int | None,
    no_cache: bool,
    style: str,
    quiet: bool,
    debug: bool,
) -> None:
    """The same code in Flax NNX, readable, as a person would have ported it.

    What cannot be converted stays as it is under a TODO(migrate) comment.
    Nothing of it is run, unless --observe names a case.
    Status: 0 all converted, 1 parts left and marked, 2 could not run.
    """
    from migrator.config import configured_output
    from migrator.project import convert_path, default_cache
    from migrator.report import json, progress, text

    if out is None and not (diff or dry_run):
        out = configured_output()
    if out is None and not (diff or dry_run):
        raise click.UsageError("say where the result goes with -o OUT, or look at it with --diff")
    writes = not (diff or dry_run)
    if observe:
        running = f"imports and runs your code, in a process of its own: {', '.join(observe)}"
        click.echo(f"migrate: --observe {running}", err=True)
    conversion = convert_path(
        paths,
        out if writes else None,
        force=force,
        track=progress.tracker(quiet),
        include=include,
        exclude=exclude,
        jobs=jobs,
        cache=None if no_cache else default_cache(),
        strict=debug,
        follow=follow,
        observe=observe,
    )
    if diff:
        click.echo("".join(conversion.diff()), nl=False)
    if style == "json":
        click.echo(json.document("convert", conversion.findings, **conversion.to_dict()))
    else:
        for line in text.findings_text(conversion.findings):
            click.echo(line, err=diff)
        if not quiet:
            click.echo(text.conversion_summary(conversion), err=diff)
    sys.exit(_status(conversion.findings, not conversion.complete))


@main.command(cls=_Command)
@click.argument("cases", nargs=-1, metavar="[CASE|FILE[:CLASS]]...")
@click.option("--config", type=click.Path(), help="pyproject.toml with the cases.")
@click.option("--torch", metavar="FILE:NAME", help="The torch class or factory, as CASE.")
@click.option("--jax", metavar="FILE:NAME", help="Its port; without it the file is converted.")
@click.option("--init", default="", metavar="ARGS", help="Constructor arguments: '32, heads=4'.")
@click.option("--input", "inputs", multiple=True, metavar="SPEC", help="'B,T,32', 'B,T:int64:0:9'.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=LOW:HIGH", help="Sizes to draw from.")
@click.option("--examples", type=click.IntRange(1), help="Runs for each model.")
@click.option("--seed", type=int, help="Draw other examples.")
@click.option("--budget", metavar="TIME", help="For each model: 60s, 5min.")
@click.option("--precision", type=click.Choice(["f32", "bf16", "f16"]), help="Of both sides.")
@click.option("--train-steps", type=click.IntRange(0), help="Train both sides that long as well.")
@click.option("--vmap", is_flag=True, default=None, help="Compare the port under vmap as well.")
@click.option("--second-order", is_flag=True, default=None, help="Second derivatives as well.")
@click.option("--health", is_flag=True, help="What the port does under jit besides computing.")
@click.option("--ulps", is_flag=True, help="How many ulps the numbers are off, as a histogram.")
@click.option("--memory", metavar="SIZE", help="For all models at work together: 4GiB.")
@click.option(
    "--platform",
    type=click.Choice(["cpu", "gpu", "tpu"]),
    help="Where the port runs. [default: cpu]",
)
@click.option("--emulate-tpu", is_flag=True, help="Show the error of a TPU's default precision.")
@click.option("--lower-for", default="", metavar="CHIPS", help="Compile for TPUs: v5e,v6e.")
@click.option("--mesh", metavar="AXES", help="On simulated devices: data=4,model=2.")
@click.option("-j", "--jobs", type=click.IntRange(1), default=1, help="Models at a time.")
@click.option(
    "--changed-since", metavar="REV", help="Only models that a change since then can affect."
)
@click.option("--junit", metavar="FILE", help="Write a JUnit XML report as well.")
@click.option("--html", metavar="FILE", help="Write a page with every layer's error as well.")
@click.option("--github", is_flag=True, help="Print annotations for GitHub Actions as well.")
@click.option("-v", "--verbose", is_flag=True, help="Every check, not just the verdict.")
@_format
@_common
def verify(
    cases: tuple[str, ...],
    config: str | None,
    torch: str | None,
    jax: str | None,
    init: str,
    inputs: tuple[str, ...],
    dims: tuple[str, ...],
    examples: int | None,
    seed: int | None,
    budget: str | None,
    precision: str | None,
    train_steps: int | None,
    vmap: bool | None,
    second_order: bool | None,
    health: bool,
    ulps: bool,
    memory: str | None,
    platform: str | None,
    emulate_tpu: bool,
    lower_for: str,
    mesh: str | None,
    jobs: int,
    changed_since: str | None,
    junit: str | None,
    html: str | None,
    github: bool,
    verbose: bool,
    style: str,
    quiet: bool,
    debug: bool,
) -> None:
    """Do both versions compute the same, on every input we can think of?

    Runs the cases of [[tool.migrate.case]] in pyproject.toml, or those named, or files: a file with a
    get_inputs() says itself what its model takes; for others --init and --input do.
    Imports and runs your code. Status: 0 equal, 1 not equal, 2 could not run.
    """
    from migrator.changed import affected
    from migrator.errors import UserError
    from migrator.quick import chips, seconds, selection, size
    from migrator.report import (
        json,
        progress,
        verification,
        verify_github,
        verify_html,
        verify_junit,
    )
    from migrator.supervising import verify_each
    from numerics.lowering import available

    compiled = chips(lower_for)
    if compiled and not available():
        raise UserError("--lower-for: libtpu is missing; pip install 'migrator[tpu]'")
    for report_file in filter(None, (junit, html)):
        verification.check_writable(report_file)
    chosen = selection(config, cases, torch, jax=jax, init=init, inputs=inputs, dims=dims)
    with chosen as (settings, names):
        if changed_since is not None:
            names = affected(settings, names, changed_since)
            if not names and style == "text" and not quiet:
                click.echo(
                    f"nothing to verify: no case is affected by what changed since {changed_since}"
                )
        reports = []
        options: dict[str, Any] = {"examples": examples, "seed": seed}
        options |= {"budget": budget and seconds(budget)}
        options |= {"layers": bool(html), "precision": precision, "train_steps": train_steps}
        options |= {"vmap": vmap, "second_order": second_order, "emulate_tpu": emulate_tpu}
        options |= {"mesh": mesh, "lower_for": compiled, "health": health, "ulps": ulps}
        options |= {"platform": platform, "memory": memory and size(memory) / jobs}
        with verify_each(settings, names, jobs, debug=debug, **options) as found:
            for _ in progress.tracker(quiet)(names, "verify"):
                reports.append(next(found))
                if style == "text":
                    for line in verification.lines(reports[-1], names, verbose):
                        click.echo(line)
    if style == "json":
        click.echo(json.document("verify", (), cases=[report.to_dict() for report in reports]))
    elif len(reports) > 1 and not quiet:
        click.echo(verification.summary(reports))
    if junit is not None:
        verification.write(junit, verify_junit.render(reports))
    if html is not None:
        verification.write(html, verify_html.render(reports))
    if github:
        click.echo(verify_github.render(reports, settings), nl=False)
    for message in verification.errors(reports):
        click.echo(f"migrate: {message}", err=True)
    sys.exit(verification.status(reports))


@main.command(cls=_Command)
@click.argument("file", metavar="MODEL.pt|MODEL.safetensors")
@click.option("--module", required=True, metavar="FILE:CLASS", help="The converted class.")
@click.option("--init", default="", metavar="ARGS", help="Constructor arguments: '32, heads=4'.")
@click.option("-o", "--out", required=True, metavar="DIR", help="Where the checkpoint goes.")
@click.option("--key", help="Entry of the file that holds the state_dict: 'model'.")
@click.option("--force", is_flag=True, help="Replace an existing checkpoint.")
@_common
def weights(
    file: str,
    module: str,
    init: str,
    out: str,
    key: str | None,
    force: bool,
    quiet: bool,
    debug: bool,
) -> None:
    """A torch checkpoint as an Orbax checkpoint of the converted module, a tensor at a time.

    Imports the converted file. Status: 0 written, 2 could not run.
    """
    from migrator.quick import convert_weights
    from migrator.report import progress

    with progress.counter("weights", quiet) as advance:
        number = convert_weights(file, module, init, out, key=key, force=force, progress=advance)
    if not quiet:
        click.echo(f"{number} arrays written to {out}")
