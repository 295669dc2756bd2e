package agent

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/planned"
)

const (
	// awayTime is how often a directory of plans is looked for while its plans are in force, and absentTime otherwise.
	awayTime   = 100 * time.Millisecond
	absentTime = 5 * time.Second
)

// errGone says that the watched directory has lost its name. Another one may have it already.
var errGone = errors.New("the directory was removed or renamed")

// plansIn is the directory of the plans, and the only file of it that counts; empty: all that are plans.
func plansIn(o Options) (dir, file string) {
	dir = o.Plans
	if dir == "" {
		dir = filepath.Join(o.Root, planned.Dir)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return filepath.Dir(dir), filepath.Base(dir)
	}
	return dir, ""
}

// watch loads the plans again when their files change.
func (a *Agent) watch(ctx context.Context) {
	dir, file := plansIn(a.options)
	told, quiet := "", settleTime // what has changed since the plans were first loaded may be half written
	for {
		changes, err := a.first, error(nil)
		if a.first = nil; changes == nil {
			changes, err = watchDir(dir, file)
		}
		if err == nil {
			isNews(&told, nil)
			err = a.reloadOn(ctx, changes, quiet)
			_ = changes.Close() // nothing was written
		}
		if ctx.Err() != nil {
			return
		}
		wait := absentTime
		quiet = arrivedTime
		switch {
		case errors.Is(err, errGone):
			wait = 0
		case errors.Is(err, fs.ErrNotExist) && a.hasFiles():
			wait = awayTime
			if isNews(&told, err) {
				a.tellAway()
			}
		case isNews(&told, err):
			a.options.Log.Warn("weird cannot watch the files of the plans; after a change, reload them with SIGHUP", "directory", dir, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// hasFiles reports whether plans of files are in force.
func (a *Agent) hasFiles() bool {
	config, _ := a.plans.Now()
	return len(config.Files) > 0
}

// tellAway says that the plans in force are away, if they still are. If not, they may not all be there yet.
func (a *Agent) tellAway() {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	now, _ := a.plans.Now()
	if _, err := load(a.options, now); err != nil {
		a.refuse("", err)
	}
}

// isNews reports whether an error is another one than the last, and notes it; nil: there is none any
// more. That the directory went and that it is not there are the same.
func isNews(told *string, err error) bool {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if errors.Is(err, fs.ErrNotExist) {
		text = fs.ErrNotExist.Error()
	}
	was := *told
	*told = text
	return text != was
}

// reloadOn loads the plans after their files were quiet for a time, and then after each change, until the directory is
// gone or the context ends.
func (a *Agent) reloadOn(ctx context.Context, changes *watched, quiet time.Duration) error {
	defer context.AfterFunc(ctx, func() { _ = changes.SetReadDeadline(time.Unix(1, 0)) })()
	for first := true; ; first = false {
		its := changed
		if !first {
			var err error
			if its, err = changes.read(); err != nil {
				return err
			}
			quiet = settleTime
		}
		if its == nothing {
			continue
		}
		if err := a.reloadWhole(ctx, changes, its, quiet, !first); err != nil { // first: nobody has told of what changed before
			return err
		}
		if err := changes.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if ctx.Err() != nil { // else the deadline that tells of it comes after this one
			return ctx.Err()
		}
	}
}

// errChanged says that plans changed while they were read: they may be half written.
var errChanged = errors.New("the files of the plans changed while they were read")

// reloadWhole loads the plans once their files are quiet, if they may have changed. Where they change while they are
// loaded, it waits and loads them again, for a time.
func (a *Agent) reloadWhole(ctx context.Context, changes *watched, its news, quiet time.Duration, always bool) error {
	isWhole := func() bool {
		its, err := changes.pending()
		return err == nil && its != changed
	}
	for end := time.Now().Add(a.settleMost); ; {
		isOver := time.Now().After(end)
		seen, late, err := changes.settle(ctx, quiet, end)
		its = max(its, seen)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case changes.gone || !changes.isThere():
			return errGone
		case its != changed:
			return nil
		case late || isOver:
			a.tellLate(changes, true)
			clear(changes.open) // an event tells of a file that somebody still writes, or closes
			_ = a.reload("", false, nil)
			return nil
		}
		if err := a.reload("", always, isWhole); !errors.Is(err, errChanged) { // another one is in the log
			a.tellLate(changes, false)
			return nil
		}
	}
}

// tellLate says that plans are loaded while their files still change. It says so once.
func (a *Agent) tellLate(changes *watched, late bool) {
	const all = "all"
	news := ""
	if late {
		news = cmp.Or(strings.Join(changes.writers(), " "), all)
	}
	was := changes.told
	changes.told = news
	switch news {
	case was, "":
	case all:
		a.options.Log.Warn("the files of the plans change all the time; weird loads them as they are", "directory", changes.dir, "waited", a.settleMost)
	default:
		a.options.Log.Warn("some files of the plans are still being written; weird loads them as they are, and again once they are closed",
			"directory", changes.dir, "files", news, "waited", a.settleMost)
	}
}
