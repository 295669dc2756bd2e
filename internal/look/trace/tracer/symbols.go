package tracer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// placesMax is PLACES_MAX of bpf/trace.h.
const placesMax = 512

// nowhere is below all addresses of the kernel, and less than half of 64 bits away from them,
// as the search needs it.
const nowhere = 1 << 63

// A place is struct place of bpf/trace.h: the meaning of the addresses from Start up to the
// next place; each wait is a bit.
type place struct {
	Start uint64
	Waits uint64
}

// A symbol is a line of /proc/kallsyms (Documentation/admin-guide/sysctl/kernel.rst,
// kptr_restrict, says who sees addresses there).
type symbol struct {
	address uint64
	waits   uint64 // what the function means; each wait is a bit
}

// errHidden says that the kernel shows no addresses.
var errHidden = errors.New("the kernel shows no addresses of its functions (kernel.kptr_restrict, or no CAP_SYSLOG)")

// readPlaces finds the waits' functions in /proc/kallsyms below a root.
func readPlaces(root string) ([placesMax]place, error) {
	f, err := os.Open(filepath.Join(root, "/proc/kallsyms"))
	if err != nil {
		return [placesMax]place{}, err
	}
	defer f.Close()
	symbols, err := readSymbols(f)
	if err != nil {
		return [placesMax]place{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return placesOf(symbols)
}

// readSymbols reads functions, sorted by address. It does not keep the names of functions
// without a meaning (the kernel has 150,000): their addresses only end the function before
// them.
func readSymbols(r io.Reader) ([]symbol, error) {
	meaning := meanings()
	var all []symbol
	hidden := true
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			break
		}
		address, rest, ok := bytes.Cut(lines.Bytes(), []byte(" "))
		if !ok || len(rest) < 3 || !strings.ContainsRune("tTwW", rune(rest[0])) {
			continue
		}
		at, err := strconv.ParseUint(string(address), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		hidden = hidden && at == 0
		name, _, _ := bytes.Cut(rest[2:], []byte("\t")) // a module's name is behind it
		name, _, _ = bytes.Cut(name, []byte("."))
		all = append(all, symbol{at, meaning[string(name)]})
	}
	if hidden {
		return nil, errHidden
	}
	slices.SortFunc(all, func(a, b symbol) int { return cmp.Compare(a.address, b.address) })
	return all, nil
}

// meanings are the waits' functions; each wait is a bit.
func meanings() map[string]uint64 {
	m := map[string]uint64{}
	for w, names := range waitFunctions {
		for _, name := range names {
			m[name] |= 1 << w
		}
	}
	return m
}

// placesOf marks where the functions of waits begin and end. Unused places are before all
// addresses and have no meaning; nor has the first place, which the search falls back to.
func placesOf(symbols []symbol) ([placesMax]place, error) {
	var found []place
	for i := 0; i < len(symbols); {
		at, meaning := symbols[i].address, uint64(0)
		for ; i < len(symbols) && symbols[i].address == at; i++ { // functions can share their code
			meaning |= symbols[i].waits
		}
		if n := len(found); meaning != 0 || n > 0 && found[n-1].Waits != 0 {
			found = append(found, place{at, meaning})
		}
	}
	var all [placesMax]place
	if len(found) >= placesMax {
		return all, fmt.Errorf("the kernel has %d functions to tell apart, and weir can handle at most %d", len(found), placesMax)
	}
	for i := range all[:placesMax-len(found)] {
		all[i].Start = nowhere
	}
	copy(all[placesMax-len(found):], found)
	return all, nil
}
