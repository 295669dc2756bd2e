package vm

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// fakeVirsh is a virsh that notes how it is called and answers with a text, or fails.
func fakeVirsh(t *testing.T, script string) (calls func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "virsh"), []byte("#!/bin/sh\necho \"$@\" >>"+log+"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestConfig(t *testing.T) {
	calls := fakeVirsh(t, `echo "weight : 0"
echo "device_weight  : "
echo "device_read_bytes_sec: /dev/vda,1000,/dev/vdb,0"
echo "device_write_bytes_sec: /dev/vda,2000"
echo "device_write_iops_sec: "`)
	c := Config{"my db", "qemu"}
	got, err := c.Limits(t.Context())
	want := map[string]limit.Limit{"/dev/vda": {RBPS: limit.PerSecond(1000), WBPS: limit.PerSecond(2000)}}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	err = c.Keep(t.Context(), map[string]limit.Limit{
		"/dev/vdb": {WBPS: limit.PerSecond(5)}, "/dev/vda": {WBPS: limit.Unlimited, RIOPS: limit.PerSecond(7)},
	})
	if err != nil {
		t.Error(err)
	}
	const common = "--quiet --connect qemu:///system blkiotune --config --domain=my db"
	if got, want := calls(), common+"\n"+common+" --device-write-bytes-sec=/dev/vda,0,/dev/vdb,5 --device-read-iops-sec=/dev/vda,7\n"; got != want {
		t.Errorf("called with\n%swant\n%s", got, want)
	}
	command, err := c.KeepCommand(map[string]limit.Limit{"/dev/vdb": {WBPS: limit.PerSecond(5)}})
	if want := []string{"virsh", "--quiet", "--connect", "qemu:///system", "blkiotune", "--config", "--domain=my db", "--device-write-bytes-sec=/dev/vdb,5"}; err != nil || !slices.Equal(command, want) {
		t.Errorf("KeepCommand: %q, %v; want %q", command, err, want)
	}
	if command, err := c.KeepCommand(nil); command != nil || err != nil {
		t.Errorf("KeepCommand of nothing: %q, %v", command, err)
	}
	for _, path := range []string{"/dev/a,b", "vda"} {
		if err := c.Keep(t.Context(), map[string]limit.Limit{path: {WBPS: limit.PerSecond(5)}}); err == nil || !strings.Contains(err.Error(), "cannot take the device name") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := c.Keep(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestConfigRefused(t *testing.T) {
	fakeVirsh(t, "echo 'error: no domain' >&2; echo 'error: really' >&2; exit 1")
	if _, err := (Config{"db", "lxc"}).Limits(t.Context()); err == nil || err.Error() != "vm:db: virsh: error: no domain error: really" {
		t.Errorf("%v", err)
	}
	for _, rate := range []string{"x", "1000x", "0x10", "-1", "1 2", "99999999999999999999"} {
		fakeVirsh(t, "echo 'device_read_bytes_sec: /dev/vda,"+rate+"'")
		if got, err := (Config{"db", "lxc"}).Limits(t.Context()); err == nil || !strings.Contains(err.Error(), "read virsh's answer") {
			t.Errorf("%s: %v, %v", rate, got, err)
		}
	}
	fakeVirsh(t, "cat /dev/zero")
	if _, err := (Config{"db", "lxc"}).Limits(t.Context()); err == nil || !strings.Contains(err.Error(), "writes more than") {
		t.Errorf("an answer without an end: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (Config{"db", "lxc"}).Limits(t.Context()); !fault.IsUnsupported(err) {
		t.Errorf("%v", err)
	}
	if got := Configs("../x"); got != nil {
		t.Errorf("%v", got)
	}
}
