/* The limit: the same statements over the same tables, against the system's SQLite, by one thread that does
 * nothing else. It leaves out what a statement does not need: no hash is computed, no JSON encoded, nobody
 * waits for an answer.
 *
 *   limit prepare FILE SCHEMA JOBS     makes a ledger with open jobs of 100 owners
 *   limit settle FILE STATEMENTS JOBS BATCH   settles them and prints how many per second
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OWNERS = 100, STATEMENTS = 10, COST = 7 };
static const sqlite3_int64 at = 1893456000000000; /* 2030-01-01 */
static sqlite3 *db;

static void fail(const char *what) {
    fprintf(stderr, "limit: %s: %s\n", what, db ? sqlite3_errmsg(db) : "");
    exit(1);
}

/* SQLite had no octet_length before 3.43, and the tables' checks use it. */
static void octets(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    if (sqlite3_value_type(v[0]) == SQLITE_NULL) return;
    sqlite3_result_int(c, sqlite3_value_bytes(v[0]));
}

static void run(const char *sql) {
    if (sqlite3_exec(db, sql, 0, 0, 0) != SQLITE_OK) fail(sql);
}

static char *text(const char *path) {
    FILE *f = fopen(path, "rb");
    if (!f) fail(path);
    char *all = calloc(1, 1 << 20);
    if (fread(all, 1, (1 << 20) - 1, f) == 0) fail(path);
    fclose(f);
    return all;
}

static void attach(const char *path) {
    if (sqlite3_open(path, &db) != SQLITE_OK) fail(path);
    sqlite3_create_function(db, "octet_length", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, 0,
                            octets, 0, 0);
    run("PRAGMA journal_mode = WAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -32768;"
        "PRAGMA wal_autocheckpoint = 8000; PRAGMA synchronous = FULL; PRAGMA trusted_schema = 0;"
        "PRAGMA cell_size_check = 1; PRAGMA temp_store = 2");
}

