package limit

// An Asked is a requested limit and its place.
type Asked struct {
	// On is a path or a device; empty: every disk that the target has mounted.
	On    string `json:"on"`
	Limit Limit  `json:"limit"`
	Hold  Hold   `json:"hold,omitempty"` // what is to hold buffered writes, where that was named
}

// A Hold says what shall hold buffered writes. The zero Hold leaves that as it is.
type Hold string

// What holds buffered writes.
const (
	HoldKernel Hold = "kernel" // the kernel's rule, as far as it does
	HoldPacer  Hold = "pacer"  // weir's pacer
	HoldAuto   Hold = "auto"   // the kernel where it does, the pacer elsewhere
)

// ParseHold reads the value of a flag or of a record.
func ParseHold(word string) (Hold, error) {
	switch h := Hold(word); h {
	case HoldKernel, HoldPacer, HoldAuto:
		return h, nil
	}
	return "", &SyntaxError{"hold", word, "weir has no such way to hold writes", "write kernel, pacer or auto"}
}

// String is the word.
func (h Hold) String() string { return string(h) }

// Set and Type make a Hold the value of a flag.
func (h *Hold) Set(word string) (err error) {
	*h, err = ParseHold(word)
	return err
}

// Type names the flag's value.
func (h *Hold) Type() string { return "WHAT" }

// A Pacing is how weir's pacer holds a group.
type Pacing struct {
	Count string `json:"count"` // what it counts: see package pacer
	// KeptIn are files in which whoever makes the group keeps its limit. As long as there is
	// one of them the pacer holds the next group of that name too; none: this group alone.
	KeptIn []string `json:"kept_in,omitempty"`
}
