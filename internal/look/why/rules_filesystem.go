package why

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/look/load"
)

// noDevice: the file system has no block device beneath that a limit could be on.
func noDevice(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if p.Err == nil {
			continue
		}
		found = append(found, Finding{Code: "no-block-device", Severity: Breaks, cells: everything.at(i),
			Text: "Nothing limits I/O to " + p.Spec + ": " + p.Err.Reason + ".", Evidence: fsEvidence(p)})
	}
	return found
}

// mountsWithout: mounts of the target that no limit can be on, whatever is done.
func mountsWithout(f Facts) []Finding {
	var names []string
	var evidence []Evidence
	for _, p := range f.Without {
		names = append(names, p.Spec)
		evidence = append(evidence, fsEvidence(p)...)
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{Code: "mount-without-device", Severity: Note, Evidence: evidence,
		Text: "Nothing limits I/O to " + strings.Join(names, ", ") + ": it has no block device."}}
}

func fsEvidence(p Place) []Evidence {
	if p.FS == nil {
		return nil
	}
	value := p.FS.FSType + " at " + p.FS.Point
	if p.FS.SuperOptions != "" {
		value += " (" + p.FS.SuperOptions + ")"
	}
	return []Evidence{{mountinfo, value}}
}

// dax: a file system on persistent memory that copies to and from it without the page cache and
// without requests to the device (Documentation/filesystems/dax.rst), so neither blk-throttle nor
// weir's pacer sees the I/O.
func dax(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if p.FS == nil || p.Err != nil || !p.FS.DAX() {
			continue
		}
		found = append(found, Finding{Code: "dax", Severity: Breaks, cells: everything.at(i), Evidence: fsEvidence(p),
			Text: "The file system is mounted with dax: reads and writes are copies to and from persistent memory, and pass every limit.",
			Fixes: []Fix{{Text: "mount it without dax", Lines: []string{"umount " + quote(p.FS.Point),
				"mount -o dax=never " + quote(p.FS.Source) + " " + quote(p.FS.Point)}}}})
	}
	return found
}

// dataJournal: ext4 with data=journal writes data through its journal, whose thread is in the
// root group, and does direct I/O through the page cache (ext4.rst, "data=journal"). Since
// 1f1a55f0bf06 (Linux 6.4) a process that syncs a file also writes it to its place, and is
// charged for that. Measured at a limit of 4 MB/s, on v1 and v2, the disk did: direct and
// buffered writes 33 to 113 MB/s; synchronous ones 50 MB/s on 6.1, and on 6.12 and 7.2 9.3 to
// 9.9 MB/s, of which 4.0 MB/s were charged.
func dataJournal(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if !p.dataJournal() {
			continue
		}
		one := Finding{Code: "ext4-data-journal", Severity: Breaks, cells: allWrites.at(i), Evidence: fsEvidence(p),
			Text: "ext4 is mounted with data=journal here: it writes all data through its journal, direct writes too, and the kernel charges the journal to the root group.",
			Fixes: []Fix{{Text: "mount it with data=ordered", Lines: []string{"umount " + quote(p.FS.Point),
				"mount -o data=ordered " + quote(p.FS.Source) + " " + quote(p.FS.Point)}}}}
		if f.Release.Major != 0 && !f.Release.Before(6, 4) {
			one.cells.paths = []load.Path{load.Direct, load.Buffered}
			one.Evidence = append(one.Evidence, f.releaseEvidence()...)
			one.Text = "ext4 is mounted with data=journal here: it writes all data through its journal, direct writes too, and the kernel charges the journal to the root group. Synchronous writes are held, but the disk does more than twice as much."
		}
		if f.paced(p) {
			one.Severity, one.Text = Note, "ext4 is mounted with data=journal here: the disk writes everything twice, to the journal and to its place."
		}
		found = append(found, one)
	}
	return found
}

func (p Place) dataJournal() bool { return p.FS != nil && p.Err == nil && p.FS.DataJournal() }

