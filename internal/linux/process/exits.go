package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Exits tell what processes have done by their end (taskstats, Documentation/accounting/taskstats.rst).
// /proc/PID/io is gone as soon as the parent has waited for the process, so that what it did after the
// last look would be missed. The kernel tells of each thread by itself, in multiples of 1024, and not of
// the children that a process has waited for.
//
// While the kernel is to tell, each end of a thread on the host costs some microseconds.
type Exits struct {
	fd         int
	family     uint16
	processors string // all of them, as the kernel takes and names them: "0-3"
	on         bool
	ended      map[int]IO
	buf        []byte
}

const (
	possibleProcessors = "/sys/devices/system/cpu/possible"
	// exitsBuffer is how many bytes of messages wait until they are read: some thousands of ends.
	exitsBuffer = 4 << 20
	// endedMost is how many ends are kept.
	endedMost = 8192
)

// Where struct taskstats (include/uapi/linux/taskstats.h) has what is read of it. Fields are added at
// its end. Linux 6.14 added some in between, and 6.16 moved them: there the number is not where it is
// looked for, and nothing is told.
const (
	statsPid       = 128
	statsRead      = 216 // characters read, written; system calls, read and write; bytes read, written, cancelled
	statsWritten   = statsRead + 8
	statsReadBytes = statsRead + 32
	statsWrite     = statsRead + 40
	statsCancelled = statsRead + 48
	statsLeast     = statsRead + 56
)

// OpenExits asks the kernel whether it can tell: that takes root, outside of any user, PID and network
// namespace, and a kernel with CONFIG_TASKSTATS and CONFIG_TASK_IO_ACCOUNTING.
func OpenExits() (*Exits, error) {
	if err := inHostsNetwork("/proc"); err != nil {
		return nil, err
	}
	processors, err := os.ReadFile(possibleProcessors)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_GENERIC)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	e := &Exits{fd: fd, processors: strings.TrimSpace(string(processors)), ended: make(map[int]IO), buf: make([]byte, 1<<16)}
	if err := e.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("ask for taskstats: %w", err), unix.Close(fd))
	}
	return e, nil
}

// errNetwork says that nobody is told of ends here: send_cpu_listeners in kernel/taskstats.c sends into the first network
// namespace, whoever has asked.
var errNetwork = errors.New("this network namespace is not the host's, and the kernel tells of ends only there")

// inHostsNetwork returns errNetwork in another network namespace than the first. The kernel shows settings that are not of
// one namespace only in the first (net_core_table in net/core/sysctl_net_core.c). Where no settings are to be seen, it is
// asked all the same.
func inHostsNetwork(proc string) error {
	_, err := os.Stat(proc + "/sys/net/core")
	if err != nil {
		return nil
	}
	if _, err := os.Stat(proc + "/sys/net/core/netdev_budget"); errors.Is(err, fs.ErrNotExist) {
		return errNetwork
	}
	return nil
}

func (e *Exits) begin() error {
	_ = unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, exitsBuffer) // else fewer ends wait
	if err := unix.Bind(e.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name := append([]byte(unix.TASKSTATS_GENL_NAME), 0)
	answer, err := e.ask(unix.GENL_ID_CTRL, unix.CTRL_CMD_GETFAMILY, attribute(unix.CTRL_ATTR_FAMILY_NAME, name), false)
	if err != nil {
		return err
	}
	for kind, value := range attributes(answer) {
		if kind == unix.CTRL_ATTR_FAMILY_ID && len(value) >= 2 {
			e.family = binary.NativeEndian.Uint16(value)
		}
	}
	self := os.Getpid()
	answer, err = e.ask(e.family, unix.TASKSTATS_CMD_GET, attribute(unix.TASKSTATS_CMD_ATTR_PID, binary.NativeEndian.AppendUint32(nil, uint32(self))), false)
	if err != nil {
		return err
	}
	if pid, _, ok := endOf(answer); !ok || pid != self {
		return errors.New("the kernel's struct taskstats has another layout")
	}
	return nil
}

// Listen has the kernel tell from now on.
func (e *Exits) Listen() error { return e.register(true) }

// Ignore has it tell no more.
func (e *Exits) Ignore() error { return e.register(false) }

func (e *Exits) register(on bool) error {
	if e == nil || e.on == on {
		return nil
	}
	kind := uint16(unix.TASKSTATS_CMD_ATTR_REGISTER_CPUMASK)
	if !on {
		kind = unix.TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK
	}
	_, err := e.ask(e.family, unix.TASKSTATS_CMD_GET, attribute(kind, append([]byte(e.processors), 0)), true)
	if err == nil {
		e.on = on
	}
	if !e.on {
		clear(e.ended) // another process may have such a number by the next time
	}
	return err
}

