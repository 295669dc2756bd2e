package why

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/inode"
)

// foreignInode: the writeback of a file is charged to the group that dirtied it first
// (cgroup-v2.rst, "Writeback"; inode->i_wb in fs/fs-writeback.c), even if that is gone.
func foreignInode(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if files := f.foreignAt(p); len(files) > 0 {
			found = append(found, f.foreign(p, i, files))
		}
	}
	var reasons []string
	untold := map[string][]int{} // reason → places
	for i, p := range f.Places {
		switch {
		case !p.Writeback || p.OwnersErr == nil || f.foreignPaced(p): // whose they are does not matter then
		case p.File != "":
			found = append(found, cannotTell(f, p, i))
		default:
			reason, _ := notRead(p.OwnersErr)
			if untold[reason] == nil {
				reasons = append(reasons, reason)
			}
			untold[reason] = append(untold[reason], i)
		}
	}
	for _, reason := range reasons {
		places := untold[reason]
		_, fixes := notRead(f.Places[places[0]].OwnersErr)
		found = append(found, Finding{Code: "inode-not-known", Severity: Note, cells: throughCache.at(places...),
			Evidence: []Evidence{{"inode->i_wb", "not read: " + reason}}, Fixes: fixes,
			Text: "The kernel charges buffered writes to a file to the group that dirtied the file first. They are held only if that is this group, which weir cannot tell here."})
	}
	return found
}

// notRead says why owners were not read, and what would help.
func notRead(err error) (reason string, fixes []Fix) {
	var cannot *bpf.Unavailable
	if !errors.As(err, &cannot) {
		return err.Error(), nil
	}
	if cannot.Remedy != "" {
		fixes = []Fix{{Text: cannot.Remedy}}
	}
	return cannot.Reason, fixes
}

// cannotTell is for a file that was named.
func cannotTell(f Facts, p Place, i int) Finding {
	cells := throughCache.at(i)
	cells.cannot = true
	reason, fixes := notRead(p.OwnersErr)
	if !f.Group.ToMake {
		fixes = append(fixes, Fix{Text: "measure it", Lines: []string{"weir prove " + quote(f.Target)}})
	}
	return Finding{Code: "inode-not-known", Severity: Note, cells: cells, Fixes: fixes,
		Evidence: []Evidence{{"inode->i_wb", "not read: " + reason}},
		Text:     "Buffered writes to " + p.File + " are held only if the kernel charges that file to this group, which weir cannot tell here."}
}

// Foreign lists the files whose writeback passes by the limits that the question is
// about, each once.
func (f Facts) Foreign() []inode.File {
	var all []inode.File
	for _, p := range f.Places {
		for _, file := range f.foreignAt(p) {
			if !slices.ContainsFunc(all, func(o inode.File) bool { return o.Device == file.Device && o.Inode == file.Inode }) {
				all = append(all, file)
			}
		}
	}
	return all
}

// foreignAt lists the foreign files of a place. If only reads have a limit, there is nothing
// that writes could bypass.
func (f Facts) foreignAt(p Place) []inode.File {
	if !p.Writeback || f.limited() && !p.bounds(false) {
		return nil
	}
	var foreign []inode.File
	for _, file := range p.Files {
		if f.isForeign(file.Owner) {
			foreign = append(foreign, file)
		}
	}
	return foreign
}

// isForeign reports whether the group's rules do not apply to an owner's writeback: they apply
// to child groups too. A group that will be made owns nothing yet, and a removed group may have
// had the path of an existing one.
func (f Facts) isForeign(o inode.Owner) bool {
	switch {
	case o.State == inode.Unkept:
		return !f.Group.Root
	case o.State != inode.Owned:
		return false
	case f.Group.ToMake, o.IO.Path == "":
		return true
	case o.IO.Path == f.Group.Path:
		return o.IO.Dead
	}
	return !strings.HasPrefix(o.IO.Path, strings.TrimSuffix(f.Group.Path, "/")+"/")
}

// filesShown bounds a finding's evidence.
const filesShown = 16

func (f Facts) foreign(p Place, i int, files []inode.File) Finding {
	found := Finding{Code: "foreign-inode", Severity: Breaks, cells: throughCache.at(i)}
	for _, file := range files[:min(len(files), filesShown)] {
		found.Evidence = append(found.Evidence, Evidence{Name(file), fmt.Sprintf("inode %d of %s, charged to %s", file.Inode, file.Device, Whose(file.Owner))})
	}
	what, which, them := Name(files[0]), Whose(files[0].Owner)+", which dirtied it first", "it"
	if files[0].Owner.State == inode.Unkept {
		which = Whose(files[0].Owner)
	}
	if n := len(files); n > 1 {
		what, which, them = fmt.Sprintf("%d files that the target has open for writing", n), "other groups, which dirtied them first", "them"
		if n > filesShown {
			what += fmt.Sprintf(" (%d are shown)", filesShown)
		}
	}
	found.Text = "The kernel writes back " + what + " and charges that to " + which
	switch paced := f.foreignPaced(p); {
	case paced:
		found.Severity = Note
		found.Text += ". This group's limit does not apply to it, but " + f.escapesHeld() + "."
		found.Evidence = append(found.Evidence, f.escapesRecord()...)
	case f.Group.ToMake:
		found.Text += "; the limits of other groups do not apply to it."
	default:
		found.Text += ", so the limits of this group do not apply to it."
	}
	if f.Group.ToMake {
		found.Fixes = append(found.Fixes, Fix{Text: "start the command with weir run, and then move the file to its group: weir why cgroup:/GROUP --on " + quote(p.File) + " --mend"})
	} else {
		found.Fixes = append(found.Fixes, Fix{Text: "move " + them + " to this group; this changes mtime and ctime, and drops the clean pages of " + them + " from the page cache",
			Lines: []string{"weir why " + quote(f.Target) + f.placeFlag(p) + " --mend"}})
	}
	found.Fixes = append(found.Fixes, f.escapesFix(p)...)
	found.Fixes = append(found.Fixes, Fix{Text: "write to a new file: run cp FILE FILE.new && mv FILE.new FILE in this group"})
	return found
}

// placeFlag repeats how the place was named.
func (f Facts) placeFlag(p Place) string {
	switch {
	case p.File != "":
		return " --on " + quote(p.File)
	case p.Named:
		return " --on " + quote(p.Spec)
	}
	return ""
}

// Name names a file for people.
func Name(file inode.File) string {
	if file.Path == "" {
		return fmt.Sprintf("inode %d", file.Inode)
	}
	return plain.Quoted(file.Path)
}

// Whose names the group that writeback is charged to, for people.
func Whose(o inode.Owner) string {
	g := o.IO
	name := g.Path
	if name == "" && g.Name != "" {
		name = ".../" + g.Name
	}
	name = plain.Quoted(name)
	switch {
	case o.State == inode.Nobody:
		return "nobody yet"
	case o.State != inode.Owned:
		return "the root group (its file system keeps no owners)"
	case g.Root:
		return "the root group"
	case g.Dead && name == "":
		return "a removed group"
	case g.Dead:
		return "a removed group (" + name + ")"
	case name == "":
		return "a group that cannot be seen from here"
	}
	return "cgroup " + name
}

// quote spells text as one word for a shell.
func quote(word string) string { return cmdline.Quote(word) }
