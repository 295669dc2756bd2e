package prove

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Place is where loads run: a group, and a directory on a device.
type Place struct {
	Host launch.Host
	Dir  string // loads' files have no name in it, or lose it at once
	// Folder is Dir, opened, where Dir is a name in another process's root.
	Folder *os.File
	Device blkdev.Device
	Chain  *blkdev.Chain // from Dir to Device; nil if unknown
	FS     *blkdev.Mount // the file system of Dir; nil if unknown
	Limit  limit.Limit   // what binds the load on the device
	// Target is the group whose limit is measured; the zero Group for a new one for each row.
	Target cgroupfs.Group
	Unit   string // of systemd, that the target is; "" if it is none
	// Inside is the group that loads are started in: Target, or one below it.
	Inside cgroupfs.Group
	// Paced says that weir's pacer holds what writers dirty.
	Paced bool
	// Escapes says that it holds what they write over files of other groups (cgroup v2).
	Escapes bool
	// Rooted says that v1's root group has a limit on the device that is at least as strict: it
	// applies to the writeback of all groups together.
	Rooted bool
	// Stopped is the group in which weir's pacer pauses the target's processes, and which loads
	// join too; the zero Group if that is Inside, or if there is no pacer.
	Stopped cgroupfs.Group
	Version cgroupfs.Version // of a group that weir makes; 0 for either
	// Sole says that no other process uses the device.
	Sole bool
	// Explained is what is known of the place without measuring.
	Explained Explanation
}

// Stays reports that the limits are not weir's to lift.
func (p Place) Stays() bool { return p.Target.Hierarchy() != nil }

// Drains reports that dirty data after a row is written at the limit: the limit applies to
// writeback, and weir may not remove it.
func (p Place) Drains() bool { return p.Stays() && p.Target.Hierarchy().Version == cgroupfs.V2 }

// Cached reports that the file system of the place does direct writes through the page
// cache.
func (p Place) Cached() bool { return p.FS != nil && p.FS.DataJournal() }

// Entangled reports that a process that writes to a page under writeback writes the file back
// itself: on btrfs it waits for the ordered extent of the page, and starts the writeback of its
// dirty pages (btrfs_start_ordered_extent, seen on 6.18).
func (p Place) Entangled() bool { return p.FS != nil && p.FS.FSType == "btrfs" }

// keep is how much of a file system stays free.
const keep = 64 * mega

// Room returns how many bytes a proof may use of the place: half of the free space, and nothing
// of the last 64 MiB.
func (p Place) Room() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(p.folder(), &st); err != nil {
		return 0, fmt.Errorf("read free space of %s: %w", p.Dir, err)
	}
	free := int64(st.Bavail) * st.Bsize
	room := (free - keep) / 2
	if readOnly := st.Flags&unix.ST_RDONLY != 0; readOnly || room < 4*mega {
		return 0, noRoom(p.Dir, readOnly, free)
	}
	return min(room, 1<<30), nil
}

// enter makes the room for one row. leave lifts the limit if it is weir's own, so that
// what waits to be written is, and is called before close.
func (p Place) enter(ctx context.Context, limited bool) (room *launch.Room, leave, done func() error, err error) {
	nothing := func() error { return nil }
	if p.Stays() {
		room := launch.Enter(p.Inside)
		if p.Stopped.Hierarchy() != nil {
			room.Join(p.Stopped)
		}
		return room, nothing, nothing, nil
	}
	bounds := p.Limit
	if !limited {
		bounds = limit.None
	}
	change := hold.Change{Device: p.Device.Number, Limit: bounds}
	o := launch.Options{Command: "prove", Version: p.Version, Changes: []hold.Change{change}}
	paced := p.Paced && limited
	if paced {
		o.Then = func(room *launch.Room) error {
			_, err := p.Host.Pace(room)
			return err
		}
	}
	if room, err = p.Host.Prepare(ctx, o); err != nil {
		return nil, nil, nil, err
	}
	leave = func() error {
		change.Limit = limit.None
		var unpaced error
		if paced {
			unpaced = p.Host.Unpace(room)
		}
		return errors.Join(unpaced, p.Host.Holder.Apply(context.WithoutCancel(ctx), hold.Plan{Group: room.IO, Changes: []hold.Change{change}}))
	}
	done = func() error {
		left, err := room.Close()
		if left != launch.LeftNothing {
			err = errors.Join(err, launch.SweepLater())
		}
		return err
	}
	return room, leave, done, nil
}
