package stream

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/base/shape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// Bounds of what one event has.
const (
	listMost    = groupsMost // groups, disks, groups that are gone
	withinMost  = 4096       // devices of a group, limits, disks below one
	entriesMost = 32 << 10   // of these together
	textMost    = 64 << 10   // bytes of a text
)

// bounded refuses an event of which more would be made than weird tells.
func bounded(data []byte) error {
	err := shape.Check(data, shape.Bounds{List: listMost, Within: withinMost, Entries: entriesMost, Fields: 256, Deep: 16, Text: textMost})
	var more *shape.Error
	if errors.As(err, &more) {
		return fmt.Errorf("weird tells of %w in one event, and no more are read", err)
	}
	if err != nil {
		return fmt.Errorf("what weird says cannot be read: %w", err)
	}
	return nil
}

// sizeOf is about how many bytes a known group takes, of which weird said so many.
func sizeOf(k known, text int) int {
	size := text + int(unsafe.Sizeof(watch.Group{})) + len(k.group.Devices)*int(unsafe.Sizeof(watch.Device{}))
	for i := range k.group.Devices {
		d := &k.group.Devices[i]
		size += len(d.Below) * int(unsafe.Sizeof(blkdev.Number{}))
		if d.Rates != nil {
			size += int(unsafe.Sizeof(watch.Rates{}))
		}
		if d.Expected != nil {
			size += int(unsafe.Sizeof(place.Expected{}))
		}
	}
	if k.told != nil {
		size += int(unsafe.Sizeof(held.Told{})) + len(k.told.Limits)*int(unsafe.Sizeof(held.Limit{}))
	}
	return size
}
