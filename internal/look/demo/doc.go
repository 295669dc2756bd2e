// Package demo runs weir's main job where it can do no harm: it writes to a scratch disk,
// without and with a limit, direct and buffered, and measures each at the writer and at the
// device.
package demo
