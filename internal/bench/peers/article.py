"""The function of the article on a racing refund, as it describes it: a connection for each call, BEGIN
IMMEDIATE, the conditional claim, the refund and the balance, commit. 16 threads, each job failed once.

usage: article.py FILE JOBS        prints settlements per second
"""

import os
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor

TABLES = """
CREATE TABLE accounts (owner TEXT PRIMARY KEY, balance INTEGER NOT NULL CHECK (balance >= 0));
CREATE TABLE work (
  id TEXT PRIMARY KEY, owner TEXT NOT NULL, paid INTEGER NOT NULL CHECK (paid > 0),
  state TEXT NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed')));
CREATE TABLE returns (key TEXT PRIMARY KEY, owner TEXT NOT NULL, amount INTEGER NOT NULL);
"""


def end_work(path, work, state):
    """Claims the one end of a piece of work and pays a failed one back. True for the call that won."""
    db = sqlite3.connect(path, timeout=10, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
        claimed = db.execute(
            "UPDATE work SET state = ? WHERE id = ? AND state IN ('pending', 'processing') RETURNING owner, paid",
            (state, work)).fetchone()
        if claimed and state == "failed":
            owner, paid = claimed
            db.execute("INSERT INTO returns VALUES (?, ?, ?)", ("job-refund:" + work, owner, paid))
            if db.execute("UPDATE accounts SET balance = balance + ? WHERE owner = ?",
                          (paid, owner)).rowcount != 1:
                raise LookupError("no account of " + owner)
        db.commit()
        return bool(claimed)
    except BaseException:
        db.rollback()
        raise
    finally:
        db.close()


def main():
    path, jobs = sys.argv[1], int(sys.argv[2])
    if os.path.exists(path):
        os.remove(path)
    with sqlite3.connect(path) as db:
        db.executescript(TABLES)
        db.executemany("INSERT INTO accounts VALUES (?, 0)", [(f"owner-{o}",) for o in range(100)])
        db.executemany("INSERT INTO work VALUES (?, ?, 7, 'processing')",
                       [(f"job-{j}", f"owner-{j % 100}") for j in range(jobs)])
    began = time.monotonic()
    with ThreadPoolExecutor(max_workers=16) as pool:
        won = sum(pool.map(lambda j: end_work(path, f"job-{j}", "failed"), range(jobs)))
    took = time.monotonic() - began
    if won != jobs:
        sys.exit(f"{won} of {jobs} were won")
    print(f"{jobs / took:.1f}")


if __name__ == "__main__":
    main()
