package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/outcome"
)

// A Requirement is something that a test cannot do without. It is one of the
// constants below, or made by FS, Command or MinKernel.
type Requirement string

// What tests ask for.
const (
	V1     Requirement = "v1"     // the io controller is on v1 (v1 and hybrid hosts)
	V2     Requirement = "v2"     // the io controller is on cgroup2
	Hybrid Requirement = "hybrid" // a cgroup2 hierarchy beside v1 ones
	Split  Requirement = "split"  // io on cgroup2, memory on v1
	Memory Requirement = "memory" // a memory controller in the same version as io

	Root       Requirement = "root"       // to be root
	Guest      Requirement = "guest"      // not this host itself: the machine may be broken
	Rates      Requirement = "rates"      // disks good for rates above 15 MB/s
	Partitions Requirement = "partitions" // disks that can be partitioned
	Loop       Requirement = "loop"       // loop devices
	DM         Requirement = "dm"         // device mapper
	LVM        Requirement = "lvm"        // and the programs of LVM
	Overlay    Requirement = "overlay"    // overlay mounts
	IOUring    Requirement = "io_uring"   // io_uring_setup(2)
	PtraceCall Requirement = "ptrace"     // ptrace(2) that tells which system call a program makes
	BPF        Requirement = "bpf"        // bpf(2) and the kernel's types: emulated guests

	// Long keeps a test out of guests that differ from another one in little, where
	// it would take time and tell nothing.
	Long Requirement = "long"
	// Newest keeps a test out of the short guests of the older kernel: they are for what
	// depends on it, or on where cgroups are.
	Newest Requirement = "newest"
	// Once is Long on one kernel for each kind of cgroups: what a test is about is not
	// the kernel's accuracy. The whole matrix, and a run of chosen tests or guests, has
	// it everywhere.
	Once Requirement = "once"
	// OnceV1 and OnceV2 are Once on one kind of cgroups alone: what a test is about is the same
	// on both. Half of such tests ask for the one, and half for the other.
	OnceV1 Requirement = "once-v1"
	OnceV2 Requirement = "once-v2"
	// Whole is for the whole matrix, and for runs of chosen tests or guests: a run of less
	// does not miss what it keeps out.
	Whole Requirement = outcome.Whole
	// Kubelet is Kubernetes' kubelet in PATH: in guests of a run with -with kubelet, as "make kubelet" has
	// it. It is to be asked for first.
	Kubelet Requirement = outcome.Kubelet
	// Cluster is Kubernetes' API server in PATH: in guests of a run with -with cluster, as "make cluster" has it.
	// It is to be asked for first.
	Cluster Requirement = outcome.Cluster
	// NewContainerd is containerd 2.2 or later in PATH, which can require a plugin of NRI: in guests of a run with -with
	// containerd, as "make containerd" has it. It is to be asked for first.
	NewContainerd Requirement = outcome.NewContainerd
	// Resettable is a guest that the lab resets when the test asks for it (Reset): a small one of user-mode
	// Linux, in a run of tests of one package that were named. It is to be asked for first.
	Resettable Requirement = outcome.Resets

	Systemd    Requirement = "systemd"   // as process 1
	NoSystemd  Requirement = "nosystemd" // groups are made by weir itself
	Docker     Requirement = "docker"
	Podman     Requirement = "podman"
	Containerd Requirement = "containerd"
	Libvirt    Requirement = "libvirt"
)

// older begins the release of the older kernel of the default matrix: tests that need
// Once run on the other one, in which user-mode Linux starts processes faster.
const older = "6.1."

// FS is a file system: "ext4", "xfs" or "btrfs".
func FS(kind string) Requirement { return Requirement("fs:" + kind) }

// Command is a program in PATH.
func Command(name string) Requirement { return Requirement("command:" + name) }

// Lane is what carries the guest: "uml", "qemu" or "native".
func Lane(name string) Requirement { return Requirement("lane:" + name) }

