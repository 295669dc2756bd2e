package source

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/lab"
)

// A host whose disks change.
type changing struct {
	*Disks
	t *testing.T
}

func newChanging(t *testing.T, config string) changing {
	t.Helper()
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	d := changing{&Disks{Root: h.Root, Plans: NewPlans(readPlans(t, config)), Log: slog.New(slog.DiscardHandler)}, t}
	return d
}

func readPlans(t *testing.T, config string) *plans.Config {
	t.Helper()
	read, err := planfile.Read([]plans.File{{Name: "a.yaml", Text: []byte(config)}})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func (d changing) must(errs ...error) {
	d.t.Helper()
	if err := errors.Join(errs...); err != nil {
		d.t.Fatal(err)
	}
}

// edit changes the list of mounts in place.
func (d changing) edit(change func(text string) string) {
	d.t.Helper()
	file := filepath.Join(d.Root, "proc/1/mountinfo")
	text, err := os.ReadFile(file)
	d.must(err, os.WriteFile(file, []byte(change(string(text))), 0o600))
}

func (d changing) mount(line string) {
	d.edit(func(text string) string { return text + line + "\n" })
}

// domain is what libvirt stores of one, in short.
const domain = "<domstatus state='running'>\n  <currentMemory>100</currentMemory>\n  <disk type='file' device='disk'>\n    <source file='/a'/>\n  </disk>\n"

// store has libvirt store a domain.
func (d changing) store(name, text string) {
	d.t.Helper()
	file := filepath.Join(d.Root, "run/libvirt/qemu", name+".xml")
	d.must(os.WriteFile(file+".new", []byte(text), 0o600), os.Rename(file+".new", file))
}

// A running target may have another disk after some changes of mounts and devices. After most, as those of each container's
// start, none has.
func TestWhoMayHaveAnotherDisk(t *testing.T) {
	const places = "plans: {small: {write: 1MB/s, on: [{path: /srv/db/x, write: 2MB/s}]}}\nassign: [{docker: web, plan: small}]\n"
	link := func(d changing, name string) string { return filepath.Join(d.Root, "sys/dev/block", name) }
	for _, c := range []struct {
		what, config string
		do           func(d changing)
		all, domains bool
	}{
		{"nothing", places, func(changing) {}, false, false},
		{"an overlay, as each container has", places, func(d changing) {
			d.mount("90 21 0:77 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw,lowerdir=/a:/b")
			d.mount("91 21 0:78 / /run/netns/x rw - nsfs nsfs rw")
		}, false, false},
		{"another mount of a disk", places, func(d changing) { d.mount("90 21 254:16 /volumes /var/lib/kubelet/x rw - xfs /dev/vdb rw") }, false, false},
		{"the end of one", places, func(d changing) {
			d.edit(func(text string) string {
				return strings.Replace(text, "26 21 254:16 / /data rw,relatime - xfs /dev/vdb rw,inode64\n", "", 1)
			})
		}, false, false},
		{"a disk", places, func(d changing) { d.mount("90 21 254:32 / /mnt rw - ext4 /dev/vdc rw") }, true, false},
		{"btrfs, which has a number of its own", places, func(d changing) { d.mount("90 21 0:80 / /mnt rw - btrfs /dev/vdc rw") }, true, false},
		{"a disk that is known, at a place of a plan", places, func(d changing) { d.mount("90 21 254:16 / /srv/db rw - xfs /dev/vdb rw") }, true, false},
		{"a device", places, func(d changing) { d.must(os.Symlink("../../devices/x", link(d, "254:32"))) }, false, true},
		{"a device, where a plan names one", strings.Replace(places, "/srv/db/x", "/dev/vdc", 1), func(d changing) { d.must(os.Symlink("../../devices/x", link(d, "254:32"))) }, true, true},
		{"another device of a number that is mounted", places, func(d changing) {
			d.must(os.Rename(link(d, "254:16"), link(d, "x")), os.Symlink("../../devices/x", link(d, "254:16")), os.Remove(link(d, "x")))
		}, true, true},
		{"the end of a device", places, func(d changing) { d.must(os.Remove(link(d, "254:16"))) }, false, false},
		{"a domain that gets a disk", places, func(d changing) { d.store("db", domain+"<source file='/b'/>\n") }, false, true},
		{"a domain that gets another disk", places, func(d changing) { d.store("db", strings.Replace(domain, "/a", "/b", 1)) }, false, true},
		{"a domain that gets more memory", places, func(d changing) { d.store("db", strings.Replace(domain, "100", "200", 1)) }, false, false},
		{"a new domain", places, func(d changing) { d.store("db-2", domain) }, false, true},
		{"the end of a domain", places, func(d changing) { d.must(os.Remove(filepath.Join(d.Root, "run/libvirt/qemu/db.xml"))) }, false, false},
		{"other plans alone", places, func(d changing) { d.Plans.Set(readPlans(d.t, strings.ReplaceAll(places, "/srv/db/x", "/data/x"))) }, false, false},
	} {
		d := newChanging(t, c.config)
		folder := filepath.Join(d.Root, "run/libvirt/qemu")
		d.must(os.MkdirAll(folder, 0o700))
		d.store("db", domain)
		d.must(os.Chtimes(folder, time.Unix(1, 0), time.Unix(1, 0)))
		d.Open()
		c.do(d)
		if all, domains := d.look(true).news(d.was); all != c.all || domains != c.domains {
			t.Errorf("%s: all %v, domains %v", c.what, all, domains)
		}
		d.end()
	}
}

// A place leads to another disk also when what is mounted on the way there goes.
func TestTheEndOfAMountAtAPlace(t *testing.T) {
	d := newChanging(t, "plans: {small: {on: [{path: /data/x, write: 2MB/s}]}}\nassign: [{docker: web, plan: small}]\n")
	d.Open()
	defer d.end()
	d.edit(func(text string) string { return strings.Replace(text, " /data ", " /elsewhere ", 1) })
	if all, domains := d.look(true).news(d.was); !all || domains {
		t.Errorf("all %v, domains %v", all, domains)
	}
}

// awaitTold waits for what is told next.
func awaitTold(t *testing.T, told <-chan string, want string) {
	t.Helper()
	select {
	case one := <-told:
		if one != want {
			t.Errorf("%q, want %q", one, want)
		}
	case <-time.After(patience):
		t.Fatalf("nobody is told: %q", want)
	}
}

// What changes is told of, many changes at once, and nothing is after the end.
func TestNewDisksAreTold(t *testing.T) {
	d := newChanging(t, config)
	told := make(chan string, 8)
	d.Changed = func(kind, name string) { told <- kind + ":" + name }
	d.Every, d.Gather = 2*time.Millisecond, time.Millisecond
	d.Open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { d.Run(ctx); close(done) }()
	d.must(os.Symlink("../../devices/x", filepath.Join(d.Root, "sys/dev/block/254:32")))
	awaitTold(t, told, "vm:")
	began := time.Now()
	d.mount("90 21 254:32 / /mnt rw - ext4 /dev/vdc rw")
	awaitTold(t, told, ":")
	for range 20 { // these wait for their turn
		d.mount("91 21 254:48 / /mnt/x rw - ext4 /dev/vdd rw")
		time.Sleep(time.Millisecond)
		d.edit(func(text string) string { return strings.Replace(text, "91 21", "92 21", 1) })
	}
	cancel()
	<-done
	if len(told) != 0 && time.Since(began) < disksLeast {
		t.Errorf("%d more are told", len(told))
	}
}

// Without a list of mounts devices are looked for all the same, and the log says so once. Once there is a list, its disks
// are told of.
func TestDisksWithoutMounts(t *testing.T) {
	d := newChanging(t, config)
	var log strings.Builder
	d.Log = slog.New(slog.NewTextHandler(&log, nil))
	list := filepath.Join(d.Root, "proc/1/mountinfo")
	text, err := os.ReadFile(list)
	d.must(err, os.Remove(list))
	told := make(chan string, 8)
	d.Changed = func(kind, name string) { told <- kind + ":" + name }
	d.Every = time.Millisecond
	d.Open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { d.Run(ctx); close(done) }()
	d.must(os.Symlink("../../devices/x", filepath.Join(d.Root, "sys/dev/block/254:32")))
	awaitTold(t, told, "vm:")
	d.must(os.WriteFile(list, text, 0o600))
	awaitTold(t, told, ":")
	cancel()
	<-done
	if n := strings.Count(log.String(), "weird learns late of disks"); n != 1 {
		t.Errorf("the log says it %d times: %s", n, log.String())
	}
}
