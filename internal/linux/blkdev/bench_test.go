package blkdev

import "testing"

// BenchmarkResolve is on this host: the root's path, and its device by number.
func BenchmarkResolve(b *testing.B) {
	fs := New("/")
	c, err := fs.Resolve(b.Context(), "/")
	if err != nil {
		b.Fatalf("this host's root has no block device: %v", err)
	}
	for _, spec := range []string{"/", c.Devices[0].Node, c.Devices[0].Number.String()} {
		b.Run(spec, func(b *testing.B) {
			for b.Loop() {
				if _, err := fs.Resolve(b.Context(), spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
