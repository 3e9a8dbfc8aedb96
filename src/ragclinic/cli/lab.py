"""`ragclinic lab`: lists the experiments, and runs one: claimed beside modelled, JSON and a plot."""

from pathlib import Path
from typing import Annotated

import typer

lab = typer.Typer(
    no_args_is_help=True, help="Reproducible experiments: what is claimed beside what the model says."
)


@lab.command("list")
def list_() -> None:
    """List the experiments.

    Example: `ragclinic lab list`
    """
    from ragclinic.lab.experiments import EXPERIMENTS

    for experiment in EXPERIMENTS:
        typer.echo(f"{experiment.id:14} {experiment.question}")


@lab.command("run")
def run(
    name: Annotated[str, typer.Argument(help="An experiment; see `ragclinic lab list`.")],
    out: Annotated[Path, typer.Option(help="The folder for the JSON and the plot.")] = Path("out/lab"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Run one experiment, print its table, and write NAME.json and NAME.svg.

    Example: `ragclinic lab run kv-growth --out out/lab`
    """
    from rich.console import Console
    from rich.table import Table

    from ragclinic.cli.files import write_text
    from ragclinic.lab.experiments import named_experiment
    from ragclinic.lab.render import number, to_json, to_svg

    experiment = named_experiment(name)
    outcome = experiment.run(seed)
    table = Table(title=experiment.question, title_justify="left")
    for heading in ("what", "claimed", "modelled", "measured", "", "why"):
        table.add_column(heading, overflow="fold")
    for claim in outcome.claims:
        values = (number(v, claim.unit) for v in (claim.claimed, claim.modelled, claim.measured))
        table.add_row(claim.what, *values, claim.verdict, claim.why)
    Console().print(table)
    write_text(out / f"{experiment.id}.json", to_json(experiment, outcome, seed))
    for plot in outcome.plots:
        write_text(out / f"{plot.id}.svg", to_svg(plot))
    typer.secho(f"written: {out / experiment.id}.json and .svg", err=True, dim=True)
