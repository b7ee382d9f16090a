"""`context-sidecar conformance store`: checks a session store."""

from __future__ import annotations

import click

from sidecar.cli.conformance.reporting import Reporting, reporting_options
from sidecar.cli.failures import CommandFailed
from sidecar.conformance.loading import SubjectNotFound, load
from sidecar.conformance.running import run, run_suite
from sidecar.conformance.store import CAPABILITIES, SUITE, declared_by, providing

_CAPABILITIES = "\n".join(f"  {name:8} {meaning}" for name, meaning in CAPABILITIES.items())


@click.command(
    "store",
    help="Check a session store, each time on a fresh place that FACTORY makes.\n\n"
    "A place has two methods: store(extract) makes a store on its data, remove() erases the data. "
    "sidecar.conformance.store.places has those of our own stores, such as "
    "sidecar.conformance.store.places:SQLitePlace.\n\n"
    f"A store declares what it offers, in the attribute `capabilities` of FACTORY or by --declare:\n\n\b\n"
    f"{_CAPABILITIES}",
)
@click.argument("factory", metavar="MODULE:FACTORY", required=False)
@click.option(
    "--declare",
    multiple=True,
    metavar="CAPABILITY",
    help="What the store offers, in place of what FACTORY declares; repeatable.",
)
@reporting_options
def command(reporting: Reporting, factory: str | None, declare: tuple[str, ...]) -> int:
    """Check a session store."""
    if reporting.list_only:
        return reporting.list_checks(SUITE)
    if factory is None:
        raise click.UsageError("Missing argument 'MODULE:FACTORY'.")
    try:
        make_place = load(factory)
        declared = declare or declared_by(make_place)
        report = run(
            run_suite(
                SUITE,
                providing(make_place),
                subject=factory,
                declared=declared,
                patterns=reporting.patterns,
                told=reporting.told,
            )
        )
    except (SubjectNotFound, ValueError) as error:
        raise CommandFailed(str(error)) from error
    return reporting.finish(report)
