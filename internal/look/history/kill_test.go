package history

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"testing"
	"time"
)

const (
	// recordsVariable makes the test binary record into the directory that it names.
	recordsVariable = "WEIR_HISTORY_RECORDS"
	// killsVariable says how often TestKilled kills it.
	killsVariable = "WEIR_HISTORY_KILLS"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(recordsVariable); dir != "" {
		if err := recordOn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// recordOn goes on recording, and says each second's number when it is kept, until it is killed.
func recordOn(dir string) error {
	first, err := strconv.Atoi(os.Getenv(recordsVariable + "_FROM"))
	if err != nil {
		return err
	}
	r, err := Record(dir, small())
	if err != nil {
		return err
	}
	for n := first; ; n++ {
		if err := r.Add(seen(n)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// kill -9 at any moment loses nothing that was kept, and the next recording goes on after it.
func TestKilled(t *testing.T) {
	kills := 10
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	next := 0
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), recordsVariable+"="+dir, recordsVariable+"_FROM="+strconv.Itoa(next))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told, lines := next-1, bufio.NewScanner(out)
		wait := rand.N(30 * time.Millisecond)
		for lines.Scan() {
			if told, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if wait >= 0 { // from the first one on
				time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
				wait = -1
			}
		}
		if err := cmd.Wait(); err == nil || told < next {
			t.Fatalf("it ended by itself after %d: %v", told, err)
		}
		got := all(t, reader(t, dir).rings[0])
		for i, s := range got {
			n := int(s.At.Sub(start).Seconds())
			if i > 0 && s.At.Sub(got[i-1].At) != time.Second || !reflect.DeepEqual(s, kept(seen(n))) {
				t.Fatalf("%d after %s:\n%s", n, got[max(i-1, 0)].At.Sub(start), show(s))
			}
		}
		last := int(got[len(got)-1].At.Sub(start).Seconds())
		if last != told && last != told+1 {
			t.Fatalf("kept up to %d, read up to %d", told, last)
		}
		next = last + 1
	}
	t.Logf("%d kills, %d seconds", kills, next)
}
