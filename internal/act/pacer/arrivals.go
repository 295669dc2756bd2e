package pacer

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// arrivals reports at once which processes join a group. A write to the group's list of
// processes, through any mount, is an inotify(7) event, and so is a new child group. A process
// that is born in a group causes no event: see process.Births. Without inotify the next listing
// finds newcomers.
type arrivals struct {
	fd      int
	rosters map[int32][]*roster // of each watch: limits are nested, and the kernel has one watch of a file
	watched map[watched]bool
}

type watched struct {
	by    *roster
	group cgroupfs.Group
}

const inotifyBuffer = 4096

// newArrivals is called before the pacer takes its lock. The kernel closes what a killed process had
// open from the highest number down (task_work_run). To close inotify(7) it waits for a worker of its own
// (fsnotify_destroy_group): mostly for 10 ms, and for up to 3.5 s where all processors were busy (Linux 6.18).
// For all that time the lock would be taken. The guards, and the next weir, give up before that, and would resume
// nobody.
func newArrivals() *arrivals {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		fd = -1 // poll(2) passes over it
	}
	return &arrivals{fd: fd, rosters: make(map[int32][]*roster), watched: make(map[watched]bool)}
}

func (a *arrivals) poll() unix.PollFd { return unix.PollFd{Fd: int32(a.fd), Events: unix.POLLIN} }

// watch watches one group of a roster. Watching it again does nothing.
func (a *arrivals) watch(r *roster, g cgroupfs.Group) {
	if a == nil || a.fd < 0 || a.watched[watched{r, g}] {
		return
	}
	a.watched[watched{r, g}] = true
	add := func(file string, events uint32) {
		if wd, err := unix.InotifyAddWatch(a.fd, file, events); err == nil { // v1 and v2 differ in their files; the kernel bounds the number
			if of := a.rosters[int32(wd)]; !slices.Contains(of, r) {
				a.rosters[int32(wd)] = append(of, r)
			}
		}
	}
	add(g.File("cgroup.procs"), unix.IN_MODIFY)
	if g.Hierarchy().Version == cgroupfs.V1 {
		add(g.File("tasks"), unix.IN_MODIFY)
		return
	}
	add(g.File("cgroup.threads"), unix.IN_MODIFY)
	add(g.Dir(), unix.IN_CREATE|unix.IN_ONLYDIR|unix.IN_MASK_ADD)
}

// watchBeside tells a roster of groups that are made or removed beside one; to do so again is
// nothing.
func (a *arrivals) watchBeside(r *roster, g cgroupfs.Group) {
	if a == nil || a.fd < 0 || g.IsRoot() {
		return
	}
	if wd, err := unix.InotifyAddWatch(a.fd, g.Parent().Dir(), unix.IN_CREATE|unix.IN_DELETE|unix.IN_ONLYDIR|unix.IN_MASK_ADD); err == nil { // without, it is looked for
		if of := a.rosters[int32(wd)]; !slices.Contains(of, r) {
			a.rosters[int32(wd)] = append(of, r)
		}
	}
}

// read returns the rosters that a process has joined.
func (a *arrivals) read() (come []*roster) {
	buf := make([]byte, inotifyBuffer)
	n, err := unix.Read(a.fd, buf)
	if err != nil {
		return nil
	}
	for at := 0; at+unix.SizeofInotifyEvent <= n; {
		wd := int32(binary.NativeEndian.Uint32(buf[at:]))
		mask := binary.NativeEndian.Uint32(buf[at+4:])
		at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[at+12:]))
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			for _, of := range a.rosters {
				come = append(come, of...)
			}
		case mask&unix.IN_IGNORED != 0: // a group is gone; one of its name would be another
			delete(a.rosters, wd)
			clear(a.watched)
		default:
			come = append(come, a.rosters[wd]...)
		}
	}
	return come
}

func (a *arrivals) forget(r *roster) {
	if a == nil {
		return
	}
	clear(a.watched)
	for wd, of := range a.rosters {
		if of = slices.DeleteFunc(of, func(one *roster) bool { return one == r }); len(of) > 0 {
			a.rosters[wd] = of
		} else {
			_, _ = unix.InotifyRmWatch(a.fd, uint32(wd)) // it may have gone with its group
			delete(a.rosters, wd)
		}
	}
}

func (a *arrivals) close() {
	if a.fd >= 0 {
		_ = unix.Close(a.fd)
	}
}
