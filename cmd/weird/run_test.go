package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/spare"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/lab"
)

// A SIGHUP that comes while weird starts, before it has any plans, does not end it.
func TestHangupDuringTheStart(t *testing.T) {
	lab.Unit(t)
	enough := errors.New("enough")
	r := runner{root: t.TempDir(), open: func(string) (*host.Host, error) {
		runtime.LockOSThread() // what a thread sends itself is delivered before tgkill(2) returns
		defer runtime.UnlockOSThread()
		return nil, errors.Join(unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGHUP), enough)
	}}
	if err := r.run(t.Context()); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// systemd hears of an agent that lives, and of no other.
func TestWatchdog(t *testing.T) {
	lab.Unit(t)
	conn, path := datagrams(t)
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "2000")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	var asked atomic.Int32
	go func() {
		watchdog(ctx, func() bool { return asked.Add(1) > 3 })
		close(done)
	}()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != "WATCHDOG=1" || asked.Load() <= 3 {
		t.Errorf("%q, %v after %d", buf[:n], err, asked.Load())
	}
	stop()
	<-done
}

// What weird begins beside its work has an owner that waits for it: a WaitGroup, or who waits for a channel that is
// closed at the end. Other go statements have none.
func TestWhatRunsBesideIsWaitedFor(t *testing.T) {
	lab.Unit(t)
	files := token.NewFileSet()
	for name, want := range map[string]int{"run.go": 5, "metrics.go": 2, "top.go": 1} {
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		begun := 0
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if begun++; !closesAtItsEnd(n) {
					t.Errorf("%s: nobody waits for it", files.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "Go" {
					begun++
				}
			}
			return true
		})
		if begun != want {
			t.Errorf("%s begins %d things, want %d", name, begun, want)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	spare.GiveBack(ctx) // ends with the context
	spare.Collect(ctx, gcPercent)
	reloads(ctx, nil, nil)
	t.Setenv("WATCHDOG_USEC", "2000000")
	watchdog(ctx, func() bool { return false })
}

// closesAtItsEnd reports whether a goroutine begins with a defer of close.
func closesAtItsEnd(s *ast.GoStmt) bool {
	f, is := s.Call.Fun.(*ast.FuncLit)
	if !is || len(f.Body.List) == 0 {
		return false
	}
	d, is := f.Body.List[0].(*ast.DeferStmt)
	if !is {
		return false
	}
	name, is := d.Call.Fun.(*ast.Ident)
	return is && name.Name == "close"
}
