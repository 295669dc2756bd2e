package agent

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience is how long anything here may take on a fast machine.
const patience = 30 * time.Second

// roleVariable has a test's binary be something else, with words after the role's name.
const roleVariable = "WEIR_LAB_AGENT"

// roles are what processes of tests do.
var roles = map[string]func(args []string) error{"writer": writer, "busy": busy, "dial": dial, "silent": silent, "witness": witnessed, "bare": bare}

func TestMain(m *testing.M) {
	if words := strings.Fields(os.Getenv(roleVariable)); len(words) > 0 {
		if err := roles[words[0]](words[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writer is a container's program that writes to a disk at once: when it reads a line. It says when
// it has begun to write, by the clock of now.
func writer(args []string) error {
	fd, err := unix.Open(args[0], unix.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return err
	}
	const size = 4096
	buffer := make([]byte, 2*size)
	buffer = buffer[size-int(uintptr(unsafe.Pointer(&buffer[0]))%size):][:size] // as O_DIRECT wants it
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	began := now()
	if _, err := unix.Pwrite(fd, buffer, 0); err != nil {
		return err
	}
	fmt.Println(began)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// busy is a container's program that writes to a disk through the page cache, again and again.
func busy(args []string) error {
	f, err := os.OpenFile(args[0], os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buffer := make([]byte, 64<<10)
	for at := int64(0); ; at += int64(len(buffer)) {
		if _, err := f.WriteAt(buffer, at%(64<<20)); err != nil {
			return err
		}
	}
}

// now is the time of a clock that all processes have in common, in nanoseconds.
func now() int64 {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		panic(err)
	}
	return at.Nano()
}

// dial connects to a socket and asks there.
func dial(args []string) error {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s /status HTTP/1.0\r\n\r\n", args[1]); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// silent connects to a socket and says nothing until its input ends.
func silent(args []string) error {
	conn, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// logTimes prints the distribution of some times.
func logTimes(t *testing.T, what string, times []time.Duration) (p50, p99 time.Duration) {
	t.Helper()
	if len(times) == 0 {
		t.Fatalf("%s: nothing was measured", what)
	}
	slices.Sort(times)
	p50, p99 = times[len(times)/2], times[len(times)*99/100]
	t.Logf("%s: %d times, p50 %v, p99 %v, most %v", what, len(times), p50, p99, times[len(times)-1])
	return p50, p99
}
