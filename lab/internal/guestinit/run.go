package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/bootline"
	"github.com/weir-io/weir/lab/internal/guestrun"
	"github.com/weir-io/weir/lab/internal/payload"
)

const (
	work    = "/run/weir-lab"
	results = work + "/" + environ.Results
	job     = "/tmp/weir-lab-job" // not on /run: systemd mounts that noexec
)

func runSmall(ctx context.Context) error {
	line, err := readLine()
	if err != nil {
		return err
	}
	if err := loadModules("/etc/weir-modules"); err != nil {
		return err
	}
	if err := mountCgroups(line.Mode, line.IOMount); err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return err
	}
	return run(ctx, line, 1, nil)
}

// runUnit is for a guest with an init system of its own: mounts are there. Its tests wait
// for daemons, and two suites run at once.
func runUnit(ctx context.Context) error {
	line, err := readLine()
	if err != nil {
		return err
	}
	again, err := resume(&line)
	if err != nil {
		return err
	}
	return run(ctx, line, 2, again)
}

// resume takes over the results of the boot before, if there was one, and takes its time off
// what there is. It returns what the tests are to know of that.
func resume(line *bootline.Line) (env []string, err error) {
	if _, err := os.Stat(environ.Kept); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := os.CopyFS(results, os.DirFS(environ.Kept)); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	line.Timeout -= time.Duration(uptimeIn(filepath.Join(results, environ.Uptime)) * float64(time.Second))
	// The system may keep /tmp.
	if err := errors.Join(os.RemoveAll(environ.Kept), os.RemoveAll(job)); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	return []string{environ.Again + "=1"}, nil
}

func readLine() (bootline.Line, error) {
	data, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return bootline.Line{}, fmt.Errorf("read command line: %w", err)
	}
	return bootline.Parse(string(data))
}

func run(ctx context.Context, line bootline.Line, atOnce int, more []string) error {
	release, err := kernel.New("/").Release()
	if err != nil {
		return err
	}
	if err := keepAwake(line.Lane, release); err != nil {
		return err
	}
	env, disks, err := describe(line, release)
	if err != nil {
		return err
	}
	for _, dir := range []string{work, results, job} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
	}
	if err := env.Save(work + "/environ.json"); err != nil {
		return err
	}
	if err := payload.Unpack(disks["job"], job); err != nil {
		return err
	}
	began := uptime()
	runErr := guestrun.Run(ctx, guestrun.Config{
		Payload:  job,
		Results:  results,
		Environ:  work + "/environ.json",
		Lane:     line.Lane,
		Parallel: parallel(line.Lane),
		AtOnce:   atOnce,
		Run:      line.Run,
		Short:    line.Short,
		Timeout:  line.Timeout,
		Slow:     line.Slow,
		Env:      append([]string{"DM_DISABLE_UDEV=1"}, more...),
		Events:   os.Stdout,
	})
	if err := saveDmesg(results + "/dmesg"); err != nil {
		fmt.Fprintf(os.Stderr, "guestinit: %v\n", err)
	}
	end := payload.End{FirstTestSeconds: began}
	return errors.Join(runErr, payload.Pack(disks["out"], results, end))
}

// describe finds out what the machine is. "job" and "out" are not test disks.
func describe(line bootline.Line, release kernel.Release) (environ.Environ, map[string]string, error) {
	found, err := findDisks(line)
	if err != nil {
		return environ.Environ{}, nil, err
	}
	env := environ.Environ{
		Guest: line.Guest, Lane: line.Lane, Promised: line.Mode, Dir: work,
		Features: features(line.Lane, release), Only: line.Only, Slow: line.Slow, Piece: line.Piece,
	}
	nodes := make(map[string]string)
	for _, d := range found {
		nodes[d.Name] = d.Node
		if d.Name != "job" && d.Name != "out" {
			env.Disks = append(env.Disks, d)
		}
	}
	if nodes["job"] == "" || nodes["out"] == "" {
		return env, nil, errors.New("find disks: no job or no out among them")
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return env, nil, fmt.Errorf("describe kernel: %w", err)
	}
	env.Kernel = unix.ByteSliceToString(name.Release[:])
	env.Cgroups, err = environ.FindCgroups()
	return env, nodes, err
}

// findDisks waits a little: device nodes may come after their driver's module.
func findDisks(line bootline.Line) ([]environ.Disk, error) {
	deadline := time.Now().Add(10 * time.Second)
	for {
		found, err := guestrun.FindDisks(line.Lane, line.Disks)
		if err == nil || time.Now().After(deadline) {
			return found, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// features names what the machine can do beyond its kernel version.
func features(lane string, release kernel.Release) []string {
	names := []string{"partitions"}
	if lane == "uml" {
		names = append(names, "rates")
	}
	if traced(lane, release) {
		names = append(names, "traced")
	}
	if _, err := os.Stat("/dev/mapper/control"); err == nil {
		names = append(names, "dm")
		if _, err := exec.LookPath("lvm"); err == nil {
			names = append(names, "lvm")
		}
	}
	if _, err := os.Stat("/dev/loop-control"); err == nil {
		names = append(names, "loop")
	}
	if hasBPF() {
		names = append(names, "bpf")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		names = append(names, "systemd")
	}
	for feature, program := range map[string]string{
		"docker": "dockerd", "podman": "podman", "containerd": "containerd", "libvirt": "virsh",
	} {
		if _, err := exec.LookPath(program); err == nil {
			names = append(names, feature)
		}
	}
	return names
}

// hasBPF reports whether the kernel knows its own types and has bpf(2), which refuses
// a command that no kernel has with EINVAL.
func hasBPF() bool {
	const noCommand = 1 << 30
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return false
	}
	_, _, errno := unix.Syscall(unix.SYS_BPF, noCommand, 0, 0)
	return errno == unix.EINVAL
}

func uptime() float64 { return uptimeIn("/proc/uptime") }

func uptimeIn(file string) float64 {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return seconds
}

// saveDmesg reads the kernel's log with syslog(2).
func saveDmesg(path string) error {
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	buf := make([]byte, 1<<20)
	n, err := unix.Klogctl(readAll, buf)
	if err != nil {
		return fmt.Errorf("save dmesg: %w", err)
	}
	if err := os.WriteFile(filepath.Clean(path), buf[:n], 0o644); err != nil {
		return fmt.Errorf("save dmesg: %w", err)
	}
	return nil
}
