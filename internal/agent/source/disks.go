package source

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/mountinfo"
	"github.com/weir-io/weir/internal/targets/vm"
)

const (
	// devicesEvery is how often new block devices are looked for, and disks of libvirt's domains. The kernel tells of devices
	// at a netlink socket alone, which weird's unit does not allow.
	devicesEvery = 10 * time.Second
	// mountsGather is how long more changes of mounts are waited for. A runtime makes several for each container.
	mountsGather = time.Second
	// mountsShare bounds how much of a processor it takes to read thousands of mounts again and again: one part of it.
	mountsShare = 200
	// mountsMost bounds the wait for that.
	mountsMost = 10 * time.Second
	// disksLeast and reconcile.ResyncTime are how often all targets are looked at for new disks, where these come all the time.
	disksLeast = 10 * time.Second
)

// A Disks tells of targets that may have got a disk while they run: of all, when a disk is mounted, when a place of a plan
// leads to another disk, or when a device is there that a plan names; of libvirt's domains, when any device is new, or
// libvirt stores that a domain has another disk. A disk that only a process in its own mount namespace sees is found by the next
// comparison.
type Disks struct {
	Root  string // below which the host's files are
	Plans *Plans
	// Changed is told of all targets of a kind, "": of all kinds; the name is empty.
	Changed func(kind, name string)
	Log     *slog.Logger
	// Every is how often devices are looked for, and Gather how long more changes of mounts are waited for after one. Zero
	// values are the defaults.
	Every, Gather time.Duration

	mounts       *mountinfo.Watch // nil: they cannot be read
	was          *sight
	all, domains sparing
}

// Open notes which disks there are. Who looks at a target later sees all of them.
func (d *Disks) Open() {
	d.all.least, d.all.most = disksLeast, reconcile.ResyncTime
	d.domains.least, d.domains.most = disksLeast, reconcile.ResyncTime
	var err error
	if d.mounts, err = mountinfo.Open(d.lists()...); err != nil {
		d.blind(err)
	}
	d.was = &sight{}
	d.was = d.look(true)
}

// lists are the files with mounts: those of weird, and of the host's first process where that is in another namespace. Each of
// both can lack mounts that targets have.
func (d *Disks) lists() []string {
	own, first := filepath.Join(d.Root, "proc/self"), filepath.Join(d.Root, "proc/1")
	all := []string{filepath.Join(own, "mountinfo")}
	is, err := os.Readlink(filepath.Join(own, "ns/mnt"))
	its, err2 := os.Readlink(filepath.Join(first, "ns/mnt"))
	if err != nil || err2 != nil || is != its {
		all = append(all, filepath.Join(first, "mountinfo"))
	}
	return all
}

// blind goes on without the list of mounts.
func (d *Disks) blind(err error) {
	if d.mounts != nil {
		_ = d.mounts.Close() // nothing was written
		d.mounts = nil
	}
	d.Log.Warn("weird learns late of disks that are mounted while targets run", "error", err)
}

// Run tells of new disks until the context ends. Open was called before.
func (d *Disks) Run(ctx context.Context) {
	defer d.end()
	every, gather := cmp.Or(d.Every, devicesEvery), cmp.Or(d.Gather, mountsGather)
	for pause := gather; ; {
		changed := d.wait(ctx, every, pause)
		if ctx.Err() != nil {
			return
		}
		began := time.Now()
		d.tell(d.look(changed), changed)
		if changed {
			pause = min(max(gather, mountsShare*time.Since(began)), mountsMost)
		}
	}
}

func (d *Disks) end() {
	d.all.end()
	d.domains.end()
	if d.mounts != nil {
		_ = d.mounts.Close() // nothing was written
	}
}

// wait waits until mounts have changed, and then for more changes; or for a time.
func (d *Disks) wait(ctx context.Context, most, gather time.Duration) (changed bool) {
	if d.mounts == nil {
		sleep(ctx, most)
		return d.sees()
	}
	changed, err := d.mounts.Wait(ctx, most)
	if err == nil && changed {
		sleep(ctx, gather)
		_, err = d.mounts.Wait(ctx, 0) // what has come meanwhile is read with it
	}
	if err != nil && ctx.Err() == nil {
		d.blind(err)
	}
	return changed
}

// sees reports whether the list of mounts can be read again.
func (d *Disks) sees() bool {
	mounts, err := mountinfo.Open(d.lists()...)
	if err != nil {
		return false // as was said
	}
	d.mounts = mounts
	d.Log.Info("weird learns soon of disks that are mounted while targets run, again")
	return true
}

func sleep(ctx context.Context, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tell tells who may have got other disks since the last sight. changed says that mounts have changed: where other plans are
// in force by now, it cannot be told whether these are on the way to their places.
func (d *Disks) tell(now *sight, changed bool) {
	all, domains := now.news(d.was)
	another := now.places.config != d.was.places.config
	d.was = now
	switch {
	case all, changed && another:
		d.all.ask(func() { d.Changed("", "") })
	case domains:
		d.domains.ask(func() { d.Changed("vm", "") })
	}
}

// look looks at what there is now, and at the mounts if these have changed, or other plans are in force. What cannot be
// read is as it was.
func (d *Disks) look(changed bool) *sight {
	now := *d.was
	config, _ := d.Plans.Now()
	if changed || config != now.places.config {
		now.places = placesOf(config)
		d.seeMounts(&now)
	}
	if devices, err := d.devices(); err == nil {
		now.devices = devices
	}
	now.domains = vm.Store(d.Root, now.domains)
	return &now
}

func (d *Disks) seeMounts(now *sight) {
	if d.mounts == nil {
		return
	}
	was := now.mounts
	now.mounts = make(map[mount]bool, len(was))
	err := d.mounts.Read(func(i mountinfo.Info) (stop bool) {
		now.see(i)
		return false
	})
	if err != nil {
		now.mounts = was
		d.blind(err)
	}
}

// devices are the block devices. The inode of the link to each tells a new device from an earlier one of its number: the
// kernel numbers these links in turn.
func (d *Disks) devices() (map[blkdev.Number]uint64, error) {
	entries, err := os.ReadDir(filepath.Join(d.Root, "sys/dev/block"))
	if err != nil {
		return nil, err
	}
	all := make(map[blkdev.Number]uint64, len(entries))
	for _, e := range entries {
		number, err := blkdev.ParseNumber(e.Name())
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil { // it is gone
			continue
		}
		if st, is := info.Sys().(*syscall.Stat_t); is {
			all[number] = st.Ino
		}
	}
	return all, nil
}
