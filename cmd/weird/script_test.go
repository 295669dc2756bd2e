package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/lab"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weird": func() { os.Exit(run()) }})
}

// TestScripts runs testdata/script.
func TestScripts(t *testing.T) {
	lab.Unit(t)
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { return hosttest.MakeAll(env.WorkDir) },
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"ask": ask, "scrape": scrape, "exitcode": exitCode, "terminate": terminate}})
}

// patience is far longer than a daemon takes to answer.
const patience = 20 * time.Second

// ask gets a path from a socket, once somebody answers there: "ask SOCKET STATUS PATH FILE". The
// answer goes to FILE.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: ask SOCKET STATUS PATH FILE")
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
			for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
				conn, err = (&net.Dialer{}).DialContext(ctx, "unix", ts.MkAbs(args[0]))
				if err == nil || time.Now().After(deadline) {
					return conn, err
				}
			}
		}}}
	r, err := client.Get("http://weird" + args[2])
	ts.Check(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	ts.Check(err)
	if got := fmt.Sprint(r.StatusCode); got != args[1] {
		ts.Fatalf("%s answers %s, want %s: %s", args[2], got, args[1], text)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), text, 0o600))
}

// scrape gets a path from the metrics' server whose message is in the standard error of a
// background command: "scrape NAME PATH FILE". The answer goes to FILE.
func scrape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: scrape MESSAGES PATH FILE")
	}
	said := regexp.MustCompile(`serving metrics at (\S+), `)
	var found []string
	for deadline := time.Now().Add(patience); found == nil && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil {
			found = said.FindStringSubmatch(string(text))
		}
	}
	if found == nil {
		ts.Fatalf("%s has no address", args[0])
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + found[1] + args[1])
	ts.Check(err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), text, 0o600))
}

// terminate sends SIGTERM to the daemon that gave an answer: "terminate FILE".
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminate FILE")
	}
	var health api.Health
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &health))
	if health.PID <= 1 {
		ts.Fatalf("%s names no process", args[0])
	}
	ts.Check(syscall.Kill(health.PID, syscall.SIGTERM))
}

// exitCode runs a program and checks its status: "exitcode 2 weird frob".
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode STATUS PROGRAM...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, is := err.(*exec.ExitError)
		if !is {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if fmt.Sprint(got) != args[0] {
		ts.Fatalf("it ends with %d, want %s", got, args[0])
	}
}
