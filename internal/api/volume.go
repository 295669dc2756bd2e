package api

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/space"
)

// Volumes is the document of weir volume.
type Volumes struct {
	Schema
	Volumes []Volume `json:"volumes"`
}

// A Volume is one volume.
type Volume struct {
	Name    string         `json:"name"`
	Mount   string         `json:"mount"`
	Image   string         `json:"image,omitempty"` // empty: adopted
	FS      string         `json:"fs"`
	Limit   limit.Limit    `json:"limit"`
	For     []string       `json:"for"`
	Adopted bool           `json:"adopted"`
	Up      bool           `json:"up"`
	Device  string         `json:"device,omitempty"`
	Number  *blkdev.Number `json:"number,omitempty"`
	Size    uint64         `json:"size_bytes"` // of the file or the file system; 0: not known
	Used    uint64         `json:"used_bytes"` // 0 while it is down
	Error   string         `json:"error,omitempty"`
}

// VolumesOf makes the document of some volumes.
func VolumesOf(all ...space.Volume) Volumes {
	doc := Volumes{Schema: SchemaOf("volume"), Volumes: []Volume{}}
	for _, v := range all {
		doc.Volumes = append(doc.Volumes, volumeOf(v))
	}
	return doc
}

func volumeOf(v space.Volume) Volume {
	d := Volume{Name: v.Name, Mount: v.Mount, Image: v.Image, FS: v.FS, Limit: v.Limit, For: append([]string{}, v.For...), Adopted: v.Adopted(),
		Up: v.Up, Size: v.Size, Used: v.Used}
	if v.Up {
		d.Device, d.Number = v.Device.Node, &v.Device.Number
	}
	if v.Err != nil {
		d.Error = v.Err.Error()
	}
	return d
}
