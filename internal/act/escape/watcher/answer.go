package watcher

import (
	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Answer makes what answers the questions of an escape.Asker, on this host.
func Answer(groups *cgroupfs.FS) func(name string, with []byte) (any, error) {
	var w *Watcher // open
	return func(name string, with []byte) (answer any, err error) {
		switch name {
		case escape.OpenWatcher:
			w, err = Watch(groups)
			return nil, err
		case escape.AddGroup:
			var path string
			if err := helper.Unpack(with, &path); err != nil {
				return nil, err
			}
			g, err := groups.Unified().Group(path)
			if err != nil {
				return nil, err
			}
			return nil, w.Add(g, 0)
		}
		var id uint64
		if err := helper.Unpack(with, &id); err != nil {
			return nil, err
		}
		switch name {
		case escape.RemoveGroup:
			return nil, w.Remove(id)
		case escape.BytesOf:
			return w.Escaped(id)
		case escape.FilesOf:
			return w.Files(id, groups.Unified())
		}
		return nil, helper.Unknown(name)
	}
}
