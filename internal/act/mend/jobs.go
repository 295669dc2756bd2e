package mend

import (
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

// JobsOf lists the files that weir why found to be charged to other groups, each with the group
// that it is moved to. Where all writeback is the root group's, or it could not
// be read whose it is, the error says so.
func JobsOf(groups *cgroupfs.FS, t targets.Target, facts why.Facts) ([]Job, error) {
	var jobs []Job
	for _, file := range facts.Foreign() {
		into, err := writersGroup(groups, t.Group, file)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, Job{File: file, Into: into})
	}
	if len(jobs) > 0 {
		return jobs, nil
	}
	kept := false
	for _, p := range facts.Places {
		kept = kept || p.Writeback
		if p.OwnersErr != nil {
			return nil, p.OwnersErr
		}
	}
	if !kept {
		return nil, fault.With(&fault.Unsupported{Feature: "move the writeback of files to " + t.String(), Reason: "on this host the kernel charges all writeback to the root group"},
			fault.Remedy{Do: fault.TellWhy, Target: t.String()})
	}
	return nil, nil
}

// writersGroup is the group of the process that has a file open. If a person named the file, or
// the process has ended, it is the group of another process of the target.
func writersGroup(groups *cgroupfs.FS, g cgroupfs.Group, file inode.File) (cgroupfs.Group, error) {
	if file.PID != 0 {
		own, err := groups.OfProcess(g.Hierarchy(), file.PID)
		if err == nil && strings.HasPrefix(own.Path()+"/", strings.TrimSuffix(g.Path(), "/")+"/") {
			return own, nil
		}
	}
	return g.Inside()
}
