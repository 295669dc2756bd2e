package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// childrenMost bounds how many children of a process are asked whether they have ended.
const childrenMost = 64

// dead are the children of a process that have ended, and for which it has not waited yet. A kernel without
// CONFIG_PROC_CHILDREN lists none (proc_pid_children(5)).
func dead(pid int) (ended []int) {
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/children"))
	if err != nil {
		return nil
	}
	asked := 0
	for _, list := range lists {
		text, err := os.ReadFile(list)
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
			if stat, err := ReadStat(number); err == nil && stat.Ended {
				ended = append(ended, number)
			}
		}
	}
	return ended
}
