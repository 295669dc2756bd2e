package blkdev

import (
	"context"
	"fmt"
	"strings"
)

// tagDir is the directory below /dev/disk in which udev makes links of a kind.
func tagDir(tag string) (dir string, known bool) {
	switch tag {
	case "UUID", "LABEL", "PARTUUID", "PARTLABEL", "ID":
		return "by-" + strings.ToLower(tag), true
	}
	return "", false
}

// tagLink turns UUID=x into /dev/disk/by-uuid/x.
func tagLink(spec string) (string, bool) {
	tag, value, ok := strings.Cut(spec, "=")
	dir, known := tagDir(tag)
	value = strings.Trim(value, `"`)
	if !ok || !known || value == "" {
		return "", false
	}
	return "/dev/disk/" + dir + "/" + encodeTag(value), true
}

// encodeTag encodes a label as udev does in the name of a link: special characters become \xNN.
func encodeTag(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x80 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("#+-.:=@_", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// onName goes on from a bare name: a device, or else a file in the working directory.
func (r *resolver) onName(ctx context.Context, c *Chain, name string) error {
	d, err := r.named(ctx, c, strings.TrimPrefix(name, "dev/"), maxDepth)
	if err == nil {
		c.end(DeviceLayer, "", []Device{d})
		return nil
	}
	if !isNotExist(err) {
		return err
	}
	looked := []string{"/sys/class/block", "/dev/mapper"}
	if r.fs.isHost() {
		looked = append(looked, "the working directory")
		if _, err := stat(name); err == nil {
			return r.onPath(ctx, c, name, maxDepth)
		}
	}
	return r.fs.notFound(c.Spec, looked...)
}

// named reads a device by what stands behind /dev/: vda, cciss/c0d0, mapper/vg0-root,
// vg0/root, or vg0-root. The error is os.ErrNotExist when there is none.
func (r *resolver) named(ctx context.Context, c *Chain, name string, depth int) (Device, error) {
	if name == "" || name == "." || name == ".." || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		return Device{}, &NotFoundError{Spec: name, Reason: "no such block device"}
	}
	d, err := r.fs.deviceNamed(ctx, strings.ReplaceAll(name, "/", "!"), maxDepth)
	if err != nil && isNotExist(err) {
		d, err = r.mapped(ctx, name)
	}
	if err != nil {
		return d, err
	}
	return r.filled(ctx, c, d, depth), nil
}

// mapped reads a device of the device mapper by its name, or by LVM's GROUP/VOLUME.
func (r *resolver) mapped(ctx context.Context, name string) (Device, error) {
	if rest, ok := strings.CutPrefix(name, "mapper/"); ok {
		name = rest
	} else if group, volume, ok := strings.Cut(name, "/"); ok {
		name = strings.ReplaceAll(group, "-", "--") + "-" + strings.ReplaceAll(volume, "-", "--")
	}
	if r.fs.isHost() && !strings.Contains(name, "/") {
		if f, err := stat("/dev/mapper/" + name); err == nil && f.isBlock() {
			return r.fs.Device(ctx, f.rdev)
		}
	}
	names, err := r.fs.dirNames("/sys/class/block", maxNames)
	if err != nil {
		return Device{}, fmt.Errorf("list block devices: %w", err)
	}
	for _, dm := range names {
		if !strings.HasPrefix(dm, "dm-") {
			continue
		}
		dir, err := r.fs.sysDir("/sys/class/block/" + dm)
		if err != nil {
			continue // gone since it was listed
		}
		if s, err := r.fs.attr(dir + "/dm/name"); err == nil && s == name {
			return r.fs.deviceNamed(ctx, dm, maxDepth)
		}
	}
	return Device{}, &NotFoundError{Spec: name, Reason: "no such block device"}
}
