package running

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
)

// MemoryLeast is the smallest limit on memory, in bytes: a smaller one is a mistake, because no
// program can start with it. (In a systemd scope there must also be room for a weir, which waits
// there.)
const MemoryLeast = 1_000_000

// A Request asks for a command under limits.
type Request struct {
	Command []string         // with its arguments
	Asked   []limit.Asked    // their own Hold is not looked at
	Hold    limit.Hold       // of buffered writes; empty: limit.HoldAuto
	Memory  uint64           // most memory, with the page cache, in bytes; 0: no limit
	Name    string           // of the group; empty: one is chosen
	Version cgroupfs.Version // of the hierarchy to use; 0: the one that has a controller of disk I/O
}

// A Run is a command under limits: prepared, then made ready, then run.
type Run struct {
	// Notes are what is to be known before anything else.
	Notes []note.Note
	// Decided is what is expected to hold. Ready may change it, if the pacer is not available.
	Decided place.Decision
	// Outer are rates of Decided that nobody asked for as low as that: they bind weir itself.
	Outer []Outer

	host    *host.Host
	request Request
	options launch.Options
	group   cgroupfs.Group // the one that will be made, or one like it
	steps   []hold.Step
	outer   *cgroupfs.Group // weir's pacer holds it, and weir was started in it or below; nil: there is none
	apart   bool            // see launch.Command
	kept    bool            // the pacer is to hold the command as it holds outer, and nobody asked for that
	room    *launch.Room
}

// Prepare finds the devices of a request, and decides what will hold. It changes nothing. The Run
// has what was noted until an error, too.
func Prepare(ctx context.Context, h *host.Host, r Request) (*Run, error) {
	r.Hold = cmp.Or(r.Hold, limit.HoldAuto)
	run := &Run{host: h, request: r}
	if len(r.Command) == 0 {
		return run, fault.Misusef("run: no command is given")
	}
	if r.Memory != 0 && r.Memory < MemoryLeast {
		return run, fault.Misusef("run: a command needs at least %d bytes of memory", MemoryLeast)
	}
	places, skipped, err := place.Place(ctx, h.Devices(), r.Asked, []int{0})
	for _, s := range skipped {
		run.Notes = append(run.Notes, note.Noticef("no-device", "no limit on %s: %s", plain.Brief(s.Mount.Point), s.Reason))
	}
	if err != nil {
		return run, err
	}
	run.options = launch.Options{Name: r.Name, Command: strings.Join(r.Command, " "), MemoryMax: r.Memory, Version: r.Version,
		Changes: place.Changes(places), Linger: true}
	if run.group, run.steps, err = h.Launch().Plan(run.options); err != nil {
		return run, err
	}
	if places = run.takeOver(ctx, places); len(run.Outer) > 0 {
		run.options.Changes = place.Changes(places)
		if run.group, run.steps, err = h.Launch().Plan(run.options); err != nil {
			return run, err
		}
	}
	if r.Memory > 0 {
		run.Notes = append(run.Notes, note.Infof("memory-limit", "memory limit %s, with the page cache", limit.FormatSize(r.Memory)))
	}
	if run.Decided, err = h.Deciding().Decide(run.group, true, places, r.Hold); err == nil {
		run.keepPacer()
	}
	return run, err
}

// Steps lists what Ready would do, without doing it.
func (r *Run) Steps() ([]hold.Step, error) {
	switch d := r.Decided; {
	case d.Escapes != nil:
		return append(slices.Clip(r.steps), limiting.EscapesStep(r.group, d)), nil
	case d.Paced != nil:
		more, err := r.host.Launch().PaceSteps(r.group, d.Paced.WBPS, d.Paced.Devices)
		return append(slices.Clip(r.steps), more...), err
	}
	return r.steps, nil
}

// Ready makes the group, puts the limits into force, and has the pacer hold the group if that was
// decided. After an error nothing is left. The notes come with an error, too.
func (r *Run) Ready(ctx context.Context) (notes []note.Note, err error) {
	o := r.options
	o.Then = func(room *launch.Room) error {
		more, err := r.pace(room)
		notes = append(notes, more...)
		return err
	}
	if r.room, err = r.host.Launch().Prepare(ctx, o); err != nil {
		return notes, err
	}
	more, err := r.holdEscapes()
	if notes = append(notes, more...); err != nil {
		_, closing := r.room.Close()
		return notes, errors.Join(err, closing)
	}
	return notes, nil
}

