package systemd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// systemd keeps a unit's limit over restarts, and the pacer holds the unit's next group too.
// While the unit is stopped, weir says of nothing that it is held. Once nobody keeps the
// limit, the pacer forgets the unit.
func TestThePacerHoldsARestartedUnit(t *testing.T) {
	lab.Need(t, lab.Systemd, lab.V2, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate = 4e6
	limited := filepath.Join(disk.Dir, "limited") // what it wrote before would wait for the limit, and slow it down later
	unit := unitFile(t, "weir-again", `/bin/sh -c "until [ -e `+limited+` ]; do sleep 0.1; done; exec dd if=/dev/zero bs=64K count=40000 iflag=fullblock of=`+
		filepath.Join(disk.Dir, "f")+`$$$$"`) // each start writes another file: to truncate one waits for its writeback
	target := "unit:" + unit
	output(t, "weir", "set", target, "--write", "4MB/s", "--on", disk.Dir, "--hold", "pacer")
	t.Cleanup(func() { forget(t, unit) })
	if err := os.WriteFile(limited, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // it looks for that
	held := func(after string) {
		t.Helper()
		lab.Await(t, 20*time.Second, "the pacer to hold the unit "+after, func() bool { return shownPaced(t, target) == rate })
		lab.Ratio(t, "the writer "+after, rate, lab.Band{Low: 0.85, High: 1.15}, func() float64 { return wrote(t, unit, 5*time.Second) })
	}
	held("at first")
	for range 3 {
		output(t, "systemctl", "restart", unit)
	}
	held("after restarts")
	killPacer(t)
	time.Sleep(3 * time.Second) // it takes over, and for a second it forgives what was written without one
	held("after the pacer was killed")

	output(t, "systemctl", "stop", unit)
	lab.Await(t, 20*time.Second, "a record that nobody holds the unit", func() bool { return strings.Contains(onRecord(t, unit), `"lapsed"`) })
	// What it wrote while no pacer ran waits in memory, and would have the kernel's dirty throttling
	// slow the next one down.
	files, err := filepath.Glob(filepath.Join(disk.Dir, "f*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "systemctl", "start", unit)
	held("after a stop and a start")

	output(t, "systemctl", "stop", unit)
	output(t, "weir", "clear", target)
	lab.Await(t, 20*time.Second, "the pacer to forget the unit", func() bool { return onRecord(t, unit) == "" })
	output(t, "systemctl", "start", unit)
	if got := shownPaced(t, target); got != 0 {
		t.Errorf("after its limit was cleared the unit is paced at %d", got)
	}
}

// wrote is how fast the main process of a unit writes through the page cache.
func wrote(t *testing.T, unit string, over time.Duration) float64 {
	t.Helper()
	file := "/proc/" + property(t, unit, "MainPID") + "/io"
	bytes := func() float64 {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\nwrite_bytes: ")
		line, _, _ := strings.Cut(rest, "\n")
		n, err := strconv.ParseFloat(line, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// What is written at once is paid for after: from one write to another, both not counted.
	next := func() (count float64, at time.Time) {
		count, at = bytes(), time.Now()
		for began := at; bytes() == count && time.Since(began) < over; at = time.Now() {
			time.Sleep(10 * time.Millisecond)
		}
		return count, at
	}
	before, began := next()
	time.Sleep(over)
	after, ended := next()
	return (after - before) / ended.Sub(began).Seconds()
}

// killPacer kills weir's pacer, and waits until its guards have started another.
func killPacer(t *testing.T) {
	t.Helper()
	killed := pacers(t)
	for _, pid := range killed {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if len(killed) == 0 {
		t.Error("no pacer runs")
	}
	lab.Await(t, 20*time.Second, "another pacer", func() bool {
		return slices.ContainsFunc(pacers(t), func(pid int) bool { return !slices.Contains(killed, pid) })
	})
}

// pacers are the processes of weir's pacer.
func pacers(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && strings.Contains(string(text), "\x00__pacer\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// shownPaced is what weir show says that the pacer holds of a target.
func shownPaced(t *testing.T, target string) uint64 {
	t.Helper()
	var doc struct {
		Groups []struct {
			Paced uint64 `json:"paced_wbps"`
		}
	}
	if err := json.Unmarshal([]byte(output(t, "weir", "show", target, "--json", "--for", "0")), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Groups[0].Paced
}

// onRecord is what the pacer has on record of a unit; empty: nothing.
func onRecord(t *testing.T, unit string) string {
	t.Helper()
	files, err := filepath.Glob("/run/weir/pace.*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "/"+unit+`"`) {
			return string(text)
		}
	}
	return ""
}
