package blkdev

import "slices"

// onceMost bounds the specs that are remembered.
const onceMost = 256

// once are the chains of specs that Resolve has found. A nil one remembers nothing.
type once map[string]Chain

// ForMany is an FS for who asks about many targets now, most of which have their limits on the same devices: it finds each
// spec once. It serves one goroutine.
func (fs FS) ForMany() FS {
	fs.once = once{}
	return fs
}

func (o once) keep(spec string, c Chain) {
	if o == nil || len(o) >= onceMost {
		return
	}
	// Who gets it may add to it.
	c.Layers, c.Devices, c.Notes = slices.Clip(c.Layers), slices.Clip(c.Devices), slices.Clip(c.Notes)
	o[spec] = c
}
