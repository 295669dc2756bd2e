package tracer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// As /proc/kallsyms has them: not sorted, modules last, with what compilers and the
// kernel's own list add.
const someSymbols = `ffffffff81000000 T _text
ffffffff81000000 T startup_64
0000000000000000 A fixed_percpu_data
ffffffff81300000 T balance_dirty_pages_ratelimited
ffffffff81300040 t __pfx_balance_dirty_pages
ffffffff81300050 t balance_dirty_pages.isra.0
ffffffff81301000 T vfs_write
ffffffff81200000 T io_schedule
ffffffff81200080 W weak_one
ffffffff81200100 D io_schedule
ffffffff81400000 T get_signal
ffffffff81400000 t do_freezer_trap
ffffffff81400100 t after_the_trap
ffffffff81c00000 t balance_dirty_pages.isra.0.cold
ffffffff81c00010 t vfs_write.cold
ffffffffc0100000 t jbd2_log_wait_commit	[jbd2]
ffffffffc0100200 t jbd2_journal_other	[jbd2]
ffffffffc0200000 t bpf_prog_6deef7357e7b4530_x	[bpf]
`

// waitsAt searches as bpf/trace.bpf.c does: the last place at or before an address.
func waitsAt(places *[placesMax]place, address uint64) uint64 {
	at := uint64(0)
	for step := uint64(placesMax / 2); step > 0; step >>= 1 {
		at += step &^ uint64(int64(address-places[at+step].Start)>>63)
	}
	return places[at].Waits
}

func TestPlaces(t *testing.T) {
	symbols, err := readSymbols(strings.NewReader(someSymbols))
	if err != nil {
		t.Fatal(err)
	}
	places, err := placesOf(symbols)
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[uint64]uint64{
		0xffffffff81000000: 0,
		0xffffffff81200000: 1 << waitIO,
		0xffffffff8120007f: 1 << waitIO,
		0xffffffff81200080: 0,
		0xffffffff81200100: 0, // data, not a function
		0xffffffff812fffff: 0,
		0xffffffff81300010: 1 << waitDirty,
		0xffffffff81300045: 0,
		0xffffffff81300123: 1 << waitDirty,
		0xffffffff81301000: 0,
		0xffffffff81400020: 1 << waitFrozen, // two functions, one code
		0xffffffff81400100: 0,
		0xffffffff81c00005: 1 << waitDirty,
		0xffffffff81c00015: 0,
		0xffffffffc0100100: 1 << waitJournal,
		0xffffffffc0100200: 0,
		0xffffffffffffffff: 0,
		0x00007fffffffffff: 0, // not the kernel's
	} {
		if got := waitsAt(&places, address); got != want {
			t.Errorf("at %x: %b, want %b", address, got, want)
		}
	}
}

func TestPlacesAreSorted(t *testing.T) {
	symbols, err := readSymbols(strings.NewReader(someSymbols))
	if err != nil {
		t.Fatal(err)
	}
	places, err := placesOf(symbols)
	if err != nil {
		t.Fatal(err)
	}
	if places[0].Waits != 0 {
		t.Errorf("the first place means %b", places[0].Waits)
	}
	for i, p := range places[1:] {
		if p.Start < places[i].Start {
			t.Errorf("place %d is at %x, after %x", i+1, p.Start, places[i].Start)
		}
	}
}

func TestHiddenAddresses(t *testing.T) {
	var zeros strings.Builder
	for line := range strings.Lines(someSymbols) {
		zeros.WriteString(strings.Repeat("0", 16) + line[16:])
	}
	for name, text := range map[string]string{"zeros": zeros.String(), "empty": ""} {
		if _, err := readSymbols(strings.NewReader(text)); !errors.Is(err, errHidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadPlaces(t *testing.T) {
	root := t.TempDir()
	if _, err := readPlaces(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	file := filepath.Join(mkdir(t, root, "proc"), "kallsyms")
	if err := os.WriteFile(file, []byte("nonsense T x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPlaces(root); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a line without an address: %v", err)
	}
	if err := os.WriteFile(file, []byte(someSymbols), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPlaces(root); err != nil {
		t.Error(err)
	}
}

func TestTooManyPlaces(t *testing.T) {
	var all []symbol
	for i := range uint64(placesMax) {
		all = append(all, symbol{nowhere + 2*i + 1, 1}, symbol{nowhere + 2*i + 2, 0})
	}
	if _, err := placesOf(all); err == nil {
		t.Error("more places than there is room for are accepted")
	}
	// As many as can be: the first place stays free.
	if _, err := placesOf(all[:placesMax-2]); err != nil {
		t.Error(err)
	}
}

// The functions of all waits fit, even if each of them were in two pieces, hot and cold.
func TestAllWaitsFit(t *testing.T) {
	n := 0
	for _, names := range waitFunctions {
		n += len(names)
	}
	if most := 4 * n; most >= placesMax {
		t.Errorf("%d functions can make %d places, there is room for %d", n, most, placesMax)
	}
}
