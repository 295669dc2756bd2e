package systemd_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// An argument of the command never becomes a line of its scope's unit, neither at the start
// nor when systemd reads its units again.
func TestNoArgumentBecomesASetting(t *testing.T) {
	lab.Need(t, lab.Systemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	long := make([]string, 15)
	for i := range long {
		long[i] = strings.Repeat("A", 100_000)
	}
	for name, args := range map[string][]string{
		"lines":     {"x\nOnSuccess=weir-evil.service\nTasksMax=1\nSuccessAction=none\n"},
		"backslash": {`ends in \`},
		"not-utf8":  {"\xff\xfe", "\x1b[2J"},
		"long":      long,
	} {
		t.Run(name, func(t *testing.T) {
			const script = `systemctl daemon-reload; systemctl show -p OnSuccess,SuccessAction,TasksMax,LoadState,Description "$0"; cat "/run/systemd/transient/$0"`
			unit := "weir-argument-" + name + ".scope"
			cmd := exec.Command("weir", append([]string{"run", "--quiet", "--name", "argument-" + name, "--write", "9MB/s", "--on", disk.Node, "--", "sh", "-c", script, unit}, args...)...)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			shown := "\n" + string(out)
			if !strings.Contains(shown, "\nLoadState=loaded\n") || strings.Contains(shown, "\nOnSuccess=weir-evil") || strings.Contains(shown, "\nTasksMax=1\n") {
				t.Errorf("systemd has\n%s", shown)
			}
			for line := range strings.Lines(string(out)) {
				if rest, is := strings.CutPrefix(line, "Description="); is && (len(rest) > 220 || !strings.HasPrefix(strings.Trim(rest, `"`), "weir run sh -c")) {
					t.Errorf("the description is %q", rest)
				}
			}
		})
	}
}
