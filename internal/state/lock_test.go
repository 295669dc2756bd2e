package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestALockIsOnes(t *testing.T) {
	d := at(t)
	var held atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				l, err := d.Wait(t.Context(), "x", "x", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n != 1 {
					t.Errorf("%d hold it", n)
				}
				held.Add(-1)
				l.Unlock()
			}
		})
	}
	all.Wait()
	if some, err := d.Any(); err != nil || some {
		t.Errorf("a record is left: %v", err)
	}
}

func TestALockSaysWhoHasIt(t *testing.T) {
	d := at(t)
	l, err := d.Try("x")
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if other, err := d.Try("y"); err != nil || other == nil {
		t.Error("another name is locked too:", err)
	}
	_, err = d.Wait(t.Context(), "x", "the limits of cgroup /x", 20*time.Millisecond)
	var busy *BusyError
	if !errors.As(err, &busy) || !strings.Contains(err.Error(), "lock the limits of cgroup /x: ") || !strings.Contains(err.Error(), filepath.Base(os.Args[0])) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Wait(ctx, "x", "x", time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	l.Unlock()
	if l, err := d.Try("x"); err != nil || l == nil {
		t.Errorf("it is locked still: %v", err)
	}
}

// Who waits while one after the other has the lock gets it at last; one that keeps it is waited for in vain.
func TestALockIsPassedOn(t *testing.T) {
	const most = 40 * time.Millisecond
	for name, passed := range map[string]bool{"passed on": true, "kept": false} {
		asked, lock := 0, &Lock{-1}
		got, err := wait(t.Context(), "x", most, func() (*Lock, error) {
			if asked < 4 {
				return nil, nil
			}
			return lock, nil
		}, func() string {
			if asked++; passed {
				return strconv.Itoa(asked)
			}
			return "somebody"
		})
		var busy *BusyError
		if passed && (err != nil || got != lock) || !passed && (!errors.As(err, &busy) || asked != 2 || busy.Waited < most/2) {
			t.Errorf("%s: %v, %v, asked %d times", name, got, err, asked)
		}
	}
}

// Nobody else can open a lock: who could, could hold it for ever.
func TestALockIsNobodyElses(t *testing.T) {
	d := at(t)
	if _, err := d.Try("x"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{d.path, d.locks()} {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, st.Mode())
		}
	}
}

// childLock keeps a lock's descriptor in use.
var childLock *Lock

// The kernel drops the lock of a process that is killed, and it is named until then.
func TestALockOfAKilledHolderIsFree(t *testing.T) {
	if path := os.Getenv("WEIR_LOCK_CHILD"); path != "" {
		var err error
		if childLock, err = (Dir{path}).Try("x"); err != nil || childLock == nil {
			t.Fatal(childLock, err)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		time.Sleep(time.Hour) // the runtime ends a process in which nothing can ever go on
	}
	d := at(t)
	child := exec.Command(os.Args[0], "-test.run", "^TestALockOfAKilledHolderIsFree$")
	child.Env = append(os.Environ(), "WEIR_LOCK_CHILD="+d.path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_, err = d.Wait(t.Context(), "x", "x", 10*time.Millisecond)
	if want := fmt.Sprintf("TestALockOfAKilledHolderIsFree$ (process %d) has held it", child.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	l, err := d.Try("x")
	if err != nil || l == nil {
		t.Errorf("it is locked still: %v", err)
	}
	l.Unlock()
}
