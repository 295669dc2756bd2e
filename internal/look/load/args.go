package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Arg is the argument that makes weir a load, for whoever wants one in a group of its own. The
// job's own arguments follow.
const Arg = "__load"

// Args spells a job as arguments for a process that Parses them:
//
//	direct write dir=/data block=65536 size=16777216 warm=300ms for=3s
func (j Job) Args() []string {
	direction := "write"
	if j.Read {
		direction = "read"
	}
	args := []string{string(j.Path), direction}
	if j.File != "" {
		args = append(args, "file="+j.File)
	}
	if j.Dir != "" {
		args = append(args, "dir="+j.Dir)
	}
	if j.Random {
		args = append(args, "random=true")
	}
	if j.Alone {
		args = append(args, "alone=true")
	}
	if j.Depth != 0 {
		args = append(args, "depth="+strconv.Itoa(j.Depth))
	}
	if j.Pace != 0 {
		args = append(args, "pace="+strconv.FormatInt(j.Pace, 10))
	}
	return append(args, "block="+strconv.Itoa(j.Block), "size="+strconv.FormatInt(j.Size, 10), "warm="+j.Warm.String(), "for="+j.For.String())
}

// Parse reads what Args wrote. Whether such a job can be, Run says.
func Parse(args []string) (Job, error) {
	if len(args) < 2 || args[1] != "read" && args[1] != "write" {
		return Job{}, fmt.Errorf("load: %q: want a path and a direction, read or write, first", strings.Join(args, " "))
	}
	j := Job{Path: Path(args[0]), Read: args[1] == "read"}
	for _, arg := range args[2:] {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return Job{}, fmt.Errorf("load: %q: want NAME=VALUE", arg)
		}
		if err := j.set(key, value); err != nil {
			return Job{}, fmt.Errorf("load: %s: %w", arg, err)
		}
	}
	return j, nil
}

func (j *Job) set(key, value string) (err error) {
	switch key {
	case "file":
		j.File = value
	case "dir":
		j.Dir = value
	case "random":
		j.Random, err = strconv.ParseBool(value)
	case "alone":
		j.Alone, err = strconv.ParseBool(value)
	case "depth":
		j.Depth, err = strconv.Atoi(value)
	case "block":
		j.Block, err = strconv.Atoi(value)
	case "size":
		j.Size, err = strconv.ParseInt(value, 10, 64)
	case "pace":
		j.Pace, err = strconv.ParseInt(value, 10, 64)
	case "warm":
		j.Warm, err = time.ParseDuration(value)
	case "for":
		j.For, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("no part of a job is called %q", key)
	}
	return err
}
