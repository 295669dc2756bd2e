package text

import (
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/ui/cli"
)

// remedies are what a user of the command line can do about limits. %[1]s is the remedy's target, and %[2]s
// what else takes part.
func remedies() map[fault.Do]string {
	return map[fault.Do]string{
		fault.LimitAll:     "add --whole-cgroup if you mean all of them, or start the command with weir run",
		fault.LimitRoot:    "add --whole-cgroup if you mean that",
		fault.NameDevice:   "name a device with --on",
		fault.NameDisk:     "name a disk with --on",
		fault.NameUnit:     "leave out --persist, or name a systemd unit",
		fault.NameService:  "leave out --persist, or name a service or a slice",
		fault.DoNotKeep:    "leave out --persist",
		fault.GiveUnitFile: "leave out --persist, or give it a unit file",
		fault.KeepByPlan:   "leave out --persist and have weird set it by a plan, or name the whole disk with --on",
		fault.DropHold:     "leave out --hold or --persist",
		fault.Keep:         "add --persist to keep it",
		fault.KeepOnRecord: "add --persist to have weir restore set it again",
		fault.KeepAtStart:  "add --persist to set it at each start",
		fault.KeepChange:   "add --persist to change it",
		fault.SetByPlan:    "weird sets it again if a plan has it",
		fault.Clear:        "weir clear removes it",
		fault.RestoreBoot:  "to have systemd run that at boot: weir restore --at-boot",
		fault.SetAgain:     "repeat weir set %[1]s then",
		fault.HoldAgain:    "to hold buffered writes again, repeat weir set %[1]s",
		fault.HoldForeign:  "to hold writes to other groups' files again, repeat weir set %[1]s",
		fault.Mend:         "weir why %[1]s --mend moves it to %[1]s's group",
		fault.AskWhy:       "weir why %[1]s says what helps",
		fault.ShowOnly:     "add --dry-run to see what would be written",
		fault.Save:         "weir set %[1]s --persist saves one",

		fault.SetFirst:     "set one with weir set %[1]s --write 10MB/s, or leave out the target to measure in a new group",
		fault.NameSpot:     "name a directory with --on DIR, or watch the target's own I/O with --observe 10s",
		fault.OtherKinds:   "choose other --paths; the notes say why these cannot be tried",
		fault.NameOne:      "name one with --on DIR",
		fault.NameDir:      "name a directory with --on",
		fault.AddDirect:    "add direct to --paths",
		fault.AllRows:      "add --all",
		fault.ProveAlone:   "measure that limit alone, in a new group",
		fault.OtherSystem:  "name a directory on another file system with --on DIR",
		fault.DropTarget:   "to measure it in a new group, leave out the target",
		fault.DropOther:    "leave out --neighbour",
		fault.NameOtherDir: "name another directory with --on",
		fault.WriteLess:    "write --size %[1]s or less, or name another directory",
		fault.TellWhy:      "weir why %[1]s says why",
		fault.DropPlace:    "leave out --on %[1]s",

		fault.UseV1:     "use v1 (leave out --cgroup), or boot with cgroup_no_v1=blkio,memory",
		fault.UseV2:     "use v2 (leave out --cgroup)",
		fault.AskHost:   "leave out --root",
		fault.Record:    "record one: weird metrics --history %[1]s",
		fault.OtherTime: "see weird metrics --history, and name a time when it ran",
		fault.OlderTime: "write the name as weir top shows it, such as docker:web, or go back further with --since",
	}
}

// Remedy spells what a user of the command line can do; empty for the zero Remedy. A name in it is
// quoted for a shell: the user copies the command.
func Remedy(r fault.Remedy) string {
	words, is := remedies()[r.Do]
	if !is {
		words = remediesOfSpace()[r.Do]
	}
	target := plain.Line(r.Target)               // it begins no line of what joined errors say
	if target != "" && r.Do != fault.WriteLess { // whose target is a size
		target = cli.Quote(target)
	}
	return strings.NewReplacer("%[1]s", target, "%[2]s", plain.Line(r.Also)).Replace(words)
}

// Notes says what the core has noted.
func Notes(out *cli.Out, notes []note.Note) {
	for _, n := range notes {
		out.Say("%s", withRemedy(n.String(), n.Remedy))
	}
}

func withRemedy(text string, r fault.Remedy) string {
	if words := Remedy(r); words != "" {
		text += "; " + words
	}
	return text
}

// A spelled error has the words of the command line.
type spelled struct {
	error
	text string
}

func (e *spelled) Error() string { return e.text }
func (e *spelled) Unwrap() error { return e.error }

// Plain is the text for a terminal: see plain.Error.
func (e *spelled) Plain() string { return plain.Reworded(e.error, wordsOf) }

// Error is an error of the core in the words of the command line: what was asked, in flags, and
// what the user can do.
func Error(err error) error {
	if err == nil {
		return nil
	}
	s := speller{text: err.Error()}
	s.walk(err)
	if s.text == err.Error() {
		return err
	}
	return &spelled{err, s.text}
}

// A speller goes through the text of an error from the beginning.
type speller struct {
	text string
	done int // bytes of the text
}

// words are what the command line says for an error, of which said is the text.
func words(err error, said string) (text string, is bool) {
	switch err := err.(type) {
	case *fault.Remedied:
		return withRemedy(said, err.Remedy), true
	case *keep.Refused:
		return withRemedy("set "+err.Target+" --persist: "+err.Why, err.Remedy), true
	case *place.NothingToPaceError:
		if err.Why != "" {
			return "--hold pacer: " + err.Why + "; leave out --hold", true
		}
		return "--hold pacer: the pacer holds bytes written, and no --write limit is named; add --write, or leave out --hold", true
	}
	return "", false
}

// wordsOf are words, made safe for a terminal. Those of a remedied error are of as many lines as the error is.
func wordsOf(err error) (text string, is bool) {
	if r, is := err.(*fault.Remedied); is {
		return words(r, plain.Error(r))
	}
	if text, is = words(err, ""); is {
		return plain.Line(text), true
	}
	if u, wraps := err.(interface{ Unwrap() error }); wraps && u.Unwrap() != nil && !strings.Contains(err.Error(), u.Unwrap().Error()) {
		s := speller{text: err.Error()} // it says that in words of its own, in which a part may be found
		s.walk(err)
		return plain.Line(s.text), true
	}
	return "", false
}

// walk spells what an error wraps, in the order of the text.
func (s *speller) walk(err error) {
	if text, is := words(err, err.Error()); is {
		s.replace(err.Error(), text)
		return
	}
	switch err := err.(type) {
	case *spelled:
		s.replace(err.text, err.text)
	case interface{ Unwrap() error }:
		if inner := err.Unwrap(); inner != nil {
			s.walk(inner)
		}
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			s.walk(one)
		}
	}
}

func (s *speller) replace(old, new string) {
	if at := strings.Index(s.text[s.done:], old); at >= 0 {
		at += s.done
		s.text, s.done = s.text[:at]+new+s.text[at+len(old):], at+len(new)
	}
}
