// Package lab is what a test needs that runs on a real kernel: it says what the
// test needs, and gives it disks. The rest of the lab (see the folders below it)
// builds the tests, boots guests with different kernels and cgroup layouts, runs
// the tests in each, and adds up the results:
//
//	go run ./lab/cmd/lab                                  # the default matrix
//	go run ./lab/cmd/lab -kernel 6.1 -mode v2 -run Hold   # some tests on some guests
//	go run ./lab/cmd/lab -lane uml -mode v2 -usual        # a guest as the default run has it: what takes its time?
//	go run ./lab/cmd/lab -with prometheus -lane full -mode v1 -run Alerts  # guests get a program of this host
//	go run ./lab/cmd/lab -with kubelet -lane full -mode v2 -run Kubelet  # and a kubelet, which the lab builds
//	go run ./lab/cmd/lab -with cluster -lane full -mode v2 -run Cluster  # and all of Kubernetes
//	go run ./lab/cmd/lab -list                            # guests and tests
//
// # Adding a test
//
// Put it in a package below lab/tests; each package there becomes one test binary
// that runs on every guest. Begin with what it needs:
//
//	func TestWriteIsHeld(t *testing.T) {
//		lab.Need(t, lab.V2, lab.Memory)
//		disk := lab.Disk(t, lab.FS("xfs"))
//		...
//	}
//
// It runs wherever that exists: in user-mode Linux (fast, accurate), in small QEMU
// guests (device mapper, partitions), in a full guest with systemd, and on the host
// itself. What it wants to know of the guest after that is in lab.Here.
//
// Where something is missing the test is skipped, with a reason that the lab
// counts. A test (or subtest) that neither passed nor failed on any guest of a
// whole run fails the run: ask for what exists. Outside the lab, in a plain
// `go test ./...`, such tests are skipped.
//
// BPF exists in emulated guests only. They are slow, so that by default they take only
// tests that ask for it; with -all, or when asked for by name, they run everything. Those
// with systemd and Docker are there only with -all, or when asked for by their lane, and
// take only tests that ask for BPF and Systemd in one Need, which Whole begins: a run
// without such guests does not miss them.
//
//	lab.Need(t, lab.Whole, lab.BPF, lab.Systemd, lab.Docker)
//
// A Need of such a test's subtest must ask for both as well.
//
// Package node makes a full guest a node of Kubernetes, with a real kubelet, or a cluster of one node.
//
// The built weir and weird are in PATH. The txtar scripts of cmd/weir run as well, in the
// guests, from that package's test binary.
//
// A test that needs no kernel, because it runs on fixtures, begins with lab.Unit: a plain
// go test runs it, and guests have no time for it. (lab.Unit is for packages whose other
// tests run in guests.)
//
// # The machine
//
// A run begins with a second in which it measures the machine (package calibrate), and
// prints what it found. Guests at once, their time-outs and Await's come from that: ask
// for times as they are on a fast machine, by Await or Patience. Signals that are ignored,
// a umask, limits on resources and a terminal are not passed on to tests (package inherit).
// The table at the end says what each guest's time went to: INSTALL is finding or building
// what it boots, WAIT is for its turn on this machine.
// What measures nothing can run in the time that guests leave (-beside): unit tests of
// "make test" do. Where guests leave none, because the machine has a quota, it runs first.
//
// A test that hangs on what it measures says so (Rates, Ratio and Free do it for it, else
// Measures). If up to three of those are the only red tests of a guest in a whole run, they
// run once more at the end, in a fresh guest with nothing beside it. Green ones are in column
// AGAIN then, and the report has what they said both times: look for the cause.
//
// # Disks
//
// Disk and RawDisk give a disk to one test alone; there are four ext4, four XFS,
// two btrfs and three raw ones in a small guest, 4 GiB each and sparse. A disk is
// empty, also when another test had it before. Make files inside the cgroup that
// the test is about: on v2 writeback belongs to the cgroup that dirtied an inode
// first.
//
// # Time
//
// A test runs by default wherever it can. One that takes seconds asks for less. What it asks for
// says where it runs, if the guest has the rest of what it needs:
//
//	asks for             default run          chosen: RUN= KERNEL= LANE= …  -all
//	nothing of these     all its guests       the chosen guests             all guests
//	Newest               all but 6.1's        the chosen guests             all guests
//	Long                 UML, newest kernel   those that are not short      those that are not short
//	Once                 UML, newest kernel   those that are not short      those that are not short
//	OnceV1, OnceV2       the same, on v1, v2  those that are not short      those that are not short
//	BPF                  emulated guests      emulated guests               emulated guests
//	Lane("native")       this host            this host                     this host
//	Whole                nowhere              the chosen guests             all guests
//	Whole, BPF, Systemd  nowhere              LANE=full-qemu                emulated full guests
//	Kubelet              nowhere              guests that get one           nowhere: make kubelet runs it
//	Cluster              nowhere              guests that get one           nowhere: make cluster runs it
//	NewContainerd        nowhere              guests that get one           nowhere: make containerd runs it
//	Resettable           nowhere              UML, if all of one package    nowhere: make recorded runs it
//	Unit                 nowhere: go test runs it
//
// A short guest differs from another one in little (Row.Short in package matrix). Whole is for a
// test that another test of the default run covers, Once for one that is not about the kernel's
// accuracy, and Lane("native") for one that is ten times as slow where it is emulated. -usual has
// chosen guests run what the default run has them run. Each guest's slowest tests are at the end
// of a run.
//
// # Measuring
//
// A measured test mostly waits, so its cases run side by side: t.Parallel, a disk
// each (six at once, three where the processor is emulated). In guests with systemd two
// suites run at once too. Ask for Rates above 15 MB/s: an emulated processor gives no
// more. Under a limit, writeback is exact only from one request to another: WatchWriteback.
// Use testing.Short to do one case instead of all: the lab sets it for guests that
// differ from another one only in where a hierarchy is mounted.
// A test that asks for Resettable can have its guest reset (Reset), as the button of a machine does: what
// the guest has not written to its disks is gone. It boots again with them, and the test begins anew.
// What only repeats is done a few times, and more often in the whole matrix (More), or as often
// as a target of the Makefile says (Times).
// Compare bytes at the device between two samples (DeviceTraffic); what a program
// says of itself includes what still sits in memory.
//
// # Native
//
// One row of the matrix is this host itself, as root, in a mount namespace of its
// own. Tests may make cgroups and loop devices there and must remove them; a test
// that could harm the machine asks for Guest.
package lab
