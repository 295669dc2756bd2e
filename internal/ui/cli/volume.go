package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/limit"
)

// Volume are the flags of weir volume.
type Volume struct {
	limits Limits
	size   string

	For    []string // targets
	FS, On string
}

// RegisterLimits adds those of a limit.
func (v *Volume) RegisterLimits(f *pflag.FlagSet) {
	v.limits.RegisterRates(f)
	f.StringArrayVar(&v.For, "for", nil, "also limit this `TARGET`; needed for its direct I/O, and on cgroup v2 (may be repeated)")
}

// RegisterSize adds that of the size.
func (v *Volume) RegisterSize(f *pflag.FlagSet) {
	f.StringVar(&v.size, "size", "", "the `SIZE` of the volume, such as 10GiB, 500MB or a number of bytes")
}

// RegisterNew adds those of a new volume.
func (v *Volume) RegisterNew(f *pflag.FlagSet) {
	v.RegisterSize(f)
	v.RegisterLimits(f)
	f.StringVar(&v.FS, "fs", volume.Formats()[0], "the file system `TYPE`: "+strings.Join(volume.Formats(), " or "))
	f.StringVar(&v.On, "on", "", "create the volume's file in `DIR` (default "+volume.Dir+")")
}

// Size is the size that was asked for, in whole blocks of 4 KiB.
func (v *Volume) Size(verb, what string) (uint64, error) {
	if v.size == "" {
		return 0, Usagef("volume %s %s: a size is needed; add --size 10GiB", verb, what)
	}
	n, err := limit.ParseSize(v.size)
	if err != nil {
		return 0, err
	}
	return n / 4096 * 4096, nil
}

// Spec is the volume that was asked for.
func (v *Volume) Spec(what string) (volume.Spec, error) {
	size, err := v.Size("create", what)
	if err != nil {
		return volume.Spec{}, err
	}
	l, err := v.Limit()
	if err == nil && !slices.Contains(volume.Formats(), v.FS) {
		err = Usagef("--fs %s: write %s", v.FS, strings.Join(volume.Formats(), " or "))
	}
	return volume.Spec{What: what, Size: size, FS: v.FS, Limit: l, For: v.For, On: v.On}, err
}

// Limit is the limit that was named; there is at most one.
func (v *Volume) Limit() (limit.Limit, error) {
	all, err := v.limits.Resolve()
	if err != nil || len(all) == 0 {
		return limit.Limit{}, err
	}
	return all[0].Limit, nil
}

// ForLimited refuses targets without a limit for them.
func (v *Volume) ForLimited(l limit.Limit) error {
	if len(v.For) > 0 && !l.Bounds() {
		return Usagef("volume: --for %s names a target, but no limit is named; add --read, --write, --read-iops or --write-iops", v.For[0])
	}
	return nil
}
