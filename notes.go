package weir

import (
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/note"
)

// A Level says how much a note matters.
type Level string

// The levels.
const (
	Info    Level = "info"    // what is done, or expected
	Notice  Level = "note"    // what a reader of the result must know
	Warning Level = "warning" // what may do harm
)

// A Note is one thing to know beside a result or an error.
type Note struct {
	Code   string // stable, for programs
	Level  Level
	Text   string // one sentence, for people
	Remedy Remedy // what can be done about it; the zero Remedy: nothing has to be
}

// String is the text, with the remedy behind it.
func (n Note) String() string { return withRemedy(n.Text, n.Remedy) }

// A Remedy is what can be done about a note or an error. The zero Remedy is none.
type Remedy struct {
	Do     string // stable, for programs: "limit-all"
	Target string // what it is done to, where that is not plain
}

// remedies are the words for each thing to do. % is the remedy's target.
func remedies() map[fault.Do]string {
	return map[fault.Do]string{
		fault.LimitAll:     "set Whole to limit them all",
		fault.LimitRoot:    "set Whole if you mean that",
		fault.NameDevice:   "name a device in On",
		fault.NameDisk:     "name a disk in On",
		fault.NameUnit:     "do not set Persist, or name a systemd unit",
		fault.NameService:  "do not set Persist, or name a service or a slice",
		fault.DoNotKeep:    "do not set Persist",
		fault.GiveUnitFile: "do not set Persist, or give it a unit file",
		fault.KeepByPlan:   "do not set Persist and have weird set it by a plan, or name the whole disk in On",
		fault.DropHold:     "do not set Hold or Persist",
		fault.Keep:         "set Persist to keep it",
		fault.KeepOnRecord: "set Persist to have weir restore set it again",
		fault.KeepAtStart:  "set Persist to set it at each start",
		fault.KeepChange:   "set Persist to change it",
		fault.SetByPlan:    "weird sets it again if a plan has it",
		fault.Clear:        "Clear removes it",
		fault.RestoreBoot:  "weir restore --at-boot has systemd run that at boot",
		fault.SetAgain:     "repeat Set for % then",
		fault.HoldAgain:    "to hold buffered writes again, repeat Set for %",
		fault.HoldForeign:  "to hold writes to other groups' files again, repeat Set for %",
		fault.Mend:         "weir why % --mend moves it to the group of %",
		fault.AskWhy:       "Why % says what helps",
		fault.DropPlace:    "leave On empty instead of %",
		fault.ShowOnly:     "set DryRun to see what would be done",
		fault.SetFirst:     "Set a limit first",
		fault.NameSpot:     "name a directory in Dirs, or set Observe",
		fault.OtherKinds:   "name other Paths; the notes say why these cannot be tried",
		fault.NameOne:      "name one in Dirs",
		fault.NameDir:      "name a directory in Dirs",
		fault.AddDirect:    "add \"direct\" to Paths",
		fault.AllRows:      "set All",
		fault.OtherSystem:  "name a directory on another file system in Dirs",
		fault.ProveAlone:   "the command weir prove measures that limit alone, in a new group",
		fault.DropTarget:   "the command weir prove measures it in a new group",
		fault.DropOther:    "measure without a neighbour",
		fault.NameOtherDir: "name another directory in Dirs",
		fault.UseV1:        "leave CgroupVersion 0, or boot with cgroup_no_v1=blkio,memory",
		fault.UseV2:        "leave CgroupVersion 0",
		fault.AskHost:      "leave Root empty",
	}
}

// withRemedy is a text with what can be done behind it.
func withRemedy(text string, r Remedy) string {
	if words := remedies()[fault.Do(r.Do)]; words != "" {
		return text + "; " + strings.ReplaceAll(words, "%", r.Target)
	}
	return text
}

func remedyOf(r fault.Remedy) Remedy { return Remedy{Do: string(r.Do), Target: r.Target} }

// notesOf are notes of the core, in this package's form.
func notesOf(notes []note.Note) []Note {
	var all []Note
	for _, n := range notes {
		all = append(all, Note{Code: n.Code, Level: Level(n.Level), Text: n.Text, Remedy: remedyOf(n.Remedy)})
	}
	return all
}
