package dbtest

import (
	"os"
	"testing"
)

// Crash stops the server at once, as a crash would: what it has not synced is lost.
func (c *Cluster) Crash() error { return c.run("pg_ctl", "-D", c.data(), "-m", "immediate", "stop") }

// Kill kills every process of the server, so that it tells nobody, and returns once they are gone or
// wait for init to take them away. The first is stopped before the others are listed, since it could make
// more. Its locks and its shared memory go too: the next start would not believe that it is gone.
func (c *Cluster) Kill() error {
	return c.run("sh", "-ec", `
		read -r first <data/postmaster.pid
		memory=$(awk 'NR == 7 { print $2 }' data/postmaster.pid)
		kill -STOP $first
		all="$first $(pgrep -P $first)"
		kill -KILL $all
		while ps -o stat= -p "$(echo $all | tr ' ' ,)" | grep -qv Z; do sleep 0.01; done
		ipcrm -m $memory
		rm data/postmaster.pid .s.PGSQL.5432.lock`)
}

// StartPair starts a server and a standby of it. Neither acknowledges a COMMIT before the other has it
// on its disk. It needs [NeedCluster].
func StartPair(t testing.TB) (primary, standby *Cluster) {
	t.Helper()
	// The name of a cluster is the one by which it follows the other.
	parameters := []string{"cluster_name=standby", "synchronous_standby_names=standby"}
	primary = StartCluster(t, parameters...)
	standby, err := newCluster(parameters...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { standby.watched.Close() })
	if err := standby.Follow(primary); err != nil {
		t.Fatal(err)
	}
	return primary, standby
}

// Follow makes a server that is down a standby of another: it forgets its data and copies the other's.
func (c *Cluster) Follow(primary *Cluster) error {
	err := os.RemoveAll(c.data())
	if err == nil {
		err = c.run("pg_basebackup", "-D", c.data(), "-h", primary.dir, "-U", "postgres",
			"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	}
	if err == nil {
		err = c.Start()
	}
	return err
}

// Promote makes a standby a server that takes writes.
func (c *Cluster) Promote() error { return c.run("pg_ctl", "-D", c.data(), "-w", "promote") }

// Either gives the DSN of a database that is on two servers: it reaches the one that takes writes.
func Either(dsn string, c, other *Cluster) string {
	return with(with(dsn, "host", c.dir+","+other.dir), "target_session_attrs", "read-write")
}
