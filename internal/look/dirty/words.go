package dirty

import (
	"fmt"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// String writes the sum: "1.20 GB".
func (c Count) String() string { return bytesText(c.Sum()) }

func bytesText(n uint64) string { return limit.FormatMeasured(float64(n)) }

// Words say whether writers were throttled, a sentence for the host, the group and each device
// that has bounds of its own.
func (r Report) Words() []string {
	words := []string{"host: " + Host(r.Readings).words("")}
	s := Group(r.Readings)
	switch {
	case s != nil && s.Levels != nil:
		words = append(words, "memory cgroup "+r.Group.Path()+": "+s.words("its own, estimated, on file systems with cgroup writeback: "))
	case s != nil && r.Group.Hierarchy().Version == cgroupfs.V1:
		words = append(words, fmt.Sprintf("memory cgroup %s: at most %s dirty or in writeback; cgroup v1 has no dirty threshold per group: at the memory limit its writers reclaim memory instead",
			r.Group.Path(), s.Peak))
	case s != nil:
		words = append(words, fmt.Sprintf("memory cgroup %s: at most %s dirty or in writeback; without a memory limit the group has no dirty threshold of its own", r.Group.Path(), s.Peak))
	case r.Group != nil:
		words = append(words, "memory cgroup "+r.Group.Path()+": it is gone")
	case r.Target != nil:
		words = append(words, r.Target.String()+": not shown: "+r.NoGroup)
	}
	for _, b := range r.Bounded {
		how := fmt.Sprintf("at most %d %% of the host's threshold", b.MaxPercent)
		if b.MaxBytes > 0 {
			how += " (" + bytesText(b.MaxBytes) + ")"
		}
		if b.MinPercent > 0 {
			how += fmt.Sprintf(", at least %d %%", b.MinPercent)
		}
		if b.Strict {
			how += ", held below the host's threshold too (strict_limit)"
		}
		words = append(words, "device "+b.Name+": "+how)
	}
	return words
}

// words say how near to its threshold a host or a group came; whose begins the description of
// the threshold.
func (s Summary) words(whose string) string {
	text := fmt.Sprintf("at most %s dirty or in writeback", s.Peak)
	if s.Levels == nil {
		return text + "; the thresholds are not known here"
	}
	text += fmt.Sprintf(", %.0f %% of the threshold (%s%s, the flusher's %s); writers are throttled from halfway between the two, %s: ", 100*s.Share,
		whose, bytesText(s.Levels.Limit), bytesText(s.Levels.Background), bytesText(s.Levels.Throttle))
	switch {
	case s.Throttled == 0:
		return text + "they were not"
	case s.Readings == 1:
		return text + fmt.Sprintf("they were, in %d of 1 reading", s.Throttled)
	}
	return text + fmt.Sprintf("they were, in %d of %d readings", s.Throttled, s.Readings)
}
