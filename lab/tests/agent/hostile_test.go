package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/weir-io/weir/lab"
)

// A container's name, labels and id are text of others. However they are spelled, all other
// containers get and keep their limits, and nothing of theirs reaches a terminal or a path.
func TestAgentAndHostileContainers(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, on(disk, map[string]string{"small": smallPlan}, "assign: [{docker: '*', plan: small}]\nallow-labels: [small]\n"))
	web := g.start("web", nil)
	w.start()
	escape := "\x1b[2J\x1b]0;pwned\a"
	hostile := []*container{
		g.start("../x", nil),
		g.start("../../../../etc/passwd", map[string]string{"weir.plan": "../../x"}),
		g.start(escape, map[string]string{"weir.plan": escape}),
		g.start("a\nb", map[string]string{"weir.plan": "small\n", strings.Repeat("k", 1<<20): escape}),
		g.start("huge", map[string]string{"l": strings.Repeat("x", 10<<20)}),
		g.start(strings.Repeat("n", 1<<20), nil),
	}
	// They are limited by their ids, as every container is.
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, append(hostile, web)...)
	again := g.start("web-2", nil)
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, again)
	g.overwrite(web, disk, 9_000_000)
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, web)

	out, err := exec.Command("weird", "status", "--socket", w.socket).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for what, text := range map[string]string{"weird status": string(out), "the log": w.said()} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
			t.Errorf("%s has control characters: %q", what, text)
		}
	}
	for _, path := range []string{"/var/lib/weir/x.json", "/var/lib/x", "/run/x"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("there is %s", path)
		}
	}
	for _, c := range hostile {
		g.end(c)
	}
	if c := w.status().Counts; c.Failures != 0 {
		t.Errorf("%+v\n%s", c, w.lately())
	}
}

// silentClients are more than weird takes at once.
const silentClients = 70

// Nobody but root can ask weird, and nobody can change anything by asking. Clients that say
// nothing, or too much, keep nobody else from an answer.
func TestAgentsSocket(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.OnceV1)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	w.socket = filepath.Join("/run/weir", fmt.Sprintf("test-%d.sock", os.Getpid()))
	c := g.start("web-0", nil)
	w.start()
	ask := func(user uint32, method string) (string, error) {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"=dial "+w.socket+" "+method)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := ask(0, "GET"); err != nil || !strings.Contains(out, " 200 ") || !strings.Contains(out, "docker:web-0") {
		t.Errorf("root: %v: %s", err, out)
	}
	if out, err := ask(4000, "GET"); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("another user: %v: %s", err, out)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH"} {
		if out, err := ask(0, method); err != nil || !strings.Contains(out, " 405 ") {
			t.Errorf("%s: %v: %s", method, err, out)
		}
	}
	if out, err := ask(0, strings.Repeat("X", 100<<10)); !strings.Contains(out, " 431 ") {
		t.Errorf("a large request: %v: %.200s", err, out)
	}
	// More silent ones than weird takes at once; it drops them after a while.
	for range silentClients {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVariable+"=silent "+w.socket)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = in.Close()
			_ = cmd.Wait()
		}()
	}
	began := time.Now()
	lab.Await(t, patience, "an answer beside silent clients", func() bool {
		out, err := ask(0, "GET")
		return err == nil && strings.Contains(out, " 200 ")
	})
	t.Logf("answered %v after %d clients that say nothing", time.Since(began), silentClients)
	g.overwrite(c, disk, 9_000_000)
	g.awaitRules(lab.Patience(t, driftMost), disk, smallRate, c)
}
