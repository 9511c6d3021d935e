"""The command line's application object, and what its commands share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from allocopt.base.errors import InvalidInstance
from allocopt.base.version import __version__
from allocopt.cli.shell.late_bars import read_with_progress
from allocopt.cli.shell.running import SCHEMA_VERSION
from allocopt.insight.instances.files import Instance, read_vector
from allocopt.model.bandit import LinearBandit
from allocopt.model.contexts import ContextualBandit

__all__ = ["File", "Json", "NoiseVariance", "Theta", "Verify", "app"]
__all__ += ["given_bandit", "given_contexts", "given_instance", "print_json"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Optimal allocations in linear bandits: computed, proven, used.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify/--no-verify",
        "--prove/--no-prove",
        show_default=False,
        help="Prove the interval from the numbers of the file (default), whatever their size, or leave it out.",
    ),
]
Theta = Annotated[str | None, typer.Option(help="θ as 1,0,-2 or a file of numbers; overrides the instance's.")]
NoiseVariance = Annotated[float | None, typer.Option(help="σ² of the rewards (default 1).")]
File = Annotated[Path, typer.Argument(help="Instance: .json, .npz, .csv, .parquet or .npy.", show_default=False)]


def given_instance(file: Path, theta: str | None) -> Instance:
    """The instance of a file, with the θ of ``--theta`` instead of its own θ or gaps where one is given."""
    instance = read_with_progress(file)
    return instance if theta is None else dataclasses.replace(instance, theta=read_vector("--theta", theta), gaps=None)


def given_bandit(instance: Instance, noise_variance: float | None, missing: str) -> LinearBandit:
    """The bandit of an instance, with the variance of ``--noise-variance``, else its own, else 1; ``missing`` is said without θ."""
    if instance.theta is None:
        raise InvalidInstance(missing)
    if instance.contexts is not None:
        raise InvalidInstance(
            "the file has contexts: `allocopt solve --program contextual` and `allocopt simulate` are for these"
        )
    noise = noise_variance if noise_variance is not None else instance.noise_variance
    return LinearBandit(instance.arms, instance.theta, 1.0 if noise is None else noise, labels=instance.labels)


def given_contexts(instance: Instance, noise_variance: float | None, missing: str) -> ContextualBandit:
    """The contextual bandit of an instance, likewise; arms without contexts are one context."""
    if instance.theta is None:
        raise InvalidInstance(missing)
    noise = noise_variance if noise_variance is not None else instance.noise_variance
    sizes = (len(instance.arms),) if instance.contexts is None else instance.contexts
    contexts = np.split(np.asarray(instance.arms), np.cumsum(sizes)[:-1])
    return ContextualBandit(
        contexts,
        instance.theta,
        instance.weights,
        1.0 if noise is None else noise,
        labels=instance.labels or (),
    )


def print_json(document: Mapping[str, Any]) -> None:
    """A document on standard output, with the version of its schema (docs/json.md); it must not hold infinities or nan."""
    typer.echo(json.dumps({"schema_version": SCHEMA_VERSION, **document}, indent=2, allow_nan=False))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"allocopt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
