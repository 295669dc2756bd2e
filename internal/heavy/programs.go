package heavy

import (
	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/escape/watcher"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/partial"
)

// programs are what the pacer uses of BPF.
var programs = pacer.Programs{
	Escapes: pacer.Kind[escape.Watcher]{
		Load: func(groups *cgroupfs.FS) (pacer.Loaded, error) { return watcher.Watch(groups) },
		Take: func(fds []int) (escape.Watcher, error) { return watcher.Taken(fds) },
	},
	Parts: pacer.Kind[pacer.Parts]{
		Load: func(groups *cgroupfs.FS) (pacer.Loaded, error) { return partial.Watch(groups) },
		Take: func(fds []int) (pacer.Parts, error) {
			w, err := partial.Taken(fds)
			return parts{w}, err
		},
	},
}

// parts are a partial.Watcher as the pacer has it.
type parts struct{ *partial.Watcher }

func (p parts) Add(g cgroupfs.Group) (pacer.Counter, error) { return p.Watcher.Add(g) }

func (p parts) AddEscapes(g cgroupfs.Group, disks func() []blkdev.Number) (pacer.Counter, error) {
	return p.Watcher.AddEscapes(g, disks)
}
