package why

import (
	"fmt"
	"strings"
)

// foreignInode: the writeback of a file is charged to the group that dirtied it first
// (cgroup-v2.rst, "Writeback"; inode->i_wb in fs/fs-writeback.c), even if that is gone.
func foreignInode(f Facts) []Finding {
	var found []Finding
	untold := map[string][]int{} // reason → places
	for i, p := range f.Places {
		switch {
		case !p.Writeback:
		case p.OwnersErr != nil:
			if p.File != "" {
				found = append(found, cannotTell(f, p, i))
			} else {
				untold[p.OwnersErr.Error()] = append(untold[p.OwnersErr.Error()], i)
			}
		default:
			found = append(found, foreign(f, p, i)...)
		}
	}
	for why, places := range untold {
		found = append(found, Finding{Code: "inode-not-known", Severity: Note, cells: throughCache.at(places...),
			Evidence: []Evidence{{"inode->i_wb", "not read: " + why}},
			Text:     "What is written to a file through the page cache is charged to the group that dirtied it first: held if that is this group, which cannot be told here."})
	}
	return found
}

// cannotTell is for a file that was named.
func cannotTell(f Facts, p Place, i int) Finding {
	cells := throughCache.at(i)
	cells.cannot = true
	return Finding{Code: "inode-not-known", Severity: Note, cells: cells,
		Evidence: []Evidence{{"inode->i_wb", "not read: " + p.OwnersErr.Error()}},
		Text:     "Writes through the page cache to " + p.File + " are held if the file's inode is this group's, which cannot be told here.",
		Fixes:    []Fix{{Text: "measure it", Lines: []string{"weir prove " + f.Target}}}}
}

func foreign(f Facts, p Place, i int) []Finding {
	var evidence []Evidence
	for _, o := range p.Owners {
		if o.Group == "" || o.Group == f.Group.Path || !o.Dead && strings.HasPrefix(o.Group, strings.TrimSuffix(f.Group.Path, "/")+"/") {
			continue
		}
		group := o.Group
		if o.Dead {
			group += " (gone)"
		}
		evidence = append(evidence, Evidence{o.Path, "written back for cgroup " + group})
	}
	if len(evidence) == 0 {
		return nil
	}
	cells := throughCache.at(i)
	what := p.File
	if what == "" {
		what = fmt.Sprintf("%d of the target's open files", len(evidence))
	}
	return []Finding{{Code: "foreign-inode", Severity: Breaks, cells: cells, Evidence: evidence,
		Text: "The kernel writes back " + what + " as another group's I/O, because that group dirtied it first, and this group's limit does not see it.",
		Fixes: []Fix{{Text: "write to a new file: cp FILE FILE.new && mv FILE.new FILE, from within the group"},
			{Text: "or have the kernel forget the file while nobody has it open", Lines: []string{"sync", "echo 2 > /proc/sys/vm/drop_caches"}}}}}
}
