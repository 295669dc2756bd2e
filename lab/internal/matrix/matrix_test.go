package matrix

import (
	"testing"
	"time"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/kernel"
)

func TestNamesAreUnique(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range Rows() {
		if seen[r.Name()] {
			t.Errorf("two rows named %s", r.Name())
		}
		seen[r.Name()] = true
	}
}

// TestDefault is what the project promises of every test run: 6.1 and the newest
// kernel with v1 and v2, hybrid on one, BPF on the newest, and both unusual places.
func TestDefault(t *testing.T) {
	rows, err := Select(Filter{})
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[string]bool)
	for _, r := range rows {
		have[r.Name()] = true
		if r.Extra {
			t.Errorf("%s is extra", r.Name())
		}
		if (r.Lane == QEMU) != (r.Only == "bpf") || r.Lane == FullQEMU {
			t.Errorf("%s takes only %q", r.Name(), r.Only)
		}
	}
	for _, want := range []string{
		"uml-newest-v1", "uml-newest-v2", "uml-6.1-hybrid", "qemu-newest-v1", "qemu-newest-v2",
		"full-newest-trixie-v2", "full-newest-bookworm-v1",
		"uml-6.1-v2-at-cgroup2", "uml-6.1-v1-at-cgroup-blkio", "native",
	} {
		if !have[want] {
			t.Errorf("no %s", want)
		}
	}
}

func TestSelect(t *testing.T) {
	rows, err := Select(Filter{Kernel: "5.10", Mode: "v1", Lane: UML})
	if err != nil || len(rows) != 1 || rows[0] != (Row{Lane: UML, Kernel: "5.10", Mode: environ.V1, Extra: true}) {
		t.Errorf("one extra row: %+v, %v", rows, err)
	}
	rows, err = Select(Filter{Kernel: "7.2", Lane: QEMU}, "7.2")
	if err != nil || len(rows) != 2 {
		t.Errorf("newest by its version: %+v, %v", rows, err)
	}
	rows, err = Select(Filter{Lane: FullQEMU})
	if err != nil || len(rows) != 1 || rows[0].Kernel != kernel.Newest {
		t.Errorf("emulated full guests: %+v, %v", rows, err)
	}
	rows, err = Select(Filter{Lane: Native})
	if err != nil || len(rows) != 1 || rows[0].Short {
		t.Errorf("native, when asked for: %+v, %v", rows, err)
	}
	if _, err := Select(Filter{Kernel: "2.6"}); err == nil {
		t.Error("a kernel that nobody has was found")
	}
	all, err := Select(Filter{All: true})
	if err != nil || len(all) != len(Rows()) {
		t.Errorf("all: %d of %d rows, %v", len(all), len(Rows()), err)
	}
	for _, r := range all {
		if r.Only != "" && r.Lane != FullQEMU && r.Mode != environ.Split {
			t.Errorf("all: %s takes only %q", r.Name(), r.Only)
		}
	}
}

// A whole run is where full guests and hybrid ones do every test.
func TestAWholeRunIsLongWhereNoOtherIs(t *testing.T) {
	rows, err := Select(Filter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Short && (r.Lane == Full || r.Lane == FullQEMU || r.Lane == Native || r.Mode == environ.Hybrid) {
			t.Errorf("%s is short", r.Name())
		}
	}
}

func TestTimeout(t *testing.T) {
	for row, want := range map[Row]time.Duration{
		{Lane: UML}: time.Minute, {Lane: Full, Short: true}: time.Minute, {Lane: Full}: 2 * time.Minute, {Lane: FullQEMU, Short: true}: 2 * time.Minute,
	} {
		if got := row.Timeout(time.Minute); got != want {
			t.Errorf("%+v: %s, want %s", row, got, want)
		}
	}
}

// Where older user-mode Linux does not run, all that is special about its rows is tried with
// the newest one.
func TestWithWideRegisters(t *testing.T) {
	for _, all := range []bool{false, true} {
		rows, err := Select(Filter{All: all})
		if err != nil {
			t.Fatal(err)
		}
		run, changed := WithWideRegisters(rows, false)
		have := map[string]bool{}
		for _, r := range run {
			if have[r.Name()] || r.needsNarrowRegisters() {
				t.Errorf("%s: twice, or on an older kernel", r.Name())
			}
			have[r.Name()] = true
		}
		for _, r := range rows {
			switch {
			case !r.needsNarrowRegisters():
			case r.Mode == environ.Split: // needs an old memory controller
				r.Lane = QEMU
			default:
				r.Kernel = kernel.Newest
			}
			if !have[r.Name()] {
				t.Errorf("no %s", r.Name())
			}
		}
		if !changed {
			t.Error("nothing changed")
		}
	}
	rows, err := Select(Filter{Kernel: "6.1", Lane: UML})
	if err != nil {
		t.Fatal(err)
	}
	if run, changed := WithWideRegisters(rows, true); len(run) != 0 || !changed {
		t.Errorf("of 6.1: %+v", run)
	}
}
