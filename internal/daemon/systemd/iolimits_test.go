package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

func TestLimitsOfOnePathAreJoined(t *testing.T) {
	var got []PathLimit
	got = addRates(got, limit.RBPS, []deviceRate{{"/dev/sda", 5}})
	got = addRates(got, limit.WBPS, []deviceRate{{"/data", 7}, {"/dev/sda", 6}, {"/dev/sdb", math.MaxUint64}})
	want := []PathLimit{
		{Path: "/dev/sda", Limit: limit.None.With(limit.RBPS, limit.PerSecond(5)).With(limit.WBPS, limit.PerSecond(6))},
		{Path: "/data", Limit: limit.None.With(limit.WBPS, limit.PerSecond(7))},
		{Path: "/dev/sdb", Limit: limit.None},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// sysfs has a disk sda with partitions sda1 and sda2, a LUKS device dm-0 on sda2 and a
// volume dm-1 on that, a disk sdb, and a volume dm-2 on both disks.
func sysfs(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
	device := func(dir, number string, slaves ...string) {
		name := filepath.Base(dir)
		put("sys/devices/"+dir+"/dev", number+"\n")
		put("sys/devices/"+dir+"/size", "2048\n")
		link("sys/dev/block/"+number, "../../devices/"+dir)
		link("sys/class/block/"+name, "../../devices/"+dir)
		for _, s := range slaves {
			put("sys/devices/"+dir+"/slaves/"+s, "")
		}
		if strings.HasPrefix(name, "dm-") {
			put("sys/devices/"+dir+"/dm/name", "volume"+name[3:]+"\n")
			put("sys/devices/"+dir+"/dm/uuid", "LVM-x\n")
		}
	}
	device("sda", "8:0")
	device("sda/sda1", "8:1")
	device("sda/sda2", "8:2")
	put("sys/devices/sda/sda1/partition", "1\n")
	put("sys/devices/sda/sda2/partition", "2\n")
	device("sdb", "8:16")
	device("dm-0", "254:0", "sda2")
	device("dm-1", "254:1", "dm-0")
	device("dm-2", "254:2", "dm-1", "sdb")
	device("dm-3", "254:3", "sda1", "sda2")
	put("proc/1/mountinfo", "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:30 / /over rw - overlay overlay rw,lowerdir=/a,upperdir=/b,workdir=/c\n"+
		"23 21 254:1 / /data rw - xfs /dev/mapper/volume1 rw\n24 21 0:31 / /run rw - tmpfs tmpfs rw\n")
	for _, dir := range []string{"over", "data/sub", "run", "b"} {
		put(dir+"/file", "")
	}
	return root
}

func TestDevicesOf(t *testing.T) {
	disks := blkdev.New(sysfs(t))
	for path, want := range map[string]string{
		"/dev/sdb":            "[8:16]",
		"/dev/sda2":           "[8:0]",
		"/dev/block/8:16":     "[8:16]",
		"/dev/mapper/volume0": "[254:0 8:0]",
		"/dev/mapper/volume1": "[254:1 254:0 8:0]",
		"/dev/mapper/volume2": "[254:2]",
		"/dev/mapper/volume3": "[254:3 8:0]", // as dm-verity: two partitions of one disk
		"/":                   "[8:0]",
		"/data/sub/file":      "[254:1 254:0 8:0]",
		"/over":               "[]",
		"/run":                "[]",
		"/dev/none":           "[]",
	} {
		if got := fmt.Sprint(devicesOf(t.Context(), disks, path)); got != want {
			t.Errorf("devicesOf(%s) = %s, want %s", path, got, want)
		}
	}
}

// A device on one disk is never where systemd's way ends. Versions differ in how far they follow a longer one.
func TestWhereSystemdsWayEnds(t *testing.T) {
	root := sysfs(t)
	disks := blkdev.New(root)
	for path, want := range map[string]struct {
		ends string
		past bool
	}{
		"8:16": {"[8:16]", false}, "8:0": {"[8:0]", false}, "254:0": {"[8:0]", true}, "254:1": {"[254:0 8:0]", true},
		"254:2": {"[254:2]", false}, "254:3": {"[8:0]", true}, "9:9": {"[]", false},
	} {
		n, err := blkdev.ParseNumber(path)
		if err != nil {
			t.Fatal(err)
		}
		l := PathLimit{Devices: devicesOf(t.Context(), disks, path)}
		if got := fmt.Sprint(l.Ends()); got != want.ends {
			t.Errorf("%s ends at %s, want %s", path, got, want.ends)
		}
		if on, known := l.On(); known != (len(l.Ends()) == 1) || known && on != l.Ends()[0] {
			t.Errorf("%s is on %s, %t", path, on, known)
		}
		if past := GoesPast(t.Context(), root, n); past != want.past {
			t.Errorf("systemd goes past %s: %t", path, past)
		}
	}
}

func TestObjects(t *testing.T) {
	for unit, want := range map[string][2]string{
		"cron.service":    {"/org/freedesktop/systemd1/unit/cron_2eservice", "org.freedesktop.systemd1.Service"},
		"a\\x2db@1.mount": {"/org/freedesktop/systemd1/unit/a_5cx2db_401_2emount", "org.freedesktop.systemd1.Mount"},
		"6to4.slice":      {"/org/freedesktop/systemd1/unit/_36to4_2eslice", "org.freedesktop.systemd1.Slice"},
	} {
		if got := ObjectOf(unit); string(got) != want[0] || !got.IsValid() {
			t.Errorf("ObjectOf(%s) = %s, want %s", unit, got, want[0])
		}
		if got := interfaceOf(unit); got != want[1] {
			t.Errorf("interfaceOf(%s) = %s, want %s", unit, got, want[1])
		}
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	for name, want := range map[string]error{
		"org.freedesktop.DBus.Error.AccessDenied":                     fs.ErrPermission,
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": fs.ErrPermission,
		"org.freedesktop.systemd1.NoSuchUnit":                         fs.ErrNotExist,
	} {
		err := explain(dbus.Error{Name: name, Body: []any{"x"}})
		if !errors.Is(err, want) || want == fs.ErrPermission && !strings.Contains(err.Error(), "permission denied (systemd changes units for root only; run weir as root)") {
			t.Errorf("explain(%s) = %v, want %v", name, err, want)
		}
	}
	other := dbus.Error{Name: "org.freedesktop.DBus.Error.Timeout"}
	if err := explain(other); errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("explain(%v) = %v", other, err)
	}
}
