package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// dockerd answers for Docker at a socket, and has weir ask there, until the script ends:
// "dockerd SOCKET DIR". DIR/NAME.json is what there is to say of container NAME, a file
// that begins with a number is an answer of that status. DIR/all.json lists them. DIR/api is
// the version of its API, DIR/version its own. What it is told to update is in DIR/NAME.update, a line each; where
// DIR/NAME.refuses is there, that is its answer.
func dockerd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: dockerd SOCKET DIR")
	}
	socket, dir := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	listener, err := net.Listen("unix", socket)
	ts.Check(err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, dir)
	})}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	ts.Defer(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			ts.Logf("dockerd: %v", err)
		}
	})
	ts.Setenv("DOCKER_HOST", "unix://"+socket)
}

func answer(w http.ResponseWriter, r *http.Request, dir string) {
	if version, err := os.ReadFile(filepath.Join(dir, "api")); err == nil {
		w.Header().Set("Api-Version", strings.TrimSpace(string(version)))
	}
	if version, err := os.ReadFile(filepath.Join(dir, "version")); err == nil {
		w.Header().Set("Server", "Docker/"+strings.TrimSpace(string(version))+" (linux)")
	}
	if r.Method == http.MethodPost {
		update(w, r, dir)
		return
	}
	if r.URL.Path == "/containers/json" {
		http.ServeFile(w, r, filepath.Join(dir, "all.json"))
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/containers/")
	name, isOne := strings.CutSuffix(name, "/json")
	text, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if !ok || !isOne || err != nil || r.Method != http.MethodGet {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"message":"No such container: %s"}`, name)
		return
	}
	var status int
	if n, err := fmt.Sscan(string(text), &status); n == 1 && err == nil {
		w.WriteHeader(status)
		text = []byte(strings.TrimLeft(string(text), "0123456789"))
	}
	_, _ = w.Write(text)
}

func update(w http.ResponseWriter, r *http.Request, dir string) {
	name, is := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/v1.55/containers/"), "/update")
	body, err := io.ReadAll(r.Body)
	if !is || err != nil || strings.Contains(name, "/") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if text, err := os.ReadFile(filepath.Join(dir, name+".refuses")); err == nil {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write(text)
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, name+".update"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\n", body)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, `{"Warnings":null}`)
}
