package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/base/plain"
)

// account is where kubelet puts the token of a pod's service account, and the API server's certificate
// authority (kubernetes.io, "Accessing the Kubernetes API from a Pod").
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// tokenMost bounds a file of the account, in bytes.
const tokenMost = 256 << 10

// A Client asks one API server.
type Client struct {
	server string // https://HOST:PORT
	token  string // the file; kubelet writes a new one long before it expires
	http   *http.Client
}

// InCluster makes the Client of a pod, from its environment and from its service account's files.
func InCluster(getenv func(string) string) (*Client, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("ask Kubernetes' API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod")
	}
	authority, err := peek.Regular(filepath.Join(account, "ca.crt"), tokenMost)
	if err != nil {
		return nil, fmt.Errorf("ask Kubernetes' API server: %w", err)
	}
	return NewClient("https://"+net.JoinHostPort(host, port), filepath.Join(account, "token"), authority)
}

// NewClient makes the Client of a server, with the file of a token and the certificates of the
// authority that the server's certificate must be from.
func NewClient(server, token string, authority []byte) (*Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("ask Kubernetes' API server: the file of its authority has no certificate")
	}
	return &Client{server: server, token: token, http: &http.Client{
		// A watch may take long, and to connect for it may not.
		Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: requestTime}).DialContext, TLSHandshakeTimeout: requestTime,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 64 << 10, ResponseHeaderTimeout: requestTime, IdleConnTimeout: watchTime,
			// A connection that something between has forgotten looks like one on which nothing happens.
			HTTP2: &http.HTTP2Config{SendPingTimeout: pingEvery, PingTimeout: pingMost}},
		// A redirect would take the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// A statusError is an answer with another status than one of success.
type statusError struct {
	status int
	says   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("the API server answers %d %s: %s", e.status, http.StatusText(e.status), e.says)
}

// is reports whether an error is an answer with a status.
func is(err error, status ...int) bool {
	var e *statusError
	if errors.As(err, &e) {
		for _, s := range status {
			if e.status == s {
				return true
			}
		}
	}
	return false
}

// metadataOnly asks for an answer's metadata, as a kind that has nothing else: the rest is most of it.
func metadataOnly(kind string) string {
	return "application/json;as=" + kind + ";g=meta.k8s.io;v=v1,application/json"
}

// do asks. accept is what the answer may be, and kind what the body is. The caller closes the answer's body.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, accept, kind string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, content)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = query.Encode()
	token, err := peek.Regular(c.token, tokenMost)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no token of the service account at %s: the pod must mount it", c.token)
	}
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("User-Agent", "weird")
	request.Header.Set("Accept", accept)
	if kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	r, err := c.http.Do(request)
	if err != nil {
		var asked *url.Error
		if errors.As(err, &asked) {
			err = asked.Err // without the address, which is long
		}
		return nil, err
	}
	if r.StatusCode/100 == 2 {
		return r, nil
	}
	defer r.Body.Close()
	var status struct{ Message string }
	text, _ := io.ReadAll(io.LimitReader(r.Body, answerMost)) // what it says is extra
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = "without a reason"
	}
	return nil, &statusError{r.StatusCode, plain.Brief(status.Message)}
}

// send sends a document, and ignores the one in the answer.
func (c *Client) send(ctx context.Context, method, path, kind string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	r, err := c.do(ctx, method, path, nil, metadataOnly("PartialObjectMetadata"), kind, body)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(r.Body, answerMost))
	return err
}
