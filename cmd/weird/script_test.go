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
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/lab"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weird": func() { os.Exit(run()) }})
}

// TestScripts runs testdata/script.
func TestScripts(t *testing.T) {
	lab.Unit(t)
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"ask": ask, "exitcode": exitCode, "terminate": terminate}})
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
