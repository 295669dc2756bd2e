package trace

import (
	"bufio"
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

// A place is struct place of bpf/trace.h: what addresses from Start on, up to the next
// place, mean; each wait is a bit.
type place struct {
	Start uint64
	Waits uint64
}

// A symbol is a line of /proc/kallsyms (Documentation/admin-guide/sysctl/kernel.rst says
// of kptr_restrict who sees addresses there).
type symbol struct {
	address uint64
	name    string
	module  string
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

// readSymbols reads functions, sorted by address.
func readSymbols(r io.Reader) ([]symbol, error) {
	var all []symbol
	seen := false
	for lines := bufio.NewScanner(r); ; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return nil, err
			}
			break
		}
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.Contains("tTwW", fields[1]) {
			continue
		}
		address, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		seen = seen || address != 0
		s := symbol{address: address, name: fields[2]}
		if len(fields) > 3 {
			s.module = fields[3]
		}
		all = append(all, s)
	}
	if !seen {
		return nil, errHidden
	}
	slices.SortStableFunc(all, func(a, b symbol) int { return cmp.Compare(a.address, b.address) })
	return all, nil
}

// placesOf marks where the waits' functions begin and end. Unused places are before all
// addresses, and mean nothing; so does the first, which the search falls back to.
func placesOf(symbols []symbol) ([placesMax]place, error) {
	meaning := map[string]uint64{}
	for w, names := range waitFunctions {
		for _, name := range names {
			meaning[name] |= 1 << w
		}
	}
	var found []place
	for i, s := range symbols {
		base, _, _ := strings.Cut(s.name, ".")
		bits := meaning[base]
		if bits == 0 {
			continue
		}
		if n := len(found); n > 0 && found[n-1].Start == s.address {
			found[n-1].Waits = bits
		} else {
			found = append(found, place{s.address, bits})
		}
		if end := next(symbols, i); end != 0 {
			found = append(found, place{end, 0})
		}
	}
	var all [placesMax]place
	if len(found) >= placesMax {
		return all, fmt.Errorf("the kernel has %d functions to be told apart, and %d are the most", len(found), placesMax)
	}
	copy(all[placesMax-len(found):], found)
	return all, nil
}

// next is where the function after a symbol begins; 0: nowhere.
func next(symbols []symbol, i int) uint64 {
	for _, s := range symbols[i+1:] {
		if s.address > symbols[i].address {
			return s.address
		}
	}
	return 0
}