// MinKernel is the oldest kernel that has what the test is about.
func MinKernel(major, minor int) Requirement {
	return Requirement(fmt.Sprintf("kernel:%d.%d", major, minor))
}

// Need skips the test unless it runs in a lab that has everything asked for. The
// reason is a line that the lab reads: a test skipped on each guest of a whole
// run is an error there. It returns the environment. A guest may be there only for
// tests that ask for certain things together; it skips all that ask for less, but for those
// that ask for its lane.
func Need(t testing.TB, needs ...Requirement) environ.Environ {
	t.Helper()
	e := need(t, needs...)
	for _, only := range e.Only {
		if len(needs) > 0 && !slices.Contains(needs, Requirement(only)) && !slices.Contains(needs, Lane(e.Lane)) {
			t.Skipf("%snot here (%s: takes only tests that ask for %s)", outcome.SkipMark, e.Guest, strings.Join(e.Only, " and "))
		}
	}
	return e
}

// Here is the environment of a test that has said what it needs. It skips nothing: a Need
// that only reads the environment would end a test, after its work, in a guest that takes
// only tests that ask for more.
func Here(t testing.TB) environ.Environ {
	t.Helper()
	e, ok, err := environ.Load()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Fatal("lab.Here: not in the lab; begin with lab.Need")
	}
	return e
}

// need is Need for what a test asks for by the way, such as a disk.
func need(t testing.TB, needs ...Requirement) environ.Environ {
	t.Helper()
	e, ok, err := environ.Load()
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skipf("%slab (%s is not set: tests of real kernels run by `make lab`)", outcome.SkipMark, environ.Variable)
	}
	for _, n := range needs {
		if err := n.check(e); err != nil {
			t.Skipf("%s%s (%s: %v)", outcome.SkipMark, n, e.Guest, err)
		}
	}
	if slices.Contains(needs, Rates) {
		Measures(t)
	}
	return e
}

// Measures says that a test's verdict hangs on a rate or time that it measures: should it be
// red where guests share the machine, it is measured once more when it is alone there. Ratio,
// Free and the requirement Rates say it too.
func Measures(t testing.TB) {
	t.Helper()
	t.Log(outcome.MeasuredMark + "what else the machine does counts")
}

// Unit skips a test in the lab that says the same on every kernel: one that runs on
// fixtures, and so in a plain go test, needs no guest's time.
func Unit(t testing.TB) {
	t.Helper()
	e, inside, err := environ.Load()
	if err != nil {
		t.Fatal(err)
	}
	if inside {
		t.Skipf("%s%s (%s: go test runs it)", outcome.SkipMark, outcome.Unit, e.Guest)
	}
}

