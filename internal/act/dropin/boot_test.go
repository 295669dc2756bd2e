package dropin

import (
	"strings"
	"testing"
)

func TestMountUnit(t *testing.T) {
	for dir, want := range map[string]string{ // as systemd-escape --path --suffix=mount has them
		"/srv/data":  "srv-data.mount",
		"/a-b/.c":    `a\x2db-.c.mount`,
		"/.hidden":   `\x2ehidden.mount`,
		"/mnt/x y%z": `mnt-x\x20y\x25z.mount`,
	} {
		if got := mountUnit(dir); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}

func TestRestoreText(t *testing.T) {
	text := RestoreText("/usr/local/my bin/weir")
	for _, want := range []string{"# Made by weir restore --at-boot.", "\nAfter=weir-volumes.service docker.service ", "\nExecStart=\"/usr/local/my bin/weir\" restore\n", "\nWantedBy=multi-user.target docker.service "} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestVolumesText(t *testing.T) {
	text := VolumesText("/usr/local/bin/weir", []string{"/mnt/disk2/data.img", "/srv/data"})
	for _, want := range []string{"mnt.mount", "mnt-disk2.mount", "srv-data.mount", "Before=docker.service", "\nExecStart=/usr/local/bin/weir volume up\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
