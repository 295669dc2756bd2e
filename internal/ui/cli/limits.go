package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/limit"
)

// Limits collects the flags that spell limits, in the order they were given.
type Limits struct {
	words []word
}

// A word is one flag: a rate, or the place that rates are for.
type word struct {
	on   string // --on's value; empty for a rate
	key  limit.Key
	rate limit.Rate
	own  bool // Docker's spelling: the rate has its device with it
}

// Register adds the flags to a verb.
func (l *Limits) Register(flags *pflag.FlagSet) {
	l.RegisterRates(flags)
	l.RegisterOn(flags, "`PATH|DEVICE` that the limit is on: a path, a device node, a device name or MAJ:MIN (default: every disk that the target has mounted)")
	l.add(flags, "device-read-bps", "DEV:RATE", "`DEV:RATE`, as in Docker's flag of this name (units are powers of 1024)", docker(limit.RBPS, limit.ParseDockerBytes))
	l.add(flags, "device-write-bps", "DEV:RATE", "`DEV:RATE`, as in Docker's flag of this name", docker(limit.WBPS, limit.ParseDockerBytes))
	l.add(flags, "device-read-iops", "DEV:N", "`DEV:N`, as in Docker's flag of this name", docker(limit.RIOPS, limit.ParseDockerOps))
	l.add(flags, "device-write-iops", "DEV:N", "`DEV:N`, as in Docker's flag of this name", docker(limit.WIOPS, limit.ParseDockerOps))
}

// RegisterRates adds the rates alone, for a verb whose limit is on one place.
func (l *Limits) RegisterRates(flags *pflag.FlagSet) {
	l.add(flags, "read", "RATE", "limit reading to this `RATE` in bytes per second, such as 10MB/s, 10MiB/s, 500 or max", rate(limit.RBPS, limit.ParseBytes))
	l.add(flags, "write", "RATE", "limit writing to this `RATE` in bytes per second", rate(limit.WBPS, limit.ParseBytes))
	l.add(flags, "read-iops", "N", "limit reading to `N` operations per second, such as 500, 1.5k or max", rate(limit.RIOPS, limit.ParseOps))
	l.add(flags, "write-iops", "N", "limit writing to `N` operations per second", rate(limit.WIOPS, limit.ParseOps))
}

// RegisterOn adds --on alone, and says what it is for.
func (l *Limits) RegisterOn(flags *pflag.FlagSet, usage string) {
	l.add(flags, "on", "PATH|DEVICE", usage,
		func(s string) (word, error) {
			if s == "" {
				return word{}, Usagef("a path or a device is needed")
			}
			return word{on: s}, nil
		})
}

func rate(key limit.Key, parse func(string) (limit.Rate, error)) func(string) (word, error) {
	return func(s string) (word, error) {
		r, err := parse(s)
		return word{key: key, rate: r}, err
	}
}

func docker(key limit.Key, parse func(string) (limit.Rate, error)) func(string) (word, error) {
	return func(s string) (word, error) {
		i := strings.LastIndexByte(s, ':')
		if i <= 0 {
			return word{}, Usagef("%q: write DEVICE:RATE, such as /dev/sda:1mb", s)
		}
		r, err := parse(s[i+1:])
		return word{on: s[:i], key: key, rate: r, own: true}, err
	}
}

// HoldFlag adds --hold to a verb.
func HoldFlag(flags *pflag.FlagSet, into *limit.Hold, usual limit.Hold) {
	*into = usual
	flags.Var(into, "hold", "`WHAT` holds buffered writes: kernel, pacer (pauses the processes for moments), or auto (the pacer where the kernel does not)")
}

func (l *Limits) add(flags *pflag.FlagSet, name, metavar, usage string, parse func(string) (word, error)) {
	flags.Var(&value{l, metavar, parse}, name, usage)
}

// value makes a flag append to the words.
type value struct {
	limits  *Limits
	metavar string
	parse   func(string) (word, error)
}

func (v *value) String() string { return "" }
func (v *value) Type() string   { return v.metavar }
func (v *value) Set(s string) error {
	w, err := v.parse(s)
	if err == nil {
		v.limits.words = append(v.limits.words, w)
	}
	return err
}

// Resolve puts rates and places together. Rates followed by places are for all of
// those ("--write 10M --on A --on B"); places followed by rates likewise ("--on A
// --write 10M --on B --write 5M"); the first flag says which order it is.
func (l *Limits) Resolve() ([]limit.Asked, error) {
	var result []limit.Asked
	var plain []word
	for _, w := range l.words {
		if w.own {
			result = append(result, limit.Asked{On: w.on, Limit: limit.Limit{}.With(w.key, w.rate)})
		} else {
			plain = append(plain, w)
		}
	}
	for len(plain) > 0 {
		var group limit.Asked
		var places []string
		var err error
		placesFirst := plain[0].isPlace()
		if placesFirst {
			places, plain = takePlaces(plain)
		}
		if group.Limit, plain, err = takeRates(plain); err != nil {
			return nil, err
		}
		if !placesFirst {
			places, plain = takePlaces(plain)
		}
		switch {
		case group.Limit.IsZero():
			return nil, Usagef("--on %s: no limit is named for it; add --read, --write, --read-iops or --write-iops", places[0])
		case len(places) == 0 && len(result) > 0:
			return nil, Usagef("%s: this limit has no --on, but other limits have one; say where it goes", group.Limit)
		case len(places) == 0:
			places = []string{""}
		}
		for _, p := range places {
			result = append(result, limit.Asked{On: p, Limit: group.Limit})
		}
	}
	return result, nil
}

// HasRates reports whether any rate is named, and not only places.
func (l *Limits) HasRates() bool {
	return slices.ContainsFunc(l.words, func(w word) bool { return !w.isPlace() })
}

// Places returns the values of --on, for a verb that takes no rates.
func (l *Limits) Places() []string {
	places, _ := takePlaces(l.words)
	return places
}

func (w word) isPlace() bool { return w.on != "" && !w.own }

func takePlaces(words []word) (places []string, rest []word) {
	for len(words) > 0 && words[0].isPlace() {
		places, words = append(places, words[0].on), words[1:]
	}
	return places, words
}

func takeRates(words []word) (l limit.Limit, rest []word, err error) {
	for len(words) > 0 && !words[0].isPlace() {
		w := words[0]
		if l.Get(w.key).IsSet() {
			return l, nil, Usagef("%s is given twice for the same place: %s, and %s", cmdline.Flag(w.key), l.Get(w.key).Format(w.key), w.rate.Format(w.key))
		}
		l, words = l.With(w.key, w.rate), words[1:]
	}
	return l, words, nil
}

// Flags spells a requested limit as flags, for a shell: "--write 10MB/s --on /data".
func Flags(o limit.Asked) string { return cmdline.Flags(o) }

// IsUnit reports whether a word is the unit of a rate, written as a separate word.
func IsUnit(word string) bool {
	if strings.TrimSpace(word) == "" || strings.ContainsAny(word[:1], "0123456789") {
		return false
	}
	_, err := limit.ParseBytes("10" + word)
	return err == nil
}
