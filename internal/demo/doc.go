// Package demo runs weir's main job where it can do no harm: writes to a scratch
// disk, without and with a limit, direct and buffered, each measured at the writer
// and at the device.
package demo
