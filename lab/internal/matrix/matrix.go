// Package matrix lists the guests that a run of the lab consists of.
package matrix

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/kernel"
)

// Lanes, in the order in which a run starts them.
const (
	UML      = "uml"
	QEMU     = "qemu"
	Full     = "full"      // on user-mode Linux
	FullQEMU = "full-qemu" // emulated, for BPF beside units and containers
	Native   = "native"
)

// Row is one guest. Kernel is a version or kernel.Newest.
type Row struct {
	Lane    string
	Kernel  string
	Suite   string // of a full guest's system
	Mode    environ.Mode
	IOMount string // unusual mount point of the io controller's hierarchy
	Short   bool   // differs from another row in little: measured tests take their short form
	Only    string // requirements, with commas between: tests that ask for less have other rows
	Spare   bool   // measures few rates, or none, and so runs in the time that others leave
	Extra   bool   // only in the whole matrix (-all), or when asked for by a filter
}

// Name is unique: "uml-6.1-v2", "uml-6.1-v2-at-cgroup2".
func (r Row) Name() string {
	if r.Lane == Native {
		return Native
	}
	parts := []string{r.Lane, r.Kernel}
	if r.Suite != "" {
		parts = append(parts, r.Suite)
	}
	name := strings.Join(append(parts, string(r.Mode)), "-")
	if r.IOMount != "" {
		name += "-at" + strings.ReplaceAll(r.IOMount, "/", "-")
	}
	return name
}

// Timeout is how long a row may take where others may take usual: daemons on an
// emulated processor take twice as long, and so do all the tests of a full guest.
func (r Row) Timeout(usual time.Duration) time.Duration {
	if r.Lane == FullQEMU || r.Lane == Full && !r.Short {
		return 2 * usual
	}
	return usual
}

// bpfBesideSystemd is what only an emulated full guest has. It is too slow for rates
// beside its daemons (a container wrote 2.2 MB/s without a limit), and everything else
// runs elsewhere too: also a whole run asks it for no more.
const bpfBesideSystemd = "bpf,systemd"

// Rows is the whole matrix. The longest come first, so that none is left to run
// alone at the end; the native lane, which measures the disk that all guests write to,
// runs by itself.
func Rows() []Row {
	var rows []Row
	add := func(lane, kernel string, mode environ.Mode, more ...func(*Row)) {
		row := Row{Lane: lane, Kernel: kernel, Mode: mode}
		for _, m := range more {
			m(&row)
		}
		rows = append(rows, row)
	}
	short := func(r *Row) { r.Short = true }
	spare := func(r *Row) { r.Spare = true }
	extra := func(r *Row) { r.Extra = true }
	only := func(needs string) func(*Row) { return func(r *Row) { r.Only = needs } }
	of := func(suite string) func(*Row) { return func(r *Row) { r.Suite = suite } }
	at := func(path string) func(*Row) { return func(r *Row) { r.IOMount = path } }

	add(Full, kernel.Newest, environ.V2, of("trixie"), short)
	add(FullQEMU, kernel.Newest, environ.V2, of("trixie"), short, extra, only(bpfBesideSystemd), spare)
	add(UML, kernel.Newest, environ.V1)
	add(UML, kernel.Newest, environ.V2)
	// Emulation is for BPF, and by default for no more. With 6.1 the default matrix tries
	// the unusual places.
	add(QEMU, kernel.Newest, environ.V2, short, only("bpf"))
	add(QEMU, kernel.Newest, environ.V1, short, only("bpf"), spare)
	add(Full, kernel.Newest, environ.V1, of("bookworm"), short)
	add(UML, "6.1", environ.V2, at("/cgroup2"), short)
	add(UML, "6.1", environ.V1, at("/cgroup/blkio"), short)
	add(UML, "6.1", environ.Hybrid, short, spare)
	add(UML, "6.1", environ.Split, short, only("split"), spare)
	add(UML, "6.1", environ.V2, extra)
	add(UML, "6.1", environ.V1, extra)
	add(QEMU, "6.1", environ.V2, short, extra, only("bpf"))
	add(QEMU, "6.1", environ.V1, short, extra)
	for _, k := range []string{"5.10", "6.12"} {
		for _, lane := range []string{QEMU, UML} {
			add(lane, k, environ.V2, extra)
			add(lane, k, environ.V1, extra)
		}
	}
	add(UML, kernel.Newest, environ.Hybrid, short, extra)
	add(UML, kernel.Newest, environ.HybridV2, short, extra)
	add(Full, "6.1", environ.V2, of("bookworm"), short, extra)
	add(Full, kernel.Newest, environ.Hybrid, of("bookworm"), short, extra)
	add(Full, kernel.Newest, environ.V1, of("trixie"), short, extra)
	add(FullQEMU, "6.1", environ.V2, of("bookworm"), short, extra, only(bpfBesideSystemd), spare)
	add(Native, "", "", short)
	return rows
}

// Filter narrows the matrix; empty fields match everything.
type Filter struct {
	Kernel string
	Mode   string
	Lane   string
	All    bool // extra rows too, and all tests in those that a default run has only in part
	Usual  bool // rows as the default run has them
}

// Narrow reports whether the filter takes away any row of the default matrix.
func (f Filter) Narrow() bool { return f.Kernel != "" || f.Mode != "" || f.Lane != "" }

// Select gives the rows that a filter lets through. An asked-for kernel is found among
// the extra rows too, and so is the newest one of emulated full guests, which all are
// extra. newest are the versions that "newest" stands for, so that "-kernel 7.2" can find
// it; it may be empty.
func Select(f Filter, newest ...string) ([]Row, error) {
	var rows []Row
	for _, r := range Rows() {
		kernelFits := f.Kernel == "" || r.Kernel == f.Kernel ||
			r.Kernel == kernel.Newest && slices.Contains(newest, f.Kernel)
		if !kernelFits || f.Mode != "" && string(r.Mode) != f.Mode || f.Lane != "" && r.Lane != f.Lane {
			continue
		}
		if r.Extra && !f.All && f.Kernel == "" && (f.Lane != FullQEMU || r.Kernel != kernel.Newest) {
			continue
		}
		if f.All && r.Lane != FullQEMU && r.Mode != environ.Split {
			r.Only, r.Spare = "", false
		}
		if f.All && (r.Lane == Full || r.Lane == FullQEMU || r.Mode == environ.Hybrid || r.Mode == environ.HybridV2) { // of which the default run has no long one
			r.Short = false
		}
		if r.Lane == Native && (f.All || f.Lane == Native && !f.Usual) {
			r.Short = false
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("select guests: none has kernel %q, mode %q, lane %q; see -list", f.Kernel, f.Mode, f.Lane)
	}
	return rows, nil
}
