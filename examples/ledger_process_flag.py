"""BROKEN: it looks whether a job is open, and then ends it. Its flag guards one process, there are several."""
import os, sqlite3, sys

db = sqlite3.connect(os.environ["LAB_DIR"] + "/ledger.db", timeout=30, isolation_level="IMMEDIATE")
db.executescript("""
    CREATE TABLE IF NOT EXISTS owners (owner PRIMARY KEY, available CHECK (available >= 0), held CHECK (held >= 0));
    CREATE TABLE IF NOT EXISTS jobs (job PRIMARY KEY, owner, cost, held, status);
""")

def hello():
    return "ok charge hold canceled"

def grant(owner, amount, key):
    db.execute("INSERT INTO owners VALUES (?, 0, 0) ON CONFLICT DO NOTHING", (owner,))
    db.execute("UPDATE owners SET available = available + ? WHERE owner = ?", (int(amount), owner))
    return "ok"

def create(job, owner, cost, mode):
    cost, held = int(cost), int(cost) if mode == "hold" else 0
    paid = db.execute("UPDATE owners SET available = available - ?, held = held + ? "
                      "WHERE owner = ? AND available >= ?", (cost, held, owner, cost))
    if paid.rowcount == 0:
        return "refused too few credits"
    db.execute("INSERT INTO jobs VALUES (?, ?, ?, ?, 'open')", (job, owner, cost, held))
    return "ok"

settling = set()

def notify(job, outcome):
    found = db.execute("SELECT owner, cost, held, status FROM jobs WHERE job = ?", (job,)).fetchone()
    if not found:
        return "refused no such job"
    owner, cost, held, status = found
    if status != "open" or job in settling:  # the fault: what this process knows may be over by now
        return "lost " + status
    settling.add(job)
    db.execute("UPDATE jobs SET status = ? WHERE job = ?", (outcome, job))
    returned = 0 if outcome == "completed" else cost
    db.execute("UPDATE owners SET available = available + ?, held = held - ? WHERE owner = ?", (returned, held, owner))
    return "won " + outcome

def balance(owner):
    return "ok %d %d" % db.execute("SELECT available, held FROM owners WHERE owner = ?", (owner,)).fetchone()

for line in sys.stdin:
    request, *words = line.split()
    try:
        with db:  # one request, one transaction: from its first write on, committed or rolled back
            answer = globals()[request](*words)
    except sqlite3.Error as problem:
        answer = "refused %s" % problem
    print(answer, flush=True)
