package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/bootline"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/payload"
	"github.com/weir-io/weir/lab/internal/process"
)

// Machine is a guest. It implements guest.Guest.
type Machine struct {
	Title   string // its row in the matrix
	Carrier Carrier
	Mode    environ.Mode
	IOMount string   // unusual mount point of the io controller's hierarchy
	Tests   []Set    // disks for tests
	System  []Disk   // disks of its own, such as its root
	Words   []string // more for the kernel's command line
}

// A Carrier is what a guest runs on: UML or QEMU.
type Carrier interface {
	// Lane is the guest's name for it.
	Lane() string
	// Node is the guest's device for the i-th disk.
	Node(i int) string
	// Command boots a kernel. Its output is the guest's console.
	Command(ctx context.Context, b Boot) *exec.Cmd
}

// Boot is what a carrier is given.
type Boot struct {
	Words  []string // the kernel's command line
	Disks  []Disk
	Folder string // for its own files, removed when it has ended
}

// Name is the row's name.
func (m Machine) Name() string { return m.Title }

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
	dir, err := filepath.Abs(job.Dir)
	if err != nil {
		return result, err
	}
	folder, err := os.MkdirTemp(job.Temp, m.Title+"-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	disks, err := makeDisks(ctx, folder, job.Payload, m.Tests)
	if err != nil {
		return result, err
	}
	console := filepath.Join(dir, "console")
	busy, bootErr := m.boots(ctx, job, disks, folder, console)
	unpackErr := payload.Unpack(filepath.Join(folder, outDisk), dir)
	result, readErr := payload.Read(dir, job.Suites)
	result.Busy = busy
	if bootErr == nil && unpackErr == nil && readErr == nil {
		return result, nil
	}
	return result, errors.Join(bootErr, unpackErr, readErr, lastWords(console))
}

// reportTime is kept back from a job's time, for the guest to write its results.
const reportTime = 20 * time.Second

// boots returns when the guest has ended by itself, and for how long it had a processor busy.
func (m Machine) boots(ctx context.Context, job guest.Job, disks []Disk, folder, console string) (busy time.Duration, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, job.Timeout, fmt.Errorf("did not end within %v", job.Timeout))
	defer cancel()
	if !m.resettable(job) {
		return m.boot(ctx, job, disks, folder, console)
	}
	for n := 0; ; n++ {
		resetting, reset := context.WithCancelCause(ctx)
		one := job
		one.Log = ordered(job.Log, func() { reset(errReset) })
		m := m
		m.Words = append(slices.Clone(m.Words), environ.Resets+strconv.Itoa(n))
		took, err := m.boot(resetting, one, disks, folder, console)
		reset(nil)
		if busy += took; !errors.Is(err, errReset) {
			return busy, err
		}
	}
}

// boot returns when the guest has ended, and for how long it had a processor busy.
func (m Machine) boot(ctx context.Context, job guest.Job, disks []Disk, folder, console string) (busy time.Duration, err error) {
	cmd := m.Carrier.Command(ctx, Boot{
		Words:  m.words(job, disks),
		Disks:  append(disks[:len(disks):len(disks)], m.System...),
		Folder: folder,
	})
	err = process.Run(ctx, cmd, job.CPU, console, job.Log)
	if cmd.ProcessState != nil { // with that of the processes that it has waited for
		busy = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return busy, err
}

// words are the kernel's command line. The guest is told of the disks by their names
// in order; its own come after them and are named by what the words that ask for them say.
func (m Machine) words(job guest.Job, disks []Disk) []string {
	names := make([]string, len(disks))
	for i, d := range disks {
		names[i] = d.Name
	}
	line := bootline.Line{
		Guest: m.Title, Lane: m.Carrier.Lane(), Mode: m.Mode, IOMount: m.IOMount,
		Run: job.Run, Short: job.Short, Only: job.Only, Disks: names, Slow: job.Slow, Piece: job.Piece,
		Timeout: max(job.Timeout-reportTime, reportTime/2),
	}
	words := append(m.Words[:len(m.Words):len(m.Words)], line.Words()...)
	for i, d := range m.System {
		if d.Word != "" {
			words = append(words, d.Word+"="+m.Carrier.Node(len(disks)+i))
		}
	}
	return words
}