// check says why a requirement is not met. A requirement that nobody knows is not
// met either, so that a misspelt one fails the run instead of passing quietly.
func (r Requirement) check(e environ.Environ) error {
	kind, value, ok := strings.Cut(string(r), ":")
	if ok {
		return checkValue(e, kind, value)
	}
	switch r {
	case Long:
		return unless(!testing.Short(), "a short run: another guest has this kernel and these cgroups")
	case Newest:
		newest := !testing.Short() || !strings.HasPrefix(e.Kernel, older)
		return unless(newest || os.Getenv(environ.Everywhere) != "", "the newest kernel has it")
	case Once:
		here := e.Lane == "uml" && !strings.HasPrefix(e.Kernel, older)
		return unless(!testing.Short() && (here || os.Getenv(environ.Everywhere) != ""), "another kernel has it")
	case OnceV1, OnceV2:
		if err := Once.check(e); err != nil || os.Getenv(environ.Everywhere) != "" {
			return err
		}
		return unless(e.Cgroups.IOInV2 == (r == OnceV2), "the other kind of cgroups has it")
	case Kubelet:
		_, err := exec.LookPath("kubelet")
		return err
	case Cluster:
		_, err := exec.LookPath("kube-apiserver")
		return err
	case NewContainerd:
		return newContainerd()
	case Resettable:
		_, may := resets()
		return unless(may, "name the test by -run, on user-mode Linux")
	case Whole:
		return unless(os.Getenv(environ.Everywhere) != "", "the whole matrix has it")
	case V1:
		return unless(e.Cgroups.Blkio != "", "no v1 hierarchy has blkio")
	case V2:
		return unless(e.Cgroups.Unified != "" && e.Cgroups.IOInV2, "cgroup2 has no io controller")
	case Hybrid:
		return unless(e.Cgroups.Mode == environ.Hybrid, "mode "+string(e.Cgroups.Mode))
	case Split:
		return unless(e.Cgroups.Mode == environ.Split, "mode "+string(e.Cgroups.Mode))
	case Memory:
		if e.Cgroups.IOInV2 {
			return unless(e.Cgroups.MemInV2, "cgroup2 has no memory controller")
		}
		return unless(e.Cgroups.Memory != "", "no v1 hierarchy has memory")
	case Root:
		return unless(os.Geteuid() == 0, "not root")
	case IOUring:
		_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 0, 0, 0) // no ring has 0 entries
		return unless(errno != unix.ENOSYS && errno != unix.EPERM, "the kernel has none")
	case PtraceCall:
		return unless(!e.Has("traced"), "user-mode Linux runs its programs by ptrace(2) itself")
	case NoSystemd:
		return unless(!e.Has(string(Systemd)), "systemd")
	case Overlay:
		return checkDriver("overlay")
	case Guest:
		return unless(e.Lane != "native", "native")
	}
	return unless(e.Has(string(r)), "not there")
}

// newContainerd fails unless the containerd in PATH is 2.2 or later.
func newContainerd() error {
	out, err := exec.Command("containerd", "--version").Output()
	if err != nil {
		return err
	}
	fields := strings.Fields(string(out)) // containerd github.com/containerd/containerd/v2 2.4.2 COMMIT
	if len(fields) < 3 {
		return fmt.Errorf("its version is %q", out)
	}
	version := strings.TrimPrefix(fields[2], "v")
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("its version is %q: %w", out, err)
	}
	return unless(major > 2 || major == 2 && minor >= 2, "containerd "+version)
}

func checkValue(e environ.Environ, kind, value string) error {
	switch kind {
	case "fs":
		return checkFS(e, value)
	case "command":
		_, err := exec.LookPath(value)
		return err
	case "lane":
		return unless(e.Lane == value, "lane "+e.Lane)
	case "kernel":
		return checkKernel(e.Kernel, value)
	}
	return fmt.Errorf("unknown requirement")
}

// checkFS asks for a disk made by the host, or natively for the kernel's driver
// and the program that makes the file system.
func checkFS(e environ.Environ, kind string) error {
	for _, d := range e.Disks {
		if d.FS == kind {
			return nil
		}
	}
	if e.Lane != "native" {
		return errors.New("no such disk")
	}
	if err := checkDriver(kind); err != nil {
		return err
	}
	_, err := exec.LookPath("mkfs." + kind)
	return err
}

func checkDriver(kind string) error {
	data, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return err
	}
	return unless(strings.Contains(string(data), "\t"+kind+"\n"), "the kernel has no driver loaded")
}

func checkKernel(release, min string) error {
	have, err := version(release)
	if err != nil {
		return err
	}
	want, err := version(min)
	if err != nil {
		return err
	}
	return unless(have[0] > want[0] || have[0] == want[0] && have[1] >= want[1], "kernel "+release)
}

// version reads the first two numbers of "6.1.0-50-cloud-amd64".
func version(release string) (v [2]int, err error) {
	parts := strings.FieldsFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) < 2 {
		return v, fmt.Errorf("parse kernel version %q: not two numbers", release)
	}
	for i := range v {
		if v[i], err = strconv.Atoi(parts[i]); err != nil {
			return v, fmt.Errorf("parse kernel version %q: %w", release, err)
		}
	}
	return v, nil
}

func unless(ok bool, instead string) error {
	if ok {
		return nil
	}
	return errors.New(instead)
}
