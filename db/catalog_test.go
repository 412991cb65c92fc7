package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"jobledger/db/dbtest"
)

// catalog gives what a database says of its tables, one line for each thing, by a query per engine.
func catalog(t *testing.T, dsn, query string) (lines []string) {
	t.Helper()
	must(t, dbtest.Raw(t, dsn).SelectContext(t.Context(), &lines, query))
	slices.Sort(lines)
	return lines
}

// The two engines have the same tables.
func TestCatalogsAgree(t *testing.T) {
	for _, c := range []struct{ what, sqlite, postgres string }{
		{"columns", `
			SELECT m.name || '.' || c.name || ' ' || c.cid || ' ' || c."notnull" || ' key ' || c.pk
			FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'`, `
			SELECT c.table_name || '.' || c.column_name || ' ' || (c.ordinal_position - 1) || ' '
			       || CASE c.is_nullable WHEN 'NO' THEN 1 ELSE 0 END || ' key ' || COALESCE(k.ordinal_position, 0)
			FROM information_schema.columns c
			LEFT JOIN (information_schema.key_column_usage k JOIN information_schema.table_constraints p
			           ON p.constraint_name = k.constraint_name AND p.constraint_type = 'PRIMARY KEY')
			       ON k.table_name = c.table_name AND k.column_name = c.column_name
			WHERE c.table_schema = current_schema()`},
		{"unique keys", `
			SELECT m.name || ' (' || (SELECT group_concat(name, ', ') FROM pragma_index_info(l.name)) || ')'
			FROM sqlite_schema m JOIN pragma_index_list(m.name) l WHERE l.origin = 'u'`, `
			SELECT table_name || ' (' || string_agg(column_name, ', ' ORDER BY k.ordinal_position) || ')'
			FROM information_schema.table_constraints c
			JOIN information_schema.key_column_usage k USING (table_name, constraint_name)
			WHERE c.constraint_type = 'UNIQUE' AND c.table_schema = current_schema()
			GROUP BY table_name, constraint_name`},
		{"indexes", `
			SELECT i.tbl_name || ' ' || i.name || ' ' || l."unique" || ' ' || l.partial
			FROM sqlite_schema i JOIN pragma_index_list(i.tbl_name) l ON l.name = i.name
			WHERE i.type = 'index' AND i.sql IS NOT NULL`, `
			SELECT x.indrelid::regclass || ' ' || x.indexrelid::regclass || ' ' || x.indisunique::int || ' '
			       || (x.indpred IS NOT NULL)::int
			FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
			WHERE i.relnamespace = current_schema()::regnamespace
			  AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.oid AND c.contype IN ('p', 'u'))`},
		{"triggers", `SELECT tbl_name || ' ' || name FROM sqlite_schema WHERE type = 'trigger'`, `
			SELECT tgrelid::regclass || ' ' || tgname FROM pg_trigger
			WHERE NOT tgisinternal AND tgname NOT LIKE '%\_no\_truncate'`},
		{"foreign keys", `
			SELECT m.name || '.' || f."from" || ' to ' || f."table" || '.' || f."to"
			FROM sqlite_schema m JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table'`, `
			SELECT f.conrelid::regclass || '.' || a.attname || ' to ' || f.confrelid::regclass || '.' || b.attname
			FROM pg_constraint f
			CROSS JOIN unnest(f.conkey, f.confkey) AS pair (here, there)
			JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = pair.here
			JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = pair.there
			WHERE f.contype = 'f'`},
		{"migrations", `SELECT version || ' ' || name FROM schema_migrations`,
			`SELECT version || ' ' || name FROM schema_migrations`},
	} {
		dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
			there := catalog(t, dsn, c.postgres)
			here := catalog(t, dbtest.SQLite(t), c.sqlite)
			if len(here) == 0 || !slices.Equal(here, there) {
				t.Errorf("%s of SQLite\n%s\nand of PostgreSQL\n%s",
					c.what, strings.Join(here, "\n"), strings.Join(there, "\n"))
			}
		})
	}
}

// The order of texts, and what a range of keys holds, are those of the bytes.
func TestTextsAreComparedByBytes(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		other := catalog(t, dsn, `
			SELECT table_name || '.' || column_name FROM information_schema.columns
			WHERE table_schema = current_schema() AND table_name <> 'schema_migrations'
			  AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'`)
		if len(other) > 0 {
			t.Errorf("of another collation: %s", other)
		}
	})
}

