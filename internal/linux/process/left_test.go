package process

import "testing"

// A process that has left the others is told of, also when it has ended there; one that has come back
// or ended among them is not.
func TestLeft(t *testing.T) {
	for name, c := range map[string]struct {
		looks []table
		want  bool
	}{
		"stayed":            {[]table{{7: {Stat: Stat{1, 5, false}}}, {7: {Stat: Stat{1, 5, true}}}, {}}, false},
		"left":              {[]table{{7: {Stat: Stat{1, 5, false}}}, {7: {Stat: Stat{1, 5, false}, outside: true}}}, true},
		"left and ended":    {[]table{{7: {Stat: Stat{1, 5, false}}}, {7: {Stat: Stat{1, 5, false}, outside: true}}, {}}, true},
		"left and back":     {[]table{{7: {Stat: Stat{1, 5, false}}}, {7: {Stat: Stat{1, 5, false}, outside: true}}, {7: {Stat: Stat{1, 5, false}}}, {}}, false},
		"another elsewhere": {[]table{{7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 5, false}, outside: true}}, {7: {Stat: Stat{1, 5, false}}, 8: {Stat: Stat{1, 5, false}, outside: true}}}, false},
	} {
		var s Sum
		var p table
		for i := range c.looks {
			p = c.looks[i]
			s.Look(p.source(uint64(10 * (i + 1))))
		}
		if s.Left() != c.want {
			t.Errorf("%s: left: %t", name, s.Left())
		}
	}
}
