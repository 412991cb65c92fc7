"""Measures jobledger beside what people would use instead, on this machine, in one run: five rounds, in each of
which everybody has a turn, and the medians over the rounds. Prints a table of what is wanted and what is.

usage: peers.py FOLDER [--rounds N] [--json FILE]
FOLDER has the binaries that scripts/peers.sh builds, and takes the databases. --json keeps every figure.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "..", "schema.sql")
STATEMENTS = os.path.join(HERE, "settlement.sql")
JOBS = {"jobledger": 3000, "limit": 3000, "postgres": 1600, "mattn": 600, "article": 150, "one": 3000}


def output(*words, **more):
    done = subprocess.run([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout


class Postgres:
    """A throw-away cluster that answers on a socket of its own, as durable as it is by default."""

    def __init__(self, folder):
        self.folder = tempfile.mkdtemp(prefix="peers-postgres-", dir=folder)
        found = shutil.which("initdb") or ""
        bins = [os.path.dirname(found)] if found else sorted(
            os.path.join("/usr/lib/postgresql", v, "bin") for v in os.listdir("/usr/lib/postgresql"))
        self.bin = bins[-1]
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
            os.chmod(folder, 0o711)
            self.refuse_closed(os.path.dirname(os.path.abspath(folder)))
        self.run("initdb", "-A", "trust", "-U", "postgres", "-D", self.data(), "--locale=C", "-E", "UTF8")
        self.run("pg_ctl", "-w", "-D", self.data(), "-l", self.folder + "/log", "-o",
                 f"-c listen_addresses= -k {self.folder} -c fsync=on -c synchronous_commit=on "
                 "-c max_connections=120 -c shared_buffers=128MB", "start")
        self.url = f"postgres://postgres@/postgres?host={self.folder}"

    def refuse_closed(self, folder):
        """Ends the program if the server cannot get at what is in a folder; somebody else's stay as they are."""
        if subprocess.run(["runuser", "-u", "postgres", "--", "test", "-x", folder + "/."], cwd="/").returncode != 0:
            sys.exit(f"peers: {folder} is closed to the user postgres: let PEERS_FOLDER name another")

    def data(self):
        return self.folder + "/data"

    def run(self, program, *args):
        as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        return output(*as_owner, os.path.join(self.bin, program), *args, cwd="/")

    def prepare(self, binary, jobs):
        sql = ["-q", "-v", "ON_ERROR_STOP=1", self.url]
        output("psql", *sql, "-c", "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        output(binary, "--db", self.url, "init")
        output("psql", *sql, "-v", f"jobs={jobs}", "-f", os.path.join(HERE, "postgres.sql"))
        output("psql", *sql, "-c", "VACUUM ANALYZE")
        output("psql", *sql, "-c", "CHECKPOINT")

    def settle(self, jobs):
        script = self.folder + "/settle.sql"
        with open(script, "w") as f:
            f.write("SELECT settle(nextval('next_job'));\n")
        out = output("pgbench", "-n", "-c", 64, "-j", 2, "-t", jobs // 64, "-M", "prepared", "-f", script, self.url)
        won = output("psql", "-At", self.url, "-c", "SELECT COUNT(*) FROM reports").strip()
        if int(won) != jobs // 64 * 64:
            sys.exit(f"postgres: {won} settlements of {jobs}")
        return next(float(line.split()[2]) for line in out.splitlines() if line.startswith("tps"))

    def stop(self):
        self.run("pg_ctl", "-D", self.data(), "-m", "immediate", "stop")
        shutil.rmtree(self.folder)


def bench(binary, *flags):
    report = json.loads(output(binary, "bench", "--json", *flags))
    return report, report["runs"][0]


def timed(*words):
    began = time.monotonic()
    output(*words)
    return time.monotonic() - began


def turns(folder, postgres):
    """One turn of everybody: yields a name and a figure."""
    binary, limit = folder + "/jobledger", folder + "/limit"
    report, run = bench(binary, "--workers", 64, "--jobs", JOBS["jobledger"])
    yield "jobledger", run["settles_per_second"]
    yield "idle", report["idle_rss_bytes"] / 2**20
    yield "memory", run["rss_bytes"] / 2**20
    file = folder + "/peer.db"
    output(limit, "prepare", file, SCHEMA, JOBS["limit"])
    yield "limit", float(output(limit, "settle", file, STATEMENTS, JOBS["limit"], 64))
    if postgres:
        postgres.prepare(binary, JOBS["postgres"])
        yield "postgres", postgres.settle(JOBS["postgres"])
    _, spread = bench(binary, "--processes", 4, "--workers", 16, "--jobs", JOBS["jobledger"])
    yield "processes", spread["settles_per_second"]
    yield "longest", spread["max_micros"] / spread["p50_micros"]
    output(limit, "prepare", file, SCHEMA, JOBS["mattn"] + 1)
    out = output(folder + "/mattn.test", "-test.run", "^$", "-test.bench", ".", "-test.benchtime",
                 f"{JOBS['mattn']}x", cwd=HERE, env=dict(os.environ, PEERS_FILE=file))
    words = out.split()
    yield "mattn", float(words[words.index("settles/s") - 1])
    report, run = bench(binary, "--workers", 1, "--jobs", JOBS["one"])
    yield "one", run["p50_micros"]
    yield "bound", 2 * report["fdatasync_micros"] + 200
    yield "fdatasync", report["fdatasync_micros"]
    yield "article", float(output(sys.executable, HERE + "/article.py", folder + "/article.db", JOBS["article"]))
    yield "race", timed(binary, "race")
    yield "version", timed(binary, "version")


def table(figures):
    """Rows of what, wanted, measured and the verdict. Ratios are medians of each round's own ratio."""

    def middle(name):
        return statistics.median(figures[name])

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(figures[a], figures[b]))

    yield "64 callers : the article's function, 16 threads", 20, ratio("jobledger", "article"), "at least", "x"
    if figures.get("postgres"):
        yield "64 callers : PostgreSQL, one stored function", 3, ratio("jobledger", "postgres"), "at least", "x"
    yield "64 callers : the same statements in C", 0.8, ratio("jobledger", "limit"), "at least", "x"
    yield "64 callers : go-sqlite3, a transaction each", None, ratio("jobledger", "mattn"), "", "x"
    yield "one caller, median : 2 fdatasync + 200 us", 1, ratio("one", "bound"), "at most", "x"
    yield "4 processes with 16 : one process with 64", 0.6, ratio("processes", "jobledger"), "at least", "x"
    yield "4 processes with 16, longest wait : median", 40, middle("longest"), "at most", "x"
    yield "memory with nothing done", 40, middle("idle"), "at most", "MB"
    yield "memory with 64 callers", 120, middle("memory"), "at most", "MB"
    yield "race", 0.5, middle("race"), "at most", "s"
    yield "version", 30, middle("version") * 1000, "at most", "ms"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json")
    a = arguments.parse_args()
    postgres, figures = Postgres(a.folder), {}
    try:
        for n in range(a.rounds):
            for name, figure in turns(a.folder, postgres):
                figures.setdefault(name, []).append(figure)
            print(f"round {n + 1} of {a.rounds} is done", file=sys.stderr)
    finally:
        postgres.stop()
    if a.json:
        with open(a.json, "w") as f:
            json.dump(figures, f, indent=1)
    print("settlements per second, medians:")
    for name in ("jobledger", "limit", "postgres", "mattn", "article", "processes"):
        print(f"  {name:<10} {statistics.median(figures[name]):10.0f}")
    print(f"  one fdatasync {statistics.median(figures['fdatasync']):.0f} us, "
          f"one caller's median {statistics.median(figures['one']):.0f} us\n")
    print(f"{'WHAT':<50} {'WANTED':>14} {'MEASURED':>10}  VERDICT")
    missed = 0
    for what, wanted, measured, sense, unit in table(figures):
        held = wanted is None or (measured >= wanted if sense == "at least" else measured <= wanted)
        missed += not held
        bound = "" if wanted is None else f"{sense} {wanted:g} {unit}"
        verdict = "-" if wanted is None else "holds" if held else "MISSED"
        print(f"{what:<50} {bound:>14} {measured:>7.2f} {unit:<2}  {verdict}")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
