package full

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// emulatedDomain is a QEMU domain that libvirt manages, without the host's processor. Of the
// controllers that firmware can write to, AHCI's is the fastest.
const emulatedDomain = `<domain type="qemu">
	<name>weir-qemu</name>
	<memory unit="MiB">32</memory>
	<os><type arch="x86_64" machine="q35">hvm</type></os>
	<devices>
		<disk type="file" device="disk"><driver name="qemu" type="raw" cache="none"/><source file="%s"/><target dev="sda" bus="sata"/></disk>
		<controller type="usb" model="none"/>
		<memballoon model="none"/>
	</devices>
</domain>
`

// An emulated machine's image: firmware loads its first sector, whose program has firmware
// write to the rest of it, over and over.
const (
	sectorBytes  = 512
	imageSectors = 64 << 10
	firstWritten = 2048
	atOnce       = 127 // sectors; firmware need not take more (Enhanced Disk Drive Services, AH=43h)
	loadedAt     = 0x7c00
	packetAt     = 0x40 // in the sector: the disk address packet of that call
)

// bootSector is the program.
func bootSector() []byte {
	word := func(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }
	long := func(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	packet, lba := word(loadedAt+packetAt), word(loadedAt+packetAt+8)
	setUp := []byte{0x31, 0xc0, 0x8e, 0xd8, 0x8e, 0xd0, 0xbc, 0x00, 0x7c} // xor ax,ax; mov ds,ax; mov ss,ax; mov sp,7c00h
	loop := bytes.Join([][]byte{
		{0xbe}, packet, {0xb8, 0x00, 0x43, 0xb2, 0x80, 0xcd, 0x13}, // mov si,packet; mov ax,4300h; mov dl,80h; int 13h
		{0x66, 0x83, 0x06}, lba, {atOnce}, // add dword [lba],atOnce
		{0x66, 0x81, 0x3e}, lba, long(imageSectors - firstWritten), // cmp dword [lba],…
	}, nil)
	loop = append(loop, 0x72, byte(-len(loop)-2)) // jb loop
	loop = bytes.Join([][]byte{loop, {0x66, 0xc7, 0x06}, lba, long(firstWritten)}, nil)
	loop = append(loop, 0xeb, byte(-len(loop)-2)) // jmp loop
	sector := make([]byte, sectorBytes)
	copy(sector, setUp)
	copy(sector[len(setUp):], loop)
	copy(sector[packetAt:], bytes.Join([][]byte{{16, 0}, word(atOnce), word(0), word(0x1000), long(firstWritten), long(0)}, nil))
	copy(sector[sectorBytes-2:], []byte{0x55, 0xaa})
	return sector
}

// A limit on a libvirt domain holds what its guest writes, on the disks
// of its open images, and libvirt keeps it for the next start. Before 6.16 user-mode Linux
// traces each system call, and QEMU does not start in a minute.
func TestQEMU(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Libvirt, lab.Systemd, lab.FS("ext4"), lab.Command("qemu-system-x86_64"), lab.MinKernel(6, 16))
	disk := lab.Disk(t, lab.FS("ext4"))
	if err := os.Chmod(filepath.Dir(disk.Dir), 0o755); err != nil { // QEMU is another user's
		t.Fatal(err)
	}
	image := filepath.Join(disk.Dir, "image")
	if err := os.WriteFile(image, append(bootSector(), make([]byte, (imageSectors-1)*sectorBytes)...), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "sync", "-f", disk.Dir)
	startLibvirt(t)
	d := domain{uri: "qemu:///system", name: "weir-qemu", file: filepath.Join(t.TempDir(), "domain.xml")}
	if err := os.WriteFile(d.file, fmt.Appendf(nil, emulatedDomain, image), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile("/var/log/libvirt/qemu/weir-qemu.log"); err == nil && t.Failed() {
			t.Logf("the domain's log:\n%s", log)
		}
	})
	d.virsh(t, "define", d.file)
	t.Cleanup(func() { d.virsh(t, "undefine", d.name) })
	d.virsh(t, "start", d.name) // this takes 14 s
	t.Cleanup(func() { d.destroy(t) })
	_, said := mustWeir(t, "set", "vm:weir-qemu", "--write", "1MB/s")
	if want := disk.Node; !strings.Contains(said, want) {
		t.Errorf("without a place it said nothing of %s: %s", want, said)
	}
	mustWeir(t, "clear", "vm:weir-qemu", "--quiet")
	holds(t, e, disk, "vm:weir-qemu", d.limited(t, e), "libvirt does not know this limit")

	mustWeir(t, "set", "vm:weir-qemu", "--quiet", "--write", "5MB/s", "--persist")
	d.destroy(t)
	d.virsh(t, "start", d.name)
	if got := d.rules(t, e, disk); len(got) != 1 || got[0] != ruleOf(e, 5e6) {
		t.Errorf("after a start the rules are %q", got)
	}
	if would, _ := mustWeir(t, "clear", "vm:weir-qemu", "--dry-run"); !strings.Contains(would, "run virsh --quiet --connect qemu:///system blkiotune --config --domain=weir-qemu --device-write-bytes-sec="+disk.Node+",0") {
		t.Errorf("a dry run of clear has:\n%s", would)
	}
	mustWeir(t, "clear", "vm:weir-qemu")
	if got := d.virsh(t, "blkiotune", "--config", d.name); strings.Contains(got, disk.Node) {
		t.Errorf("after clear libvirt keeps %s", got)
	}
	if got := d.rules(t, e, disk); len(got) != 0 {
		t.Errorf("after clear the rules are %q", got)
	}
}
