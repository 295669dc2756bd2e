package fullguest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/lab/bootline"
	"github.com/weir-io/weir/lab/cache"
	"github.com/weir-io/weir/lab/debian"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/guest"
	"github.com/weir-io/weir/lab/payload"
	"github.com/weir-io/weir/lab/process"
)

// A Row says what to boot.
type Row struct {
	Title  string       // the guest's name; empty: full-KERNEL-SUITE-MODE
	Suite  string       // of the image: trixie or bookworm
	Kernel string       // as package kernel names them: "6.1", kernel.Newest
	Mode   environ.Mode // as systemd mounts the hierarchies
}

// Builder makes machines of rows.
type Builder struct {
	Archive *debian.Archive
	Cache   *cache.Cache
	Agent   string // program guestinit, for the guest
}

// Machine is a full guest. It implements guest.Guest.
type Machine struct {
	title  string
	mode   environ.Mode
	root   string // image
	kernel string // folder
	agent  string
}

// Machine builds what a row needs, or finds it in the cache.
func (b Builder) Machine(ctx context.Context, row Row) (Machine, error) {
	if _, known := bySuite[row.Suite]; !known {
		return Machine{}, fmt.Errorf("build full guest: no image of suite %q", row.Suite)
	}
	if _, err := layout(row.Mode); err != nil {
		return Machine{}, fmt.Errorf("build full guest: %w", err)
	}
	kernelDir, version, err := umlKernel(ctx, b.Archive, b.Cache, row.Kernel)
	if err != nil {
		return Machine{}, fmt.Errorf("build full guest: %w", err)
	}
	root, err := image(ctx, b.Archive, b.Cache, row.Suite)
	if err != nil {
		return Machine{}, fmt.Errorf("build full guest: %w", err)
	}
	title := row.Title
	if title == "" {
		title = fmt.Sprintf("full-%s-%s-%s", version, row.Suite, row.Mode)
	}
	return Machine{title: title, mode: row.Mode, root: root, kernel: kernelDir, agent: b.Agent}, nil
}

// Name is the row's title.
func (m Machine) Name() string { return m.title }

// Run boots the machine, which runs the job by itself and switches itself off.
func (m Machine) Run(ctx context.Context, job guest.Job) (guest.Result, error) {
	began := time.Now()
	result, err := m.run(ctx, job)
	result.Total = time.Since(began)
	if err != nil {
		return result, fmt.Errorf("run guest %s: %w", m.title, err)
	}
	return result, nil
}

func (m Machine) run(ctx context.Context, job guest.Job) (result guest.Result, err error) {
	dir, err := filepath.Abs(job.Dir)
	if err != nil {
		return result, err
	}
	folder, err := os.MkdirTemp("", "weir-lab-full-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	disks, err := makeDisks(ctx, folder, job.Payload)
	if err != nil {
		return result, err
	}
	console := filepath.Join(dir, "console")
	bootErr := m.boot(ctx, job, disks, folder, console)
	unpackErr := payload.Unpack(filepath.Join(folder, "out"), dir)
	result, readErr := payload.Read(dir, job.Suites)
	if err := errors.Join(bootErr, unpackErr, readErr); err != nil {
		return result, fmt.Errorf("%w (console: %s)", err, console)
	}
	return result, nil
}

// reportTime is kept back from a job's time, for the guest to write its results.
const reportTime = 20 * time.Second

func (m Machine) boot(ctx context.Context, job guest.Job, disks []disk, folder, console string) error {
	line := bootline.Line{
		Guest: m.title, Lane: "uml", Mode: m.mode,
		Run: job.Run, Short: job.Short, Disks: names(disks),
		Timeout: max(job.Timeout-reportTime, reportTime/2),
	}
	words, err := layout(m.mode)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout, fmt.Errorf("did not end within %v", job.Timeout))
	defer cancel()
	cmd := m.command(ctx, disks, folder, append(words, line.Words()...))
	return process.Run(ctx, cmd, job.CPU, console, job.Log)
}

// layout is how systemd is told which hierarchies to mount (systemd(1), "Kernel
// Command Line"). Since systemd 256 it must also be told that v1 is meant
// (README, "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE"); older ones do not look.
func layout(mode environ.Mode) ([]string, error) {
	const force = "SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1"
	switch mode {
	case environ.V2:
		return []string{"systemd.unified_cgroup_hierarchy=1"}, nil
	case environ.V1:
		return []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=1", force}, nil
	case environ.Hybrid:
		return []string{"systemd.unified_cgroup_hierarchy=0", "systemd.legacy_systemd_cgroup_controller=0", force}, nil
	}
	return nil, fmt.Errorf("cgroup mode %q: none of v1, v2, hybrid", mode)
}
