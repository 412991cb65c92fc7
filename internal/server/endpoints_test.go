package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"jobledger/db/dbtest"
	"jobledger/internal/server"
	"jobledger/ledger"
)

// TestEndpoints: an endpoint is added, rotated, disabled and enabled again; its secrets are never shown.
func TestEndpoints(t *testing.T) {
	s := sqlite(t)
	const second = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	added := s.must("POST", "/v1/endpoints", `{"url":"http://127.0.0.1:1/","secret":"`+secret+`"}`)
	id := added.member(t, "endpoint", "id").(string)
	path := "/v1/endpoints/" + id
	rotated := s.must("POST", path+"/rotate", `{"secret":"`+second+`"}`)
	disabled := s.must("POST", path+"/disable", `{"reason":"moved"}`)
	if got := disabled.member(t, "endpoint", "disabled_reason"); got != "moved" {
		t.Errorf("disabled: got %v", got)
	}
	enabled := s.must("POST", path+"/enable", "")
	if got := enabled.member(t, "endpoint", "disabled_at"); got != nil {
		t.Errorf("enabled: got %v", got)
	}
	all := s.must("GET", "/v1/endpoints", "")
	for _, r := range []reply{added, rotated, disabled, enabled, all} {
		if strings.Contains(r.text, "whsec_") || !strings.Contains(r.text, id) {
			t.Errorf("got %s", r.text)
		}
	}
	if strings.Contains(s.log.String(), "whsec_") {
		t.Error("a secret is in the log")
	}
	s.refused(422, ledger.Invalid, "secret: ", "POST", path+"/rotate", `{"secret":"whsec_AAAA"}`)
	s.refused(422, ledger.Invalid, "reason: is empty", "POST", path+"/disable", `{"reason":""}`)
	s.refused(422, ledger.Invalid, "types: ", "POST", "/v1/endpoints",
		`{"url":"http://127.0.0.1:2/","secret":"`+secret+`","types":["job.ended"]}`)
	s.refused(404, ledger.NotFound, "no endpoint", "POST", "/v1/endpoints/nothing/enable", "")
	s.refused(404, ledger.NotFound, "no event", "POST", "/v1/events/settled:j9/replay", "")
	s.refused(409, ledger.IdempotencyMismatch, "differs in types", "POST", "/v1/endpoints",
		`{"url":"http://127.0.0.1:1/","secret":"`+second+`","types":["job.failed"]}`)
}

// TestEndpointWithoutTLS: an endpoint elsewhere has TLS, or the server was told that it need not.
func TestEndpointWithoutTLS(t *testing.T) {
	const plain = `{"url":"http://elsewhere.example/","secret":"` + secret + `"}`
	s := sqlite(t)
	r := s.refused(422, ledger.Invalid, "url: is without TLS", "POST", "/v1/endpoints", plain)
	if field := r.member(t, "field"); field != "url" {
		t.Errorf("the field is %v", field)
	}
	s.must("POST", "/v1/endpoints", `{"url":"https://10.0.0.1/","secret":"`+secret+`"}`)
	start(t, dbtest.SQLite(t), server.Options{AllowHTTP: true}).must("POST", "/v1/endpoints", plain)
}

// certificate makes a certificate for the loopback address and gives its files and a pool that trusts it.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	secret := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	for path, text := range map[string][]byte{certFile: cert, keyFile: secret} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return certFile, keyFile, pool
}

// TestTLS: with a certificate, connections are encrypted, and old versions of TLS are not spoken.
func TestTLS(t *testing.T) {
	certFile, keyFile, pool := certificate(t)
	s := start(t, dbtest.SQLite(t), server.Options{CertFile: certFile, KeyFile: keyFile})
	plain, err := s.client.Get(s.url + "/healthz")
	if err == nil {
		plain.Body.Close()
	}
	if err == nil && plain.StatusCode == 200 {
		t.Error("it answers without encryption")
	}
	get := func(top uint16) error {
		client := http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", MaxVersion: top},
		}}
		defer client.CloseIdleConnections()
		r, err := client.Get(strings.Replace(s.url, "http:", "https:", 1) + "/healthz")
		if err == nil {
			r.Body.Close()
		}
		return err
	}
	if err := get(tls.VersionTLS13); err != nil {
		t.Error(err)
	}
	if err := get(tls.VersionTLS11); err == nil {
		t.Error("it speaks TLS 1.1")
	}
}
