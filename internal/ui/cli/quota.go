package cli

import (
	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/limit"
)

// Quota are the flags of weir quota set.
type Quota struct {
	files, soft, softFiles string

	Force bool
}

// Register adds the flags to a verb.
func (q *Quota) Register(f *pflag.FlagSet) {
	f.StringVar(&q.files, "files", "", "allow at most `N` files and directories; max: no limit")
	f.StringVar(&q.soft, "soft", "", "a `SIZE` that may be exceeded only for the grace time of the file system (usually a week)")
	f.StringVar(&q.softFiles, "soft-files", "", "a number `N` of files that may be exceeded only for the grace time")
	f.BoolVar(&q.Force, "force", false, "set the quota even if more is stored already")
}

// Change reads the requested values.
func (q Quota) Change(size string) (c quota.Change, err error) {
	if size == "" {
		return c, Usagef("quota set: the size is empty; write 10GiB, 500MB or max")
	}
	for _, one := range []struct {
		text  string
		to    **uint64
		parse func(string) (uint64, error)
	}{{size, &c.Bytes, limit.ParseSize}, {q.soft, &c.SoftBytes, limit.ParseSize}, {q.files, &c.Files, limit.ParseCount}, {q.softFiles, &c.SoftFiles, limit.ParseCount}} {
		var n uint64
		switch one.text {
		case "":
			continue
		case "max":
		default:
			if n, err = one.parse(one.text); err != nil {
				return c, err
			}
		}
		*one.to = &n
	}
	return c, nil
}
