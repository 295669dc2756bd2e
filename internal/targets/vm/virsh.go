package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/tool"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// A Config is a domain's configuration, with which libvirt starts the domain and which virsh
// can change.
type Config struct {
	Name   string
	Driver string // "qemu" or "lxc"
}

// ConfigOf returns the configuration of a domain that is running or has run.
func (k Kind) ConfigOf(name string) (Config, error) {
	d, err := k.find("vm:"+name, name)
	return Config{name, d.driver}, err
}

// Configs returns the possible configurations of a domain that is not running.
func Configs(name string) (all []Config) {
	if !isName(name) {
		return nil
	}
	for _, driver := range drivers {
		all = append(all, Config{name, driver})
	}
	return all
}

// uri is the libvirt URI of a host's driver.
func uri(driver string) string {
	switch driver {
	case "qemu":
		return "qemu:///system"
	case "lxc":
		return "lxc:///"
	}
	return ""
}

// options are virsh's options for the rates (virsh(1), blkiotune); with _ for - they are the
// names in its output.
var options = [...]string{
	limit.RBPS: "device-read-bytes-sec", limit.WBPS: "device-write-bytes-sec",
	limit.RIOPS: "device-read-iops-sec", limit.WIOPS: "device-write-iops-sec",
}

// virshMax bounds how long virsh may take: it waits for a domain's lock while the domain
// starts.
const virshMax = 20 * time.Second

func (c Config) virsh(ctx context.Context, args ...string) (string, error) {
	program, err := exec.LookPath("virsh")
	if err != nil {
		return "", &fault.Unsupported{Feature: "keep limits of vm:" + c.Name, Reason: "weir asks libvirt with virsh, which is not installed", Remedy: "install libvirt-clients"}
	}
	ctx, cancel := context.WithTimeout(ctx, virshMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.words(args)...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	out, messages, err := tool.Run(cmd)
	var failed *exec.ExitError
	if errors.As(err, &failed) && ctx.Err() == nil {
		return "", fmt.Errorf("vm:%s: virsh: %s", c.Name, strings.Join(strings.Fields(string(messages)), " "))
	}
	if err != nil {
		return "", fmt.Errorf("vm:%s: run virsh: %w", c.Name, errors.Join(err, context.Cause(ctx)))
	}
	return string(out), nil
}

// words returns virsh's arguments for a domain's configuration.
func (c Config) words(args []string) []string {
	return slices.Concat([]string{"--quiet", "--connect", uri(c.Driver), "blkiotune", "--config", "--domain=" + c.Name}, args)
}

// Limits returns the limits in the configuration, by device path.
func (c Config) Limits(ctx context.Context) (map[string]limit.Limit, error) {
	text, err := c.virsh(ctx)
	if err != nil {
		return nil, err
	}
	return parseTune(text)
}

// parseTune reads lines such as "device_write_bytes_sec: /dev/sda,1000,/dev/sdb,2000".
func parseTune(text string) (map[string]limit.Limit, error) {
	all := map[string]limit.Limit{}
	for line := range strings.Lines(text) {
		name, list, _ := strings.Cut(line, ":")
		for _, k := range limit.Keys {
			if strings.TrimSpace(name) != strings.ReplaceAll(options[k], "-", "_") {
				continue
			}
			fields := strings.Split(strings.TrimSpace(list), ",")
			for i := 0; i+1 < len(fields); i += 2 {
				n, err := strconv.ParseUint(strings.TrimSpace(fields[i+1]), 10, 64)
				if err != nil {
					return nil, fmt.Errorf("read virsh's answer %q: %w", strings.TrimSpace(line), err)
				}
				if n != 0 {
					all[fields[i]] = all[fields[i]].With(k, limit.PerSecond(n))
				}
			}
		}
	}
	return all, nil
}

// Keep makes libvirt change limits in the configuration, by device path: unset rates stay, and
// unlimited ones are removed.
func (c Config) Keep(ctx context.Context, all map[string]limit.Limit) error {
	args, err := c.tune(all)
	if err == nil && args != nil {
		_, err = c.virsh(ctx, args...)
	}
	return err
}

// KeepCommand is the command that Keep runs; none if it would change nothing.
func (c Config) KeepCommand(all map[string]limit.Limit) ([]string, error) {
	args, err := c.tune(all)
	if err != nil || args == nil {
		return nil, err
	}
	return append([]string{"virsh"}, c.words(args)...), nil
}

// tune returns virsh's options that change limits.
func (c Config) tune(all map[string]limit.Limit) (args []string, err error) {
	for _, k := range limit.Keys {
		var list []string
		for _, path := range slices.Sorted(maps.Keys(all)) {
			if !filepath.IsAbs(path) || strings.Contains(path, ",") {
				return nil, fmt.Errorf("vm:%s: virsh cannot take the device name %q", c.Name, path)
			}
			if r := all[path].Get(k); r.IsSet() {
				n, _ := r.Number() // 0 has virsh take it out
				list = append(list, fmt.Sprintf("%s,%d", path, n))
			}
		}
		if len(list) > 0 {
			args = append(args, "--"+options[k]+"="+strings.Join(list, ","))
		}
	}
	return args, nil
}
