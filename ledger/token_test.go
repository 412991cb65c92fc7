package ledger_test

import (
	"strings"
	"testing"

	"jobledger/ledger"
)

func TestScopes(t *testing.T) {
	all := []ledger.Scope{"", "root", ledger.ScopeRead, ledger.ScopeWrite, ledger.ScopeOperator}
	for i, has := range all {
		for j, needs := range all {
			if got, want := has.Allows(needs), j >= 2 && i >= j; got != want {
				t.Errorf("%q allows %q: %t", has, needs, got)
			}
		}
	}
}

// TestTokens: a token works from when it is made until it is revoked, and its secret is nowhere.
func TestTokens(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		made, err := b.CreateToken(b.Context(), "app", ledger.ScopeWrite)
		b.ok(err)
		if !strings.HasPrefix(made.Secret, "jl_") || len(made.Secret) < 29 || made.RevokedAt != nil {
			b.Fatalf("%+v", made)
		}
		other, err := b.CreateToken(b.Context(), "another", ledger.ScopeRead)
		b.ok(err)
		if other.Secret == made.Secret {
			b.Fatal("two tokens have one secret")
		}
		for _, dump := range faultDump(t, b.dsn, nil) {
			if strings.Contains(dump, made.Secret[3:]) {
				b.Errorf("the secret is in %s", dump)
			}
		}
		_, err = b.CreateToken(b.Context(), "app", ledger.ScopeWrite)
		b.fails(err, ledger.NotAllowed)

		who, err := b.Authenticate(b.Context(), made.Secret)
		b.ok(err)
		if who != made.Token {
			b.Fatalf("%+v, want %+v", who, made.Token)
		}
		for _, wrong := range []string{
			"", "jl_", made.Secret[:len(made.Secret)-1], made.Secret + "A", " " + made.Secret,
			strings.ToLower(made.Secret), made.Secret[3:], "jl_" + strings.Repeat("A", 1<<20), "jl_\x00\xff",
		} {
			_, err := b.Authenticate(b.Context(), wrong)
			b.fails(err, ledger.Unauthenticated)
		}

		b.at(1)
		gone, err := b.RevokeToken(b.Context(), "app")
		b.ok(err)
		b.at(2)
		again, err := b.RevokeToken(b.Context(), "app")
		b.ok(err)
		if gone.RevokedAt == nil || *again.RevokedAt != *gone.RevokedAt || again.ID != made.ID {
			b.Fatalf("%+v, and then %+v", gone, again)
		}
		_, err = b.Authenticate(b.Context(), made.Secret)
		b.fails(err, ledger.Unauthenticated)
		_, err = b.Authenticate(b.Context(), other.Secret)
		b.ok(err)
		_, err = b.CreateToken(b.Context(), "app", ledger.ScopeWrite) // a name is used once
		b.fails(err, ledger.NotAllowed)

		list, err := b.Tokens(b.Context())
		b.ok(err)
		if len(list) != 2 || list[0] != other.Token || list[1].Name != "app" || list[1].RevokedAt == nil {
			b.Fatalf("%+v", list)
		}
	})
}

func TestTokensRefused(t *testing.T) {
	eachWorkbench(t, func(b *workbench) {
		_, err := b.CreateToken(b.Context(), "", ledger.ScopeRead)
		b.fails(err, ledger.Invalid, "name")
		_, err = b.CreateToken(b.Context(), "a", "root")
		b.fails(err, ledger.Invalid, "scope")
		_, err = b.RevokeToken(b.Context(), "a\x00")
		b.fails(err, ledger.Invalid, "name")
		_, err = b.RevokeToken(b.Context(), "nobody")
		b.fails(err, ledger.NotFound)
	})
}