static void prepare(const char *path, const char *schema, int jobs) {
    char sql[4096];
    remove(path);
    attach(path);
    run("BEGIN");
    run(text(schema));
    run("INSERT INTO schema_migrations VALUES (1, 'ledger', '', 0)");
    snprintf(sql, sizeof sql,
             "CREATE TEMP TABLE n AS WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "
             "SELECT i, 'owner-' || (i %% %d) AS owner, 'job-' || i AS job FROM c;"
             "INSERT INTO balances SELECT owner, 0, %d * COUNT(*), 0, 0, COUNT(*) + 1, zeroblob(32) FROM n GROUP BY owner;"
             "INSERT INTO jobs (id, owner, cost, mode, status, attempt, submission, reason, metadata, created_at,"
             " updated_at) SELECT job, owner, %d, 'hold', 'pending', 0, 'none', '', '{}', 1, 1 FROM n;",
             jobs - 1, OWNERS, COST, COST);
    run(sql);
    run("INSERT INTO entries SELECT 'grant-' || owner, 'grant:' || owner, owner, 1, 'grant', held, NULL, held, 0, 0,"
        " 0, '', '{}', 1, 1, zeroblob(32) FROM balances;"
        "INSERT INTO lots SELECT 'lot-' || owner, owner, 'grant-' || owner, 0, held, 0, 0, held, 0, NULL, NULL"
        " FROM balances;"
        "INSERT INTO postings SELECT 'grant-' || owner, 'lot-' || owner, held FROM balances;");
    snprintf(sql, sizeof sql,
             "INSERT INTO entries SELECT printf('019b0000-%%09d', i), 'job-hold:' || job, owner, 2 + i / %d, 'hold', %d,"
             " job, 0, %d, 0, 0, '', '{}', 1, 1, zeroblob(32) FROM n;"
             "INSERT INTO postings SELECT printf('019b0000-%%09d', i), 'lot-' || owner, %d FROM n;",
             OWNERS, COST, COST, COST);
    run(sql);
    run("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
}

static sqlite3_stmt *s[STATEMENTS];

static void bindText(int k, int i, const char *v) {
    sqlite3_bind_text(s[k], i, v, -1, SQLITE_TRANSIENT);
}

static void step(int k, int want) {
    int got = sqlite3_step(s[k]);
    if (got != want) fail(sqlite3_sql(s[k]));
}

static void done(int k) {
    if (sqlite3_reset(s[k]) != SQLITE_OK) fail(sqlite3_sql(s[k]));
}

static void settle(int n) {
    static const unsigned char hash[32] = {1};
    char job[32], entry[64], owner[64], lot[64];
    const char *outcome = n % 2 ? "failed" : "completed", *kind = n % 2 ? "release" : "consume";
    snprintf(job, sizeof job, "job-%d", n);
    snprintf(entry, sizeof entry, "019c0000-0000-7000-8000-%012d", n);

    bindText(1, 1, outcome);
    sqlite3_bind_int64(s[1], 2, at);
    bindText(1, 3, job);
    step(1, SQLITE_ROW);
    snprintf(owner, sizeof owner, "%s", (const char *)sqlite3_column_text(s[1], 0));
    step(1, SQLITE_DONE);
    done(1);

    bindText(2, 1, owner);
    sqlite3_bind_int64(s[2], 2, at);
    step(2, SQLITE_ROW);
    sqlite3_int64 available = sqlite3_column_int64(s[2], 1), held = sqlite3_column_int64(s[2], 2);
    sqlite3_int64 used = sqlite3_column_int64(s[2], 3), expired = sqlite3_column_int64(s[2], 4);
    sqlite3_int64 seq = sqlite3_column_int64(s[2], 5);
    done(2);

    bindText(3, 1, job);
    step(3, SQLITE_ROW);
    snprintf(lot, sizeof lot, "%s", (const char *)sqlite3_column_text(s[3], 0));
    sqlite3_int64 amount = sqlite3_column_int64(s[3], 1);
    done(3);

    sqlite3_int64 back = n % 2 ? amount : 0, kept = amount - back;
    bindText(4, 1, entry);
    bindText(4, 2, kind);
    bindText(4, 3, job);
    bindText(4, 4, owner);
    sqlite3_int64 numbers[] = {seq + 1, amount, available + back, held - amount, used + kept, expired, at};
    for (int i = 0; i < 7; i++) sqlite3_bind_int64(s[4], 5 + i, numbers[i]);
    sqlite3_bind_blob(s[4], 12, hash, sizeof hash, SQLITE_STATIC);
    step(4, SQLITE_DONE);
    done(4);

    sqlite3_int64 change[] = {back, -amount, kept};
    for (int i = 0; i < 3; i++) {
        sqlite3_bind_int64(s[5], 1 + i, change[i]);
        sqlite3_bind_int64(s[7], 1 + i, change[i]);
    }
    bindText(5, 4, lot);
    bindText(5, 5, owner);
    step(5, SQLITE_DONE);
    done(5);
    if (sqlite3_changes(db) != 1) fail("the lot");

    bindText(6, 1, entry);
    bindText(6, 2, lot);
    sqlite3_bind_int64(s[6], 3, amount);
    step(6, SQLITE_DONE);
    done(6);

    sqlite3_bind_blob(s[7], 4, hash, sizeof hash, SQLITE_STATIC);
    bindText(7, 5, owner);
    sqlite3_bind_int64(s[7], 6, seq);
    step(7, SQLITE_DONE);
    done(7);
    if (sqlite3_changes(db) != 1) fail("the balance");

    bindText(8, 1, job);
    bindText(8, 2, outcome);
    bindText(8, 3, owner);
    sqlite3_bind_int64(s[8], 4, at);
    step(8, SQLITE_DONE);
    done(8);

    bindText(9, 1, job);
    bindText(9, 2, outcome);
    sqlite3_bind_int64(s[9], 3, at);
    step(9, SQLITE_DONE);
    done(9);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "prepare")) {
        prepare(argv[2], argv[3], atoi(argv[4]));
        return 0;
    }
    if (argc != 6 || strcmp(argv[1], "settle")) fail("see the source for its arguments");
    attach(argv[2]);
    int jobs = atoi(argv[4]), batch = atoi(argv[5]), k = 0;
    for (char *from = text(argv[3]), *end; k < STATEMENTS; from = end + 4) {
        end = strstr(from, "\n--\n");
        if (end) *end = 0;
        if (sqlite3_prepare_v3(db, from, -1, SQLITE_PREPARE_PERSISTENT, &s[k++], 0) != SQLITE_OK) fail(from);
        if (!end) break;
    }
    if (k != STATEMENTS) fail("too few statements");
    sqlite3_stmt *around[4];
    const char *words[] = {"BEGIN IMMEDIATE", "SAVEPOINT operation", "RELEASE operation", "COMMIT"};
    for (int i = 0; i < 4; i++)
        if (sqlite3_prepare_v3(db, words[i], -1, SQLITE_PREPARE_PERSISTENT, &around[i], 0) != SQLITE_OK) fail(words[i]);
    double began = now();
    for (int n = 0; n < jobs;) {
        sqlite3_step(around[0]), sqlite3_reset(around[0]);
        step(0, SQLITE_ROW), done(0);
        for (int i = 0; i < batch && n < jobs; i++, n++) {
            sqlite3_step(around[1]), sqlite3_reset(around[1]);
            settle(n);
            sqlite3_step(around[2]), sqlite3_reset(around[2]);
        }
        if (sqlite3_step(around[3]) != SQLITE_DONE) fail("COMMIT");
        sqlite3_reset(around[3]);
    }
    printf("%.1f\n", jobs / (now() - began));
    return 0;
}
