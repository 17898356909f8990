"""The command line: ``workbench VERB``, one file a verb."""

import errno
import io
import sys
import traceback
from typing import NoReturn

import typer

from workbench.cli import analyze, compare, convert, demo, doctor, gate, lab, report, tune
from workbench.errors import WorkbenchError
from workbench.version import version

app = typer.Typer(
    name="workbench",
    help="See where the time of a PyTorch training step goes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command()(analyze.analyze)
app.command()(report.report)
app.command()(compare.compare)
app.command()(gate.gate)
app.command()(tune.tune)
app.command()(convert.convert)
app.command()(demo.demo)
app.command()(lab.lab)
app.command()(doctor.doctor)

CANNOT_READ = 2
INTERRUPTED = 130
REFUSED = (errno.ENAMETOOLONG, errno.EACCES, errno.EPERM, errno.EROFS)
"""Why the system refuses a path that a person gave."""
SHOWN = 200


@app.callback(invoke_without_command=True)
def _root(
    show_version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if show_version:
        typer.echo(version())
        raise typer.Exit


def main() -> None:
    """Run the command line; an error of ours is one line on stderr and exit code 2."""
    _write_any_character()
    try:
        app(standalone_mode=True)
    except WorkbenchError as error:
        typer.echo(f"workbench: {error}", err=True)
        sys.exit(CANNOT_READ)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(CANNOT_READ)
    except OSError as error:
        if error.errno in REFUSED and error.filename is not None:
            shown = str(error.filename)
            shown = shown if len(shown) < SHOWN else shown[:60] + "…"
            typer.echo(f"workbench: cannot use {shown}: {error.strerror}.", err=True)
            sys.exit(CANNOT_READ)
        if error.errno != errno.ENOSPC:
            _say_fault()
        typer.echo("workbench: the disk is full: free some space.", err=True)
        sys.exit(CANNOT_READ)
    except KeyboardInterrupt:
        typer.echo("workbench: interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except Exception:  # noqa: BLE001 - a fault of ours must not exit with 1, which means findings
        _say_fault()


def _say_fault() -> NoReturn:
    traceback.print_exc()
    typer.echo("workbench: this is a fault of workbench itself; please report it.", err=True)
    sys.exit(CANNOT_READ)


def _write_any_character() -> None:
    """Show what the encoding of a terminal or pipe lacks as ``?`` instead of ending there."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
