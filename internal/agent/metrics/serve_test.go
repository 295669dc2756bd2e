package metrics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/watch"
)

// most is far longer than anything here takes.
const most = 20 * time.Second

// serving starts a server until the end of the test, and returns its address.
func serving(t *testing.T, config string) string {
	t.Helper()
	return servingPage(t, config, nil)
}

// servingPage serves a page too.
func servingPage(t *testing.T, config string, page http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, l, Options{Feed: NewFeed(&still{s: &watch.Snapshot{Watched: 7}}, 0), Config: config, Page: page})
	}()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve = %v", err)
			}
		case <-time.After(most):
			t.Error("it does not end")
		}
	})
	return l.Addr().String()
}

// ask returns the status and the body of an answer.
func ask(t *testing.T, client *http.Client, url, user, password string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// Clients of the page that keep their connections do not hold up a scrape, nor do those that it answers. Scrapes do not
// hold up the page.
func TestThePageAndMetricsHaveRoom(t *testing.T) {
	ended := make(chan struct{})
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-ended
		}
	})
	url := "http://" + servingPage(t, "", page)
	defer close(ended)
	one := func(path string) (status int) {
		t.Helper()
		client := &http.Client{Timeout: most, Transport: &http.Transport{}} // a connection for each, which is kept
		t.Cleanup(client.CloseIdleConnections)
		r, err := client.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusOK || path != "/stream" {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return r.StatusCode
	}
	inTime := func(path string) {
		t.Helper()
		began := time.Now()
		if status := one(path); status != http.StatusOK || time.Since(began) > most/4 {
			t.Errorf("%s: %d after %v", path, status, time.Since(began))
		}
	}
	for range clientsMost {
		inTime("/")
	}
	inTime(Route)
	for i := range clientsMost {
		if status := one("/stream"); (status == http.StatusOK) != (i < pagesMost) || status != http.StatusOK && status != http.StatusServiceUnavailable {
			t.Errorf("page %d: %d", i, status)
		}
	}
	inTime(Route)
	for range clientsMost {
		inTime(Route)
	}
	if status := one("/"); status != http.StatusServiceUnavailable {
		t.Errorf("%d", status)
	}
	if pagesMost+scrapesMost >= clientsMost {
		t.Error("there is no seat for who has to be refused")
	}
}

// Of many scrapes at once the last are refused, and the page is answered.
func TestScrapesHaveAShare(t *testing.T) {
	answers, ended := make(chan struct{}), make(chan struct{})
	h := share(2, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { answers <- struct{}{}; <-ended }))
	done := make(chan bool)
	for range 2 {
		go func() { h.ServeHTTP(httptest.NewRecorder(), nil); done <- true }()
		<-answers
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "ask again later") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	close(ended)
	<-done
	<-done
	go func() { h.ServeHTTP(httptest.NewRecorder(), nil); done <- true }()
	<-answers
	<-done
}

func TestServe(t *testing.T) {
	client := &http.Client{Timeout: most, Transport: &http.Transport{DisableKeepAlives: true}}
	status, body := ask(t, client, "http://"+serving(t, "")+Route, "", "")
	if status != http.StatusOK || !strings.Contains(body, "weir_agent_groups 7\n") {
		t.Errorf("%d: %s", status, body)
	}
}

// TLS and users are what the file says.
func TestServeWithTLSAndUsers(t *testing.T) {
	dir := t.TempDir()
	pool := certificate(t, dir)
	config := filepath.Join(dir, "web.yml")
	text := "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\nbasic_auth_users:\n  prometheus: HASH\n"
	write(t, config, strings.Replace(text, "HASH", letMeSee, 1))
	if err := (Options{Config: config}).Check(); err != nil {
		t.Fatal(err)
	}
	address := serving(t, config)
	client := &http.Client{Timeout: most, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if status, _ := ask(t, client, "https://"+address+Route, "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a user: %d", status)
	}
	if status, _ := ask(t, client, "https://"+address+Route, "prometheus", "wrong"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong password: %d", status)
	}
	if status, body := ask(t, client, "https://"+address+Route, "prometheus", "let-me-see"); status != http.StatusOK || !strings.Contains(body, "weir_agent_groups 7\n") {
		t.Errorf("with the right one: %d: %s", status, body)
	}
	if status, _ := ask(t, client, "http://"+address+Route, "prometheus", "let-me-see"); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d", status)
	}
}

func TestCheckRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	if err := (Options{Config: file}).Check(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that is not there: %v", err)
	}
	write(t, file, "tls_server_confg: {}\n")
	if err := (Options{Config: file}).Check(); err == nil {
		t.Error("a misspelt file is taken")
	}
	write(t, file, "basic_auth_users: {alice: "+letMeSee+", bob: secret}\n")
	if err := (Options{Config: file}).Check(); err == nil || err.Error() != "read "+file+`: basic_auth_users: what "bob" has is no bcrypt hash; make one: htpasswd -nBC 10 NAME` {
		t.Errorf("a password that is no hash: %v", err)
	}
	if err := (Options{}).Check(); err != nil {
		t.Errorf("no file: %v", err)
	}
}

// A pipe in the place of the file, or of one that it names, is refused and not waited for.
func TestCheckRefusesPipes(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	pipe, file := filepath.Join(dir, "pipe"), filepath.Join(dir, "web.yml")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		pipe: "",
		file: "tls_server_config: {cert_file: cert.pem, key_file: pipe}\n",
	} {
		if text != "" {
			write(t, name, text)
		}
		done := make(chan error, 1)
		go func() { done <- Options{Config: name}.Check() }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), pipe+": not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is waited for", name)
		}
	}
}

// Without an authority of clients the server would trust all of the host's.
func TestClientsNeedAnAuthority(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir)
	file := filepath.Join(dir, "web.yml")
	for more, taken := range map[string]bool{"": false, ", client_ca_file: cert.pem": true} {
		write(t, file, "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_auth_type: RequireAndVerifyClientCert"+more+"}\n")
		if err := (Options{Config: file}).Check(); (err == nil) != taken || !taken && !strings.Contains(err.Error(), "client_auth_type RequireAndVerifyClientCert needs a client_ca_file") {
			t.Errorf("%q: %v", more, err)
		}
	}
}

// A client's URL begins with https if there is a certificate.
func TestScheme(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	for text, want := range map[string]string{
		"": "http", "basic_auth_users: {prometheus: " + letMeSee + "}\n": "http",
		"tls_server_config: {cert_file: c, key_file: k}\n": "https",
		"tls_server_config: {cert: c, key: k}\n":           "https",
	} {
		write(t, file, text)
		if scheme, err := (Options{Config: file}).Scheme(); scheme != want || err != nil {
			t.Errorf("%q: %s, %v", text, scheme, err)
		}
	}
	if scheme, err := (Options{}).Scheme(); scheme != "http" || err != nil {
		t.Errorf("no file: %s, %v", scheme, err)
	}
	if _, err := (Options{Config: file + ".none"}).Scheme(); err == nil {
		t.Error("a file that is not there")
	}
}

// Who has a file without users does not ask who reads.
func TestAsksWho(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	for text, want := range map[string]bool{
		"": false, "tls_server_config: {cert_file: c, key_file: k}\n": false, "basic_auth_users: {}\n": false,
		"basic_auth_users: {prometheus: " + letMeSee + "}\n":                  true,
		"tls_server_config: {client_auth_type: RequireAnyClientCert}\n":       false,
		"tls_server_config: {client_auth_type: RequireAndVerifyClientCert}\n": true,
	} {
		write(t, file, text)
		if asks, err := (Options{Config: file}).AsksWho(); asks != want || err != nil {
			t.Errorf("%q: %t, %v", text, asks, err)
		}
	}
	if asks, err := (Options{}).AsksWho(); asks || err != nil {
		t.Errorf("no file: %t, %v", asks, err)
	}
	if _, err := (Options{Config: file + ".none"}).AsksWho(); err == nil {
		t.Error("a file that is not there is read")
	}
}

// letMeSee is bcrypt's hash of "let-me-see".
const letMeSee = "$2a$04$b3ckDzSrX5YheGRIS/lOlu8QJwN95e.yBvhtEuxwlepVRhfP9ubxW"

// certificate makes cert.pem and key.pem for 127.0.0.1, and returns who trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, is, is, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, filepath.Join(dir, "cert.pem"), string(cert))
	write(t, filepath.Join(dir, "key.pem"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
