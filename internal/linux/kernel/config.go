package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/weir-io/weir/internal/fault"
)

// A Config is what a kernel was built with.
type Config struct {
	File    string            // where it was read; empty: nowhere, and nothing is known
	options map[string]string // set ones only: "BLK_CGROUP" is "y"
}

// Lacks reports whether the kernel is known to be without an option ("BLK_CGROUP").
func (c Config) Lacks(option string) bool { return c.File != "" && c.options[option] == "" }

// An Unpack reads what gzip has packed. It is given, because that library makes tables at each start
// of a program.
type Unpack func(io.Reader) (io.Reader, error)

const packed = ".gz"

// configMax bounds a configuration; a full one has about 10,000 lines.
const configMax = 4 << 20

// Config reads what the kernel was built with: /proc/config.gz if it keeps that
// (CONFIG_IKCONFIG_PROC), or the file that distributions install beside it. A host
// with neither gives the zero Config. unpack reads the first, which is packed by gzip; nil: it is
// not read.
func (f FS) Config(release Release, unpack Unpack) (Config, error) {
	for _, file := range []string{"/proc/config.gz", "/boot/config-" + release.Text, "/lib/modules/" + release.Text + "/config"} {
		if unpack == nil && strings.HasSuffix(file, packed) {
			continue
		}
		c, err := f.config(file, unpack)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || fault.IsUnsupported(err) { // the last: weird cannot be run
			continue
		}
		if err != nil {
			return Config{}, fmt.Errorf("read the kernel's configuration: %s: %w", file, err)
		}
		return c, nil
	}
	return Config{}, nil
}

func (f FS) config(file string, unpack Unpack) (Config, error) {
	in, err := os.Open(f.at(file))
	if err != nil {
		return Config{}, err
	}
	defer in.Close()
	var text io.Reader = in
	if strings.HasSuffix(file, packed) {
		if text, err = unpack(in); err != nil {
			return Config{}, err
		}
	}
	c := Config{File: file, options: map[string]string{}}
	lines := bufio.NewScanner(io.LimitReader(text, configMax))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if name, isOption := strings.CutPrefix(name, "CONFIG_"); ok && isOption {
			c.options[name] = value
		}
	}
	return c, lines.Err()
}
