"""Claims sessions of a PostgreSQL store for indexing, and holds them until it is killed.

Usage: index_claimer.py CONNECTION UID...

With `half` before the uids it also begins a merge, and leaves it half done. It says `held` when it has begun.
"""

import sys
import time
from itertools import islice

from sidecar.store.indexing import jobs
from sidecar.store.indexing.jobs import IndexJobs
from sidecar.store.postgres.connection import checked_conninfo, connect
from sidecar.store.postgres.index_tables import IndexTables
from sidecar.store.search import plain_text


def leave_half_done(tables: IndexTables, uid: int) -> None:
    """Write some blocks of a merged segment that is never revealed."""
    jobs.CHUNK, jobs.LEVELS, jobs.WRITE_BYTES = 4, ((8192, 2),), 1
    work = IndexJobs(tables, plain_text)
    for _ in range(2):
        for _ in work.build(uid):
            pass
    for _ in islice(work.merge(uid), 4):
        pass
    assert tables.leftovers(uid), "the merge has not begun"


def main() -> None:
    """Claim and hold."""
    tables = IndexTables(connect(checked_conninfo(sys.argv[1])))
    half = sys.argv[2] == "half"
    for uid in map(int, sys.argv[3 if half else 2 :]):
        assert tables.claim(uid)
        if half:
            leave_half_done(tables, uid)
    print("held", flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main()
