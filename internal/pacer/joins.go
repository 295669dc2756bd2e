package pacer

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// joins tells when somebody is put into a group: the kernel tells of writes to the files
// that this is done with (inotify), also to cgroup.procs and tasks. Where it does not
// (there are too many that it tells), a group's newcomers are found when they are looked for.
type joins struct {
	fd   int // -1: it tells of nothing
	of   map[int32]*paced
	told time.Duration // when it was asked last
}

// toldEvery bounds how often the pacer is woken: whoever may put processes into a group
// may do so all the time.
const toldEvery = time.Millisecond

func newJoins() joins {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		fd = -1
	}
	return joins{fd: fd, of: make(map[int32]*paced)}
}

// watch begins to tell of who is put into a group's limited one.
func (j *joins) watch(p *paced) {
	for _, name := range []string{"cgroup.procs", "tasks", "cgroup.threads"} {
		wd, err := unix.InotifyAddWatch(j.fd, p.meter.limited.File(name), unix.IN_MODIFY)
		if err == nil { // v1 has not all of them, nor v2
			j.of[int32(wd)] = p
		}
	}
}

// forget stops telling of a group.
func (j *joins) forget(p *paced) {
	for wd, of := range j.of {
		if of == p {
			_, _ = unix.InotifyRmWatch(j.fd, uint32(wd)) // with the group it is gone
			delete(j.of, wd)
		}
	}
}

// poll is what to wait for; it is never ready where nothing is told, or has just been.
func (j *joins) poll() unix.PollFd {
	if j.fd < 0 || clockNow()-j.told < toldEvery {
		return unix.PollFd{Fd: -1}
	}
	return unix.PollFd{Fd: int32(j.fd), Events: unix.POLLIN}
}

// come returns the groups that somebody has been put into.
func (j *joins) come() map[*paced]bool {
	groups := make(map[*paced]bool)
	j.told = clockNow()
	var buf [4096]byte
	for {
		n, err := unix.Read(j.fd, buf[:])
		if err != nil || n <= 0 {
			return groups
		}
		for events := buf[:n]; len(events) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
			name := binary.NativeEndian.Uint32(events[12:])
			events = events[unix.SizeofInotifyEvent+int(name):]
			if mask&unix.IN_Q_OVERFLOW != 0 {
				for _, p := range j.of {
					groups[p] = true
				}
			}
			if p := j.of[wd]; p != nil && mask&unix.IN_MODIFY != 0 {
				groups[p] = true
			}
		}
	}
}

func (j *joins) close() {
	if j.fd >= 0 {
		_ = unix.Close(j.fd)
	}
}
