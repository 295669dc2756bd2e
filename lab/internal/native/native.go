// Package native is the lane that boots nothing: the job runs on this host, as
// root, in a mount namespace of its own, so that whatever tests mount goes away
// with them. It touches no mount of the host.
package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/inherit"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/guestrun"
	"github.com/weir-io/weir/lab/internal/payload"
)

// Host is this machine. It implements guest.Guest.
type Host struct{}

// Name is "native".
func (Host) Name() string { return "native" }

// Run runs the job here.
func (h Host) Run(ctx context.Context, job guest.Job) (guest.Result, error) {
	began := time.Now()
	result, err := h.run(ctx, job)
	result.Total = time.Since(began)
	if err != nil {
		return result, fmt.Errorf("run natively: %w", err)
	}
	return result, nil
}

func (h Host) run(ctx context.Context, job guest.Job) (result guest.Result, err error) {
	if os.Geteuid() != 0 {
		return result, errors.New("only root may")
	}
	dir, err := filepath.Abs(job.Dir)
	if err != nil {
		return result, err
	}
	folder, err := os.MkdirTemp(job.Temp, "native-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := payload.Unpack(job.Payload, folder); err != nil {
		return result, err
	}
	env, err := describe(folder)
	if err != nil {
		return result, err
	}
	env.Slow, env.Piece = job.Slow, job.Piece
	file := filepath.Join(folder, "environ.json")
	if err := env.Save(file); err != nil {
		return result, err
	}
	if err := inherit.Unlimited(); err != nil {
		return result, err
	}
	ctx, cancel := context.WithTimeout(ctx, job.Timeout)
	defer cancel()
	err = guestrun.Run(ctx, guestrun.Config{
		Payload:  folder,
		Results:  dir,
		Environ:  file,
		Lane:     "native",
		Parallel: 12,
		Run:      job.Run,
		Short:    job.Short,
		Timeout:  job.Timeout,
		Slow:     job.Slow,
		Events:   logWriter{job.Log},
		// A private copy of the mounts: also after a kill nothing stays mounted.
		Attr: func() *syscall.SysProcAttr {
			return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		},
	})
	if err != nil {
		return result, err
	}
	result, err = payload.Read(dir, job.Suites)
	if errors.Is(err, payload.ErrNotWhole) && allEnded(result) {
		err = nil // there is no closing file: nothing was sent anywhere
	}
	return result, err
}

func allEnded(r guest.Result) bool {
	for _, o := range r.Outputs {
		if !o.Ended {
			return false
		}
	}
	return true
}

func describe(dir string) (environ.Environ, error) {
	cgroups, err := environ.FindCgroups()
	if err != nil {
		return environ.Environ{}, err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return environ.Environ{}, fmt.Errorf("describe kernel: %w", err)
	}
	e := environ.Environ{
		Guest: "native", Lane: "native", Kernel: unix.ByteSliceToString(name.Release[:]),
		Cgroups: cgroups, Dir: dir, Features: []string{"rates"},
	}
	for feature, path := range map[string]string{
		"loop": "/dev/loop-control", "dm": "/dev/mapper/control", "systemd": "/run/systemd/system",
	} {
		if _, err := os.Stat(path); err == nil {
			e.Features = append(e.Features, feature)
		}
	}
	if e.Has("loop") {
		e.Features = append(e.Features, "partitions")
	}
	return e, nil
}

type logWriter struct{ log func(string) }

func (w logWriter) Write(p []byte) (int, error) {
	if w.log != nil {
		w.log(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

var _ io.Writer = logWriter{}
