"""A credit ledger that holds. Try it: jobledger lab check -- python3 ledger_correct.py"""
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

def notify(job, outcome):
    claimed = db.execute("UPDATE jobs SET status = ? WHERE job = ? AND status = 'open' "
                         "RETURNING owner, cost, held", (outcome, job)).fetchall()
    if not claimed:  # another report was first, or there is no such job
        ended = db.execute("SELECT status FROM jobs WHERE job = ?", (job,)).fetchone()
        return "lost " + ended[0] if ended else "refused no such job"
    owner, cost, held = claimed[0]
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
