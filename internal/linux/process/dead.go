package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenMost bounds how many children of a process are asked whether they have ended.
const childrenMost = 64

// dead are the children of a process that have ended, and for which it has not waited yet. A kernel without
// CONFIG_PROC_CHILDREN lists none (proc_pid_children(5)). Of a process with many threads the first ones are asked.
func dead(pid int) (ended []int) {
	tasks := filepath.Join("/proc", strconv.Itoa(pid), "task")
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil
	}
	asked := 0
	for _, thread := range threads[:min(len(threads), threadsMost)] {
		text, err := os.ReadFile(filepath.Join(tasks, thread.Name(), "children"))
		if errors.Is(err, fs.ErrNotExist) && thread.Name() == strconv.Itoa(pid) { // the first one is there as long as the process is
			return nil
		}
		if err != nil { // a thread that has ended
			continue
		}
		for child := range strings.FieldsSeq(string(text)) {
			if asked++; asked > childrenMost {
				return ended
			}
			number, err := strconv.Atoi(child)
			if err != nil {
				continue
			}
			// With its first thread alone it has not: see SignalsOf.
			if stat, err := ReadStat(number); err != nil || !stat.Ended {
				continue
			}
			if all, err := SignalsOf(number); err == nil && all.Ended {
				ended = append(ended, number)
			}
		}
	}
	return ended
}
