package load

import (
	"fmt"
	"strconv"
	"time"
)

// Args spells a job as arguments for a process that Parses them.
func (j Job) Args() []string {
	direction := "write"
	if j.Read {
		direction = "read"
	}
	return []string{string(j.Path), direction, j.File, strconv.Itoa(j.Block), strconv.FormatInt(j.Size, 10), j.Warm.String(), j.For.String()}
}

// Parse reads what Args wrote.
func Parse(args []string) (Job, error) {
	if len(args) != 7 {
		return Job{}, fmt.Errorf("load: %d arguments, want 7", len(args))
	}
	j := Job{Path: Path(args[0]), Read: args[1] == "read", File: args[2]}
	var err error
	if j.Block, err = strconv.Atoi(args[3]); err != nil {
		return Job{}, fmt.Errorf("load: block %q: not a number", args[3])
	}
	if j.Size, err = strconv.ParseInt(args[4], 10, 64); err != nil {
		return Job{}, fmt.Errorf("load: size %q: not a number", args[4])
	}
	if j.Warm, err = time.ParseDuration(args[5]); err != nil {
		return Job{}, fmt.Errorf("load: warm-up %q: not a time", args[5])
	}
	if j.For, err = time.ParseDuration(args[6]); err != nil {
		return Job{}, fmt.Errorf("load: time %q: not a time", args[6])
	}
	return j, nil
}
