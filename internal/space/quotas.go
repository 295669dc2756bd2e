package space

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// Quotas changes and shows the quotas of one host.
type Quotas struct{ Host *host.Host }

// A QuotaRequest asks for a quota.
type QuotaRequest struct {
	Place  string // a directory, or a container: "/srv/data", "docker:web", "web"
	Change quota.Change
	Force  bool // also if more is stored already
}

// A QuotaSet is what came of it.
type QuotaSet struct {
	Status quota.Status
	Marked quota.Marked // what was found in the tree; zero if nothing had to be marked
	Dirs   []string     // of the place; none: it was not found
}

// An OnVolumeError says that a place is on a volume that weir made, which has a size of its own.
// That can be changed.
type OnVolumeError struct{ Place, Volume string }

func (e *OnVolumeError) Error() string {
	return fmt.Sprintf("quota: %s is on the volume %s, which has a size of its own", e.Place, e.Volume)
}

// Class makes it fault.WrongUse.
func (e *OnVolumeError) Class() fault.Class { return fault.WrongUse }

// MayUseQuotas returns an error unless this process may read and change quotas. verb is what it
// wants to do with them, for the message.
func MayUseQuotas(verb string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("quota %s: %w (the kernel shows and sets project quotas only for root; run weir as root)", verb, fs.ErrPermission)
	}
	return nil
}

// may refuses what no copy of a host has.
func (q Quotas) may(verb string) error {
	if !q.Host.IsOwn() {
		return &fault.Unsupported{Feature: "quota " + verb, Reason: "quotas are this host's"}
	}
	return MayUseQuotas(verb)
}

func (q Quotas) finder() quota.Finder {
	return quota.Finder{Devices: q.Host.Devices(), Kinds: func() ([]targets.Kind, error) {
		io, err := q.Host.IO()
		if err != nil {
			return nil, err
		}
		return q.Host.Kinds(io), nil
	}}
}

// Set sets a quota, or changes it. tell gets the progress of marking files. A place on a volume is
// an *OnVolumeError, a file system without project quotas a *fault.Unsupported. With an error, the
// result says whether the place was found. When the context ends, what was begun is taken back.
func (q Quotas) Set(ctx context.Context, r QuotaRequest, tell quota.Progress) (QuotaSet, error) {
	if err := q.may("set"); err != nil {
		return QuotaSet{}, err
	}
	return q.set(ctx, r, tell)
}

func (q Quotas) set(ctx context.Context, r QuotaRequest, tell quota.Progress) (set QuotaSet, err error) {
	place, err := q.place(ctx, r)
	set.Dirs = place.Dirs
	if err != nil {
		return set, err
	}
	set.Status, set.Marked, err = q.Host.Quotas().Set(ctx, place, r.Change, r.Force, tell)
	return set, err
}

// place finds what a quota is asked for on. With an error it may have been found.
func (q Quotas) place(ctx context.Context, r QuotaRequest) (quota.Place, error) {
	p, err := q.finder().Place(ctx, r.Place)
	if err != nil {
		return quota.Place{}, err
	}
	return p, q.refuseVolume(ctx, r.Place, p)
}

// SetSteps lists what Set would do, with its errors. It changes nothing.
func (q Quotas) SetSteps(ctx context.Context, r QuotaRequest, tell quota.Progress) ([]hold.Step, error) {
	if err := q.may("set"); err != nil {
		return nil, err
	}
	p, err := q.place(ctx, r)
	if err != nil {
		return nil, err
	}
	return q.Host.Quotas().SetSteps(ctx, p, r.Change, r.Force, tell)
}

// ClearSteps lists what Clear would do, with its errors. It changes nothing.
func (q Quotas) ClearSteps(ctx context.Context, place string) ([]hold.Step, error) {
	p, err := q.onRecord(ctx, place)
	if err != nil {
		return nil, err
	}
	return q.Host.Quotas().ClearSteps(ctx, p)
}

// ForgetSteps lists what Forget would do, with its errors. It changes nothing.
func (q Quotas) ForgetSteps(ctx context.Context, place string) ([]hold.Step, error) {
	p, err := q.onRecord(ctx, place)
	if err != nil {
		return nil, err
	}
	return q.Host.Quotas().ForgetSteps(p)
}

func (q Quotas) refuseVolume(ctx context.Context, spec string, p quota.Place) error {
	volumes := q.Host.Volumes(nil)
	all, _ := volumes.List() // one that cannot be read is no reason against any other place
	if len(all) == 0 {
		return nil
	}
	var on blkdev.Number
	if m, err := q.Host.Quotas().On(ctx, p.Dirs[0]); err == nil {
		on = m.Number
	}
	for _, v := range all {
		at, err := volumes.Where(v)
		if v.Adopted() || v.Name != spec && (err != nil || !at.Up || at.Device != on) {
			continue
		}
		return &OnVolumeError{spec, v.Name}
	}
	return nil
}

// List finds the project quotas of the host, whoever set them. What cannot be read is in the
// error, beside the others.
func (q Quotas) List(ctx context.Context) ([]quota.Status, error) {
	if err := q.may("show"); err != nil {
		return nil, err
	}
	return q.Host.Quotas().List(ctx)
}

// Of finds the quota that a place is in; there is none, or one.
func (q Quotas) Of(ctx context.Context, place string) ([]quota.Status, error) {
	if err := q.may("show"); err != nil {
		return nil, err
	}
	return q.Host.Quotas().At(ctx, q.finder(), place)
}

// OfTarget finds the quota that the files of a target are in; nil if there is none or it cannot be
// read.
func (q Quotas) OfTarget(ctx context.Context, t targets.Target) *quota.Status {
	if !q.Host.IsOwn() {
		return nil
	}
	return q.Host.Quotas().SpaceOf(ctx, q.finder(), t)
}

// Clear removes a quota and takes the files out of its project. It returns what the quota was, and
// how many files the kernel leaves in the project. If it is interrupted, a second Clear finishes:
// the error is then a context.Canceled.
func (q Quotas) Clear(ctx context.Context, place string, tell quota.Progress) (was quota.Status, left uint64, err error) {
	p, err := q.onRecord(ctx, place)
	if err != nil {
		return was, 0, err
	}
	return q.Host.Quotas().Clear(ctx, p, tell)
}

// Forget removes weir's record of a quota, and changes no file.
func (q Quotas) Forget(ctx context.Context, place string) (was quota.Status, err error) {
	p, err := q.onRecord(ctx, place)
	if err != nil {
		return was, err
	}
	return q.Host.Quotas().Forget(ctx, p)
}

func (q Quotas) onRecord(ctx context.Context, place string) (quota.Place, error) {
	if err := q.may("clear"); err != nil {
		return quota.Place{}, err
	}
	return q.finder().OnRecord(ctx, place)
}

// IsInterrupted reports whether an error of Clear says that it was interrupted.
func IsInterrupted(err error) bool { return errors.Is(err, context.Canceled) }
