package containerd

import (
	"testing"

	"github.com/weir-io/weir/internal/daemon/grpc"
)

// FuzzContainer: what containerd says of a container and its task is read to its end, and holds no
// more than there was.
func FuzzContainer(f *testing.F) {
	label := string(grpc.AppendString(grpc.AppendString(nil, 1, "tier"), 2, "gold"))
	f.Add(grpc.AppendString(grpc.AppendString(nil, 1, "web"), 2, label))
	f.Add(grpc.AppendString(nil, 1, string(grpc.AppendNumber(nil, 3, 4711))))
	f.Add([]byte{0x12, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, item []byte) {
		one, err := madeOf(item)
		size := len(one.id)
		for key, value := range one.labels {
			size += len(key) + len(value)
		}
		if err == nil && size > len(item) {
			t.Errorf("%d bytes say %q, %q", len(item), one.id, one.labels)
		}
		_, _ = pidIn(item) // must end
	})
}