// pace makes the pacer hold a room before the command is in it, if that was decided. If nobody
// asked for the pacer and it is not available, that is a warning, and the decision changes.
func (r *Run) pace(room *launch.Room) ([]note.Note, error) {
	if r.Decided.Paced == nil {
		return nil, nil
	}
	said, err := r.host.Launch().Pace(room)
	if err != nil && (r.Decided.Hold == limit.HoldAuto || r.kept) {
		notes := []note.Note{note.Warningf("no-pacer", "%v", err)}
		r.Decided, err = r.Decided.Without()
		return notes, err
	}
	if said != "" {
		return []note.Note{note.Warningf("pacer", "%s", said)}, err
	}
	return nil, err
}

// holdEscapes makes the pacer hold what escapes the room, if that was decided. If it cannot, the
// decision changes.
func (r *Run) holdEscapes() (notes []note.Note, err error) {
	if r.Decided.Escapes == nil {
		return nil, nil
	}
	some, err := r.host.Launch().PaceEscapes(r.room)
	if err != nil {
		notes = append(notes, note.Warningf("no-pacer", "%v", err))
	}
	if !some || err != nil {
		r.Decided, err = r.Decided.Without()
	}
	return notes, err
}

// Known is what to know about the command and its limits, once it is ready.
func (r *Run) Known() (notes []note.Note) {
	if r.Decided.Paced != nil && readsShort(r.request.Command) {
		notes = append(notes, note.Noticef("short-reads", "the pacer's pauses cut reads of /dev/zero and /dev/urandom short, so dd writes less than you asked for; add iflag=fullblock"))
	}
	io := r.room.IO
	return append(notes, limiting.Drain(r.host, io, limiting.MemoryOf(io), r.Decided)...)
}

// readsShort reports whether a command is a dd that takes part of a block for all of it: the
// kernel ends reads of these devices early for whatever stops the process.
func readsShort(args []string) bool {
	from, whole := false, false
	for _, arg := range args[1:] {
		from = from || slices.Contains([]string{"if=/dev/zero", "if=/dev/urandom", "if=/dev/random"}, arg)
		whole = whole || strings.HasPrefix(arg, "iflag=") && strings.Contains(arg, "fullblock")
	}
	return path.Base(args[0]) == "dd" && from && !whole
}

// Streams are what the command gets from the front end.
type Streams struct {
	Stdin, Stdout, Stderr *os.File
	Signals               *launch.Signals // handed on to it; nil: none are
}

// Do runs the command and waits for it, reads what it did, and removes the group. If something of
// it is left, a weir in the background removes the group later. The report comes with an error,
// too: it says whether the command has ended, and whether it was measured.
func (r *Run) Do(ctx context.Context, s Streams) (Report, error) {
	w := r.watch()
	defer closeWatcher(w)
	result, err := r.host.Launch().Run(ctx, r.room, launch.Command{Args: r.request.Command, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
		Signals: s.Signals, Rules: rulesOf(r.Decided), Watcher: w, Apart: r.apart})
	r.paced(&result, w)
	left, closing := r.room.Close()
	if left != launch.LeftNothing {
		closing = errors.Join(closing, launch.SweepLater())
	}
	report := Report{Result: result, Cgroup: r.room.IO.Path(), Left: left}
	if err == nil {
		report = reportOf(r.room.IO, r.Decided, r.request.Command[0], result)
		report.Left, report.Complete, report.Outer = left, true, r.Outer
	}
	return report, errors.Join(err, closing)
}

// rulesOf are the rules to be measured.
func rulesOf(decided place.Decision) []tally.Rule {
	var rules []tally.Rule
	for _, p := range decided.Places {
		rules = append(rules, tally.Rule{Device: p.Device.Number, Limit: p.Limit})
	}
	return rules
}
