package small

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/lab/bootline"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/guest"
	"github.com/weir-io/weir/lab/kernel"
	"github.com/weir-io/weir/lab/payload"
	"github.com/weir-io/weir/lab/process"
)

// Machine is a small guest. It implements guest.Guest.
type Machine struct {
	Title   string // its row in the matrix
	Image   Image
	Mode    environ.Mode
	IOMount string // unusual mount point of the io controller's hierarchy
}

// Name is the row's name.
func (m Machine) Name() string { return m.Title }

func (m Machine) lane() string {
	if m.Image.Kind == kernel.UML {
		return "uml"
	}
	return "qemu"
}

// Run boots the machine, which runs the job by itself and switches itself off.
func (m Machine) Run(ctx context.Context, job guest.Job) (guest.Result, error) {
	began := time.Now()
	result, err := m.run(ctx, job)
	result.Total = time.Since(began)
	if err != nil {
		return result, fmt.Errorf("run guest %s: %w", m.Title, err)
	}
	return result, nil
}

func (m Machine) run(ctx context.Context, job guest.Job) (result guest.Result, err error) {
	suites := job.Suites
	dir, err := filepath.Abs(job.Dir)
	if err != nil {
		return result, err
	}
	folder, err := os.MkdirTemp("", "weir-lab-"+m.Title+"-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	disks, err := makeDisks(ctx, folder, job.Payload)
	if err != nil {
		return result, err
	}
	bootErr := m.boot(ctx, job, disks, folder, filepath.Join(dir, "console"))
	unpackErr := payload.Unpack(filepath.Join(folder, "out"), dir)
	result, readErr := payload.Read(dir, suites)
	if bootErr == nil && unpackErr == nil && readErr == nil {
		return result, nil
	}
	return result, errors.Join(bootErr, unpackErr, readErr, lastWords(filepath.Join(dir, "console")))
}

func (m Machine) boot(ctx context.Context, job guest.Job, disks []disk, folder, console string) error {
	names := make([]string, len(disks))
	for i, d := range disks {
		names[i] = d.name
	}
	line := bootline.Line{
		Guest: m.Title, Lane: m.lane(), Mode: m.Mode, IOMount: m.IOMount,
		Run: job.Run, Short: job.Short, Disks: names,
		Timeout: max(job.Timeout-20*time.Second, 10*time.Second), // time left to tell about it
	}
	ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout, fmt.Errorf("did not end within %v", job.Timeout))
	defer cancel()
	var cmd *exec.Cmd
	if m.Image.Kind == kernel.UML {
		cmd = umlCommand(ctx, m.Image, line, disks, folder)
	} else {
		cmd = qemuCommand(ctx, m.Image, line, disks)
	}
	return process.Run(ctx, cmd, job.CPU, console, job.Log)
}
