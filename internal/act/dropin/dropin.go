package dropin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

// Path returns the path of a unit's drop-in. The unit's name must be valid for systemd. A
// scope's drop-in sorts before those that systemd makes itself, so that settings until the
// scope's end override it.
func Path(unit string) string {
	name := "50-weir.conf"
	if strings.HasSuffix(unit, ".scope") {
		name = "40-weir.conf"
	}
	return path.Join("/etc/systemd/system", unit+".d", name)
}

// saved begins the line that holds the entries.
const saved = "# limits: "

// Parse reads the entries of a drop-in.
func Parse(text string) ([]limit.Asked, error) {
	for line := range strings.Lines(text) {
		data, ok := strings.CutPrefix(line, saved)
		if !ok {
			continue
		}
		var entries []limit.Asked
		if err := json.Unmarshal([]byte(data), &entries); err != nil {
			return nil, fmt.Errorf("parse the line %q: %w", strings.TrimSpace(saved), err)
		}
		return entries, nil
	}
	return nil, fmt.Errorf("no line %q: it is not weir's", strings.TrimSpace(saved))
}

// Merge adds a limit to those of a drop-in. It replaces rates of the same place and moves the
// place to the end, where it overrides other names of the same device. The setting of what
// holds buffered writes stays while they are limited, unless another one is named.
func Merge(entries []limit.Asked, named limit.Asked) []limit.Asked {
	merged := slices.DeleteFunc(slices.Clone(entries), func(e limit.Asked) bool {
		if e.On == named.On {
			named.Limit = e.Limit.Overlay(named.Limit)
			named.Hold = cmp.Or(named.Hold, e.Hold)
		}
		return e.On == named.On
	})
	if _, bound := named.Limit.Get(limit.WBPS).Number(); !bound {
		named.Hold = ""
	}
	return append(merged, named)
}

// Text is the drop-in of a service. The program is weir, by its path; flags spells an
// entry for it. A weir that is gone, or fails, does not keep the unit from starting.
func Text(unit, program string, entries []limit.Asked, flags func(limit.Asked) []string) (string, error) {
	data, err := json.Marshal(entries)
	if err != nil {
		return "", err
	}
	if err := places(entries); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by weir set --persist. weir clear unit:%s removes it.\n%s%s\n[Service]\n", plain.Line(unit), saved, data)
	// The unit's own group in the hierarchy of blkio: v1's name of it, and v2's.
	b.WriteString("BlockIOAccounting=yes\nIOAccounting=yes\n")
	for _, e := range entries {
		b.WriteString("ExecStartPost=-+" + quote(program))
		for _, word := range append([]string{"set", "unit:" + unit, "--quiet"}, flags(e)...) {
			b.WriteString(" " + quote(word))
		}
		b.WriteString("\n")
	}
	return b.String(), plain.Unit(b.String())
}

// ScopeText is the drop-in of a scope: a program makes that anew each time with the same
// name, as Docker does for a container, and systemd itself sets what the drop-in has.
// settings spells an entry as systemd does. named is the target that it is for.
func ScopeText(named string, entries []limit.Asked, settings func(limit.Asked) []string) (string, error) {
	data, err := json.Marshal(entries)
	if err != nil {
		return "", err
	}
	if err := places(entries); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by weir set --persist. weir clear %s removes it.\n%s%s\n[Scope]\n", plain.Line(named), saved, data)
	for _, e := range entries {
		for _, line := range settings(e) {
			b.WriteString(line + "\n")
		}
	}
	return b.String(), plain.Unit(b.String())
}

// places refuses places that systemd's files cannot hold: JSON would change a name that is no
// UTF-8, and systemd would pass the line over.
func places(entries []limit.Asked) error {
	for _, e := range entries {
		if err := plain.Value("the place", e.On); err != nil {
			return err
		}
	}
	return nil
}

// quote spells a word for systemd (systemd.service(5), "Command lines"): without its
// specifiers and variables.
func quote(word string) string {
	var b strings.Builder
	plain := word != ""
	for _, c := range []byte(word) {
		switch {
		case c == '%' || c == '$':
			b.WriteByte(c)
			b.WriteByte(c)
		case c == '"' || c == '\\':
			plain = false
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			plain = false
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			plain = plain && c != ' ' && c != '\'' && c != ';'
			b.WriteByte(c)
		}
	}
	if plain {
		return b.String()
	}
	return `"` + b.String() + `"`
}
