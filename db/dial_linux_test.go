package db_test

import (
	"database/sql/driver"
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"jobledger/db"
	"jobledger/db/dbtest"
)

// A connection over a network has the bounds of what is not received and of a silent server.
func TestNetworkBounds(t *testing.T) {
	dbtest.EachPostgres(t, func(t *testing.T, dsn string) {
		_, through := newLink(t, dsn)
		made := 0
		o := db.Options{Wrap: func(c driver.Conn) driver.Conn {
			made++
			conn := c.(interface{ Conn() *pgx.Conn }).Conn().PgConn().Conn().(*net.TCPConn)
			for option, want := range map[int]int{
				18: 30000, syscall.TCP_KEEPIDLE: 15, syscall.TCP_KEEPINTVL: 15, syscall.TCP_KEEPCNT: 2,
			} {
				raw, err := conn.SyscallConn()
				must(t, err)
				must(t, raw.Control(func(fd uintptr) {
					got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option)
					if err != nil || got != want {
						t.Errorf("option %d is %d (%v), want %d", option, got, err, want)
					}
				}))
			}
			return c
		}}
		reopen(t, through, o)
		if made == 0 {
			t.Error("no connection was made")
		}
	})
}