// What a migration is without its comments, and the parts that the engines word differently.
var (
	comment    = regexp.MustCompile(`--[^\n]*`)
	space      = regexp.MustCompile(`\s+`)
	sqliteRule = regexp.MustCompile(`(CREATE TRIGGER \w+ BEFORE [^;]*? ON \w+)(?: WHEN ([^;]*))? ` +
		`BEGIN SELECT RAISE\(ABORT, ('[^']*')\); END;`)
	noDelete     = regexp.MustCompile(`CREATE TRIGGER \w+_no_delete BEFORE DELETE ON (\w+)`)
	postgresRule = regexp.MustCompile(`CREATE FUNCTION jobledger_refuse\(\).*?\$\$.*?\$\$;`)
	postgresBody = regexp.MustCompile(`CREATE FUNCTION (\w+)\(\) RETURNS trigger LANGUAGE plpgsql AS \$\$ ` +
		`BEGIN (.*?) RETURN NULL; END \$\$; (CREATE TRIGGER [^;]*?) FOR EACH ROW EXECUTE FUNCTION (\w+)\(\);`)
)

// statements are those of a migration file, each on one line, sorted. Those for SQLite come in the words
// of PostgreSQL, and each table from which nothing is deleted is guarded from TRUNCATE too.
func statements(t *testing.T, path string, translate bool) []string {
	t.Helper()
	file, err := os.ReadFile(path)
	must(t, err)
	text := space.ReplaceAllString(comment.ReplaceAllString(string(file), ""), " ")
	if !translate {
		text = postgresRule.ReplaceAllString(text, "")
		text = postgresBody.ReplaceAllStringFunc(text, func(rule string) string {
			m := postgresBody.FindStringSubmatch(rule)
			if m[1] != m[4] {
				t.Errorf("%s: the trigger runs %s, and before it is %s", path, m[4], m[1])
			}
			return m[3] + " BEGIN " + m[2] + " END;"
		})
	} else {
		text = sqliteRule.ReplaceAllStringFunc(text, func(rule string) string {
			m := sqliteRule.FindStringSubmatch(rule)
			if m[2] != "" {
				m[2] = "WHEN (" + m[2] + ") "
			}
			return m[1] + " FOR EACH ROW " + m[2] + "EXECUTE FUNCTION jobledger_refuse(" + m[3] + ");"
		})
		for _, m := range noDelete.FindAllStringSubmatch(text, -1) {
			text += strings.ReplaceAll("CREATE TRIGGER TABLE_no_truncate BEFORE TRUNCATE ON TABLE "+
				"FOR EACH STATEMENT EXECUTE FUNCTION jobledger_refuse('TABLE are never deleted');", "TABLE", m[1])
		}
		text = strings.NewReplacer(" TEXT", ` TEXT COLLATE "C"`, " INTEGER", " BIGINT", " BLOB", " BYTEA",
			") STRICT, WITHOUT ROWID;", ");", ") STRICT;", ");").Replace(text)
	}
	var list []string
	for statement := range strings.SplitSeq(text, ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			list = append(list, statement)
		}
	}
	slices.Sort(list)
	return list
}

// Every table, check, index and trigger of the two engines is the same, word for word.
func TestMigrationsAgree(t *testing.T) {
	names := func(folder string) (list []string) {
		files, err := filepath.Glob(folder + "/*")
		must(t, err)
		for _, f := range files {
			list = append(list, filepath.Base(f))
		}
		return list
	}
	files := names("sqlite")
	if there := names("postgres"); len(files) == 0 || !slices.Equal(files, there) {
		t.Fatalf("SQLite has %v, PostgreSQL %v", files, there)
	}
	for _, file := range files {
		here := statements(t, "sqlite/"+file, true)
		there := statements(t, "postgres/"+file, false)
		for _, s := range here {
			if !slices.Contains(there, s) {
				t.Errorf("%s: PostgreSQL lacks\n%s", file, s)
			}
		}
		for _, s := range there {
			if !slices.Contains(here, s) {
				t.Errorf("%s: only PostgreSQL has\n%s", file, s)
			}
		}
		if len(here) != len(there) {
			t.Errorf("%s: %d statements for SQLite, %d for PostgreSQL", file, len(here), len(there))
		}
	}
}
