package pacer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// writer has this test's program be a writer: its name, the file, and how many bytes.
const writer = "WEIR_TEST_WRITER"

var writers = map[string]func(f *os.File, bytes int) error{"mmap": writeMapped, "io_uring": writeUring, "timed": writeTimed, "signalled": writeSignalled, "dsync": writeSynced}

// TestMain is a writer for those who ask for one.
func TestMain(m *testing.M) {
	name, flags := os.Getenv(writer), os.O_RDWR|os.O_CREATE|os.O_TRUNC
	write := writers[name]
	if over := overwriter(name); over != nil {
		write, flags = over, os.O_RDWR
	}
	if write == nil {
		os.Exit(m.Run())
	}
	bytes, err := strconv.Atoi(os.Args[2])
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(os.Args[1], flags, 0o600); err == nil {
			err = write(f, bytes)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The pacer holds every process that makes pages dirty, also one that calls no write(2).
func TestOtherWritersArePaced(t *testing.T) {
	beside(t)
	for _, name := range []string{"mmap", "io_uring"} {
		t.Run(name, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Long, lab.FS("ext4"))
			if name == "io_uring" {
				lab.Need(t, lab.IOUring, lab.MinKernel(5, 12)) // before, threads of the kernel's write, which nobody stops
			}
			beside(t)
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			disk := lab.Disk(t, lab.FS("ext4"))
			file := filepath.Join(disk.Dir, "f")
			const rate, seconds = 10e6, 5
			lab.Ratio(t, name, rate, band(e), func() float64 {
				return writes(t, disk.Dir, rate, seconds, fmt.Sprintf("%s=%s %s %s %d", writer, name, program, file, int(rate*seconds)))
			})
		})
	}
}

// writeMapped stores into a file that is mapped, and leaves the rest to the kernel.
func writeMapped(f *os.File, bytes int) error {
	if err := f.Truncate(int64(bytes)); err != nil {
		return err
	}
	pages, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for at := 0; at < len(pages); at += os.Getpagesize() {
		pages[at] = 1
	}
	return unix.Munmap(pages)
}
