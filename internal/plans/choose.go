package plans

import (
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

// The labels by which a target chooses its plan itself, where allow-labels has that plan. A
// container has a label, a pod an annotation.
const (
	OwnLabel      = "weir.plan"
	OwnAnnotation = annotations.Prefix + "plan"
)

// Facts are what is known of a target.
type Facts struct {
	Kind      string   // "docker", "podman", "containerd", "pod", "unit", "vm"
	Names     []string // a container can have several; containerd's are NAMESPACE/ID
	Namespace string   // of a pod
	User      *uint32  // of the slice of one of systemd's users; nil: it is none
	Labels    map[string]string
	// Own is the plan that the target chooses itself; nil: it chooses none. Nobody has checked
	// what it says.
	Own *string
	// Space is the plan that a pod's namespace names; nil: it names none. It counts as Own does, and
	// after the assignments.
	Space *string
	// Limit and On are what its annotations ask, beside a plan.
	Limit limit.Limit
	On    []annotations.On
	// Volumes are the limits that others keep with a pod's persistent volumes, by the volumes' names.
	Volumes []annotations.On
	// Wrong is why its annotations do not count; nil: they do.
	Wrong error
}

// A Choice is the plan of a target.
type Choice struct {
	Plan    string // None: it has none
	By      string // what says so, for people; empty: nothing does
	Refused string // why the target's own label does not count, for people; empty: it has none, or it does
	// Limit and On are what the target's own annotations ask. They can only lower what the plan
	// allows.
	Limit limit.Limit
	On    []annotations.On
	// Volumes are the limits that others keep with a pod's persistent volumes. They lower the others on
	// the volumes' disks, and are no wish of the pod: it starts without them.
	Volumes []annotations.On
	// Unread is what is not known yet of what the target may ask for.
	Unread Unread
	// Before is the plan that is on record of a target that has none as far as is known yet: what is on record counts until
	// all is. Empty: there is none.
	Before string
}

// Unread is what has not been read yet of all that a pod may ask for. Until then it keeps what it has had.
type Unread struct {
	Own     bool `json:"own,omitempty"`     // its annotations, or its namespace's
	Volumes bool `json:"volumes,omitempty"` // the limits of its volumes
}

// Who chooses a plan, for people.
const (
	byLabel = "its own label"
	bySpace = "its namespace"
)

// IsOwn reports whether the target or its namespace has a say in it, or its volumes have.
func (c Choice) IsOwn() bool {
	return c.By == byLabel || c.By == bySpace || c.Asks() || len(c.Volumes) > 0
}

// IsChosen reports whether the target itself has chosen its plan.
func (c Choice) IsChosen() bool { return c.By == byLabel }

// IsNone reports whether a target has no plan, no annotations that ask for limits, and no volumes with
// limits, and none from before either.
func (c Choice) IsNone() bool {
	return c.Plan == None && !c.Asks() && len(c.Volumes) == 0 && c.Before == ""
}

// Asks reports whether a target's own annotations ask for limits.
func (c Choice) Asks() bool { return !c.Limit.IsZero() || len(c.On) > 0 }

// Name is the plan's name, or says that there are annotations or volumes alone.
func (c Choice) Name() string {
	switch {
	case c.Plan != None:
		return c.Plan
	case c.Before != "":
		return c.Before
	case c.Asks():
		return "annotations"
	case len(c.Volumes) > 0:
		return "volumes"
	}
	return None
}

// Choose finds a target's plan: its own label, where that is allowed; else the first assignment
// that is for it; else the plan that its namespace names, where that is allowed; else the default,
// which is not for units.
func (c *Config) Choose(f Facts) Choice {
	choice := c.choose(f)
	choice.Volumes = f.Volumes
	if f.Wrong != nil {
		choice.Refused = f.Wrong.Error()
	} else {
		choice.Limit, choice.On = f.Limit, f.On
	}
	if choice.By == "" && choice.Asks() {
		choice.By = "its annotations"
	}
	if choice.By == "" && len(choice.Volumes) > 0 {
		choice.By = "its volumes"
	}
	return choice
}

func (c *Config) choose(f Facts) Choice {
	var choice Choice
	if f.Own != nil {
		if slices.Contains(c.AllowLabels, *f.Own) {
			return Choice{Plan: *f.Own, By: byLabel}
		}
		choice.Refused = fmt.Sprintf("its own label asks for the plan %s, which allow-labels does not have", short(*f.Own))
	}
	choice.Plan = None
	for _, a := range c.Assignments {
		if a.isFor(f) {
			choice.Plan, choice.By = a.Plan, a.At.String()
			return choice
		}
	}
	if f.Space != nil {
		if slices.Contains(c.AllowLabels, *f.Space) {
			choice.Plan, choice.By = *f.Space, bySpace
			return choice
		}
		if choice.Refused == "" {
			choice.Refused = fmt.Sprintf("its namespace asks for the plan %s, which allow-labels does not have", short(*f.Space))
		}
	}
	if c.Default != None && f.Kind != "unit" {
		choice.Plan, choice.By = c.Default, "default"
	}
	return choice
}

func (a Assignment) isFor(f Facts) bool {
	switch a.Kind {
	case "":
		if !Labelled(f.Kind) {
			return false
		}
	case "user":
		return f.Kind == "unit" && f.User != nil && a.From <= *f.User && *f.User <= a.To
	default:
		if a.Kind != f.Kind {
			return false
		}
	}
	for name, value := range a.Labels {
		if its, has := f.Labels[name]; !has || its != value {
			return false
		}
	}
	return (a.Name == "" || slices.ContainsFunc(f.Names, func(name string) bool { return matches(a.Name, name) })) &&
		(a.Namespace == "" || matches(a.Namespace, f.Namespace))
}

func matches(pattern, name string) bool {
	is, err := path.Match(pattern, name)
	return err == nil && is
}

// Needs reports whether the configuration can be for targets of a kind, so that others need not
// be asked for.
func (c *Config) Needs(kind string) bool {
	if Labelled(kind) && len(c.AllowLabels) > 0 || kind != "unit" && c.Default != None {
		return true
	}
	if c.Annotated && (kind == "pod" || kind == "containerd") {
		return true
	}
	return slices.ContainsFunc(c.Assignments, func(a Assignment) bool {
		return a.Kind == kind || a.Kind == "" && Labelled(kind) || a.Kind == "user" && kind == "unit"
	})
}

func short(text string) string { return plain.Short(strconv.Quote(text), 80) }
