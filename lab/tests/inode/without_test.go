package inode_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/lab"
)

// Without BPF weir cannot tell, and says so.
func TestInodeUnavailable(t *testing.T) {
	lab.Need(t, lab.Lane("uml"))
	_, err := reader()
	var cannot *bpf.Unavailable
	if !errors.As(err, &cannot) || cannot.Reason == "" || cannot.Remedy == "" {
		t.Errorf("open: %v", err)
	}
}

// On v1 the kernel charges all writeback to the root group.
func TestInodeOnV1(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V1, lab.BPF, lab.NoSystemd, lab.FS("ext4"))
	file := filepath.Join(lab.Disk(t, lab.FS("ext4")).Dir, "file")
	if err := fill(file); err != nil {
		t.Fatal(err)
	}
	if o := at(t, file).Owner; o.State != inode.Owned || !o.Memory.Root || !o.IO.Root {
		t.Errorf("the owner is %+v", o)
	}
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	var refused *inode.Refused
	if _, err := r.Mend(t.Context(), file); !errors.As(err, &refused) || !strings.Contains(err.Error(), "cgroup v2") {
		t.Errorf("mend: %v", err)
	}
}
