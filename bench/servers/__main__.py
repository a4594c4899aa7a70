"""``python -m bench.servers``: the same requests to vLLM with constrain, XGrammar and guidance, in turn."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import click

from bench.servers.asking import Answer, ask_all
from bench.servers.model import write_model
from bench.servers.requests import Request, maskbench_requests, small_requests
from bench.servers.server import TOOL_OPTIONS, vllm_server

SETTINGS: dict[str, tuple[list[str], dict[str, str]]] = {
    "constrain": ([], {"CONSTRAIN_VLLM": "1"}),
    "xgrammar": (["--structured-outputs-config.backend", "xgrammar"], {"CONSTRAIN_VLLM": "0"}),
    "guidance": (["--structured-outputs-config.backend", "guidance"], {"CONSTRAIN_VLLM": "0"}),
}
"""The options and the environment with which vLLM is started."""


def row(name: str, answers: list[Answer], seconds: float) -> str:
    """A line of the table."""
    answered = [answer for answer in answers if not answer.error]
    complete = sum(answer.is_complete for answer in answers)
    valid = sum(not answer.faults() for answer in answers)
    first = [answer.first for answer in answered if answer.first is not None]
    speed = sum(answer.tokens for answer in answered) / seconds
    typical, slow = (statistics.median(first), max(first)) if first else (float("nan"), float("nan"))
    return (
        f"| {name} | {len(answers)} | {len(answers) - len(answered)} | {complete} | {valid} | {speed:.0f} "
        f"| {1000 * typical:.0f} | {1000 * slow:.0f} |"
    )


HEAD = (
    "| back end | requests | refused | complete | valid | tokens a second | first token, median ms | slowest |\n"
    "|---|---|---|---|---|---|---|---|"
)


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), envvar="CONSTRAIN_TEST_DATA", required=True)
@click.option("--count", default=88, show_default=True, help="Schemas of MaskBench; 15 other requests are added.")
@click.option("--at-once", default=16, show_default=True, help="Requests at a time.")
@click.option("--backend", "names", multiple=True, type=click.Choice(list(SETTINGS)), help="Only these.")
@click.option("--faults", is_flag=True, help="Print what is wrong with each answer.")
def main(data: Path, count: int, at_once: int, names: tuple[str, ...], faults: bool) -> None:
    """Ask the same requests of vLLM with each back end, and print a table."""
    requests: list[Request] = [*small_requests(), *maskbench_requests(data, count)]
    click.echo(HEAD)
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder), data)
        for name in names or SETTINGS:
            options, environment = SETTINGS[name]
            log = Path(folder) / f"{name}.log"
            with vllm_server(model, log, options=[*TOOL_OPTIONS, *options], environment=environment) as address:
                # What is made once in a server's life is not a request's time.
                ask_all(address, requests[:2], at_once=1)
                begin = time.perf_counter()
                answers = ask_all(address, requests, at_once=at_once)
                click.echo(row(name, answers, time.perf_counter() - begin))
            if faults:
                for answer in answers:
                    for fault in answer.faults():
                        click.echo(f"  {answer.request.name}: {answer.finished} {fault[:200]}")


if __name__ == "__main__":
    main()