// journalWaits: in ordered mode ext4 ends a transaction once the data of the blocks that it has
// allocated is on the disk. An fsync of anybody's waits for that, and so for the data of a
// limited group that the throttle holds back. With delayed allocation and dioread_nolock,
// which are the default since 5.6 (244adf6426ee), blocks are allocated as unwritten, and
// nobody waits. Measured on 7.2, under 1 MB/s, beside a group that writes 3 MiB with an fsync
// each time: 3.1 s with dioread_lock and with nodelalloc, 0.16 s by default, 0.02 s with
// data=writeback.
func journalWaits(f Facts) []Finding {
	var found []Finding
	for i, p := range f.Places {
		if !f.onV2() || p.Err != nil || p.FS == nil || p.FS.FSType != "ext4" || p.dataJournal() || !p.Writeback || !p.bounds(false) {
			continue
		}
		options := strings.Split(p.FS.SuperOptions, ",")
		if slices.Contains(options, "data=writeback") {
			continue
		}
		evidence := fsEvidence(p)
		switch {
		case slices.Contains(options, "nodelalloc"), slices.Contains(options, "nodioread_nolock"), slices.Contains(options, "dioread_lock"): // the kernel prints the first of the last two
		case f.Release.Before(5, 6) && !slices.Contains(options, "dioread_nolock"):
			evidence = append(evidence, f.releaseEvidence()...)
		default:
			continue
		}
		found = append(found, Finding{Code: "journal-waits", Severity: Hurts, cells: scope{places: []int{i}}, Evidence: evidence,
			Text: "An fsync of another group on this file system can wait for data that this limit holds back. ext4 commits its journal only when the data of newly allocated blocks is on the disk.",
			Fixes: []Fix{{Text: "mount it with delalloc and dioread_nolock, the defaults of Linux 5.6 and later", Lines: []string{"umount " + quote(p.FS.Point),
				"mount -o delalloc,dioread_nolock " + quote(p.FS.Source) + " " + quote(p.FS.Point)}},
				{Text: "give the group a file system of its own: weir volume create"}}})
	}
	return found
}

// noCgroupWriteback: the file system is on a device, and what the kernel writes back
// for it is charged to the root group.
func noCgroupWriteback(f Facts) []Finding {
	if !f.onV2() {
		return nil
	}
	var found []Finding
	for i, p := range f.Places {
		if p.Err != nil || p.FS == nil || p.dataJournal() || f.paced(p) || !strings.Contains(p.WhyNot, "has no cgroup writeback") {
			continue
		}
		found = append(found, Finding{Code: "no-cgroup-writeback", Severity: Breaks, cells: writtenBack.at(i), Evidence: fsEvidence(p),
			Text:  p.FS.FSType + " does not tell the kernel which group dirtied a page, so the kernel charges writeback to the root group.",
			Fixes: []Fix{f.pace(), {Text: "keep the data on ext4, XFS, btrfs or f2fs"}, {Text: "write with O_DIRECT or O_DSYNC, which the limit holds"}}})
	}
	return found
}

// overlayAsync: between 16914e6fc7e1 (4.19) and 2406a307ac7d (5.6) overlayfs did
// asynchronous I/O synchronously.
func overlayAsync(f Facts) []Finding {
	if f.Release.Before(4, 19) || !f.Release.Before(5, 6) {
		return nil
	}
	places := f.placesWhere(func(p Place) bool {
		for _, l := range p.Chain.Layers {
			if l.Mount != nil && l.Mount.FSType == "overlay" {
				return true
			}
		}
		return false
	})
	if len(places) == 0 {
		return nil
	}
	return []Finding{{Code: "overlay-synchronous", Severity: Hurts, cells: everything.at(places...), Evidence: f.releaseEvidence(),
		Text: "overlayfs in this kernel does asynchronous I/O one request at a time, far slower than the disk (from 16914e6fc7e1 in 4.19 to 2406a307ac7d in 5.6).",
		Fixes: []Fix{{Text: "boot Linux 5.6 or later"},
			{Text: "give the container a volume for its data, which is not on overlayfs"}}}}
}