// Read takes in who has ended. Messages that are not read for long are lost.
func (e *Exits) Read() {
	if e == nil || !e.on {
		return
	}
	for range endedMost { // processes may end faster than this reads
		body, _, err := e.receive()
		switch {
		case errors.Is(err, unix.ENOBUFS): // some are lost, and those that are there can be read
		case err != nil:
			return
		default:
			e.keep(body)
		}
	}
}

func (e *Exits) keep(body []byte) {
	pid, done, ok := endOf(body)
	if !ok {
		return
	}
	if len(e.ended) >= endedMost {
		clear(e.ended)
	}
	e.ended[pid] = done
}

// Last is what a process has done that has ended lately; false if that is not known.
func (e *Exits) Last(pid int) (IO, bool) {
	if e == nil {
		return IO{}, false
	}
	e.Read()
	done, known := e.ended[pid]
	delete(e.ended, pid)
	return done, known
}

// Close ends it.
func (e *Exits) Close() error {
	if e == nil {
		return nil
	}
	return os.NewSyscallError("close", unix.Close(e.fd))
}

// ask sends a request, and returns what the answer says. The kernel answers while it takes the request.
func (e *Exits) ask(family uint16, command uint8, what []byte, acknowledge bool) ([]byte, error) {
	const header = unix.SizeofNlMsghdr + 4
	flags := uint16(unix.NLM_F_REQUEST)
	if acknowledge {
		flags |= unix.NLM_F_ACK
	}
	m := make([]byte, 0, header+len(what))
	m = binary.NativeEndian.AppendUint32(m, uint32(header+len(what)))
	m = binary.NativeEndian.AppendUint16(m, family)
	m = binary.NativeEndian.AppendUint16(m, flags)
	m = binary.NativeEndian.AppendUint32(m, 1) // one request is under way at a time
	m = binary.NativeEndian.AppendUint32(m, 0)
	m = append(m, command, 1, 0, 0)
	if _, err := unix.Write(e.fd, append(m, what...)); err != nil {
		return nil, os.NewSyscallError("write", err)
	}
	for {
		body, kind, err := e.receive()
		switch {
		case errors.Is(err, unix.ENOBUFS):
		case err != nil:
			return nil, os.NewSyscallError("read", err)
		case kind == unix.NLMSG_ERROR:
			if code := int32(binary.NativeEndian.Uint32(body)); code != 0 {
				return nil, unix.Errno(-code)
			}
			return nil, nil
		case !acknowledge && kind == family:
			return body, nil
		default:
			e.keep(body) // somebody has ended meanwhile
		}
	}
}

// receive reads one message: what follows its header. One that another process has sent is empty.
func (e *Exits) receive() (body []byte, kind uint16, err error) {
	n, from, err := unix.Recvfrom(e.fd, e.buf, 0)
	if err != nil {
		return nil, 0, err
	}
	if sender, is := from.(*unix.SockaddrNetlink); !is || sender.Pid != 0 { // CAP_NET_ADMIN is enough to send some
		return nil, unix.NLMSG_NOOP, nil
	}
	if n < unix.SizeofNlMsghdr+4 {
		return nil, 0, unix.EBADMSG
	}
	return e.buf[unix.SizeofNlMsghdr:n], binary.NativeEndian.Uint16(e.buf[4:]), nil
}

// endOf reads the message of one thread's end, or the answer to a question for one.
func endOf(body []byte) (pid int, done IO, ok bool) {
	for kind, nested := range attributes(body) {
		if kind != unix.TASKSTATS_TYPE_AGGR_PID {
			continue
		}
		var number uint32
		for kind, value := range attributes(append(make([]byte, 4), nested...)) {
			switch {
			case kind == unix.TASKSTATS_TYPE_PID && len(value) >= 4:
				number = binary.NativeEndian.Uint32(value)
			case kind == unix.TASKSTATS_TYPE_STATS && len(value) >= statsLeast && binary.NativeEndian.Uint32(value[statsPid:]) == number:
				at := func(offset int) uint64 { return binary.NativeEndian.Uint64(value[offset:]) }
				return int(number), IO{RChar: at(statsRead), ReadBytes: at(statsReadBytes), WriteBytes: at(statsWrite), CancelledWriteBytes: at(statsCancelled), WChar: at(statsWritten)}, true
			}
		}
	}
	return 0, IO{}, false
}
