package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/browser"
)

// The page's URL is one that a browser can open.
func TestPageURL(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for want, at := range map[string]*net.TCPAddr{
		"http://127.0.0.1:9847/":    {IP: net.IPv4(127, 0, 0, 1), Port: 9847},
		"http://[::1]:9847/":        {IP: net.IPv6loopback, Port: 9847},
		"http://" + name + ":9847/": {IP: net.IPv6unspecified, Port: 9847},
		"http://" + name + ":9848/": {IP: net.IPv4zero, Port: 9848},
	} {
		if got := pageURL("http", at); got != want {
			t.Errorf("%v: %s, want %s", at, got, want)
		}
	}
	if got, want := pageURL("https", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}), "https://10.0.0.1:1/"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// startWeird starts this program as weird with the page, and returns its address. end ends it.
func startWeird(t *testing.T, args ...string) (address string, end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: append([]string{"weird", "metrics", "--page"}, args...), Env: os.Environ()}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("weird: %v", err)
		}
	}
	t.Cleanup(end)
	lines := bufio.NewReader(said)
	for address == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("weird says %q: %v", line, err)
		}
		if m := regexp.MustCompile(`showing the page at http://(\S+)/`).FindStringSubmatch(line); m != nil {
			address = m[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }() // until it ends
	return address, end
}

// A counter is a group's io.stat that a test moves as the kernel would. Its text keeps its length, so
// that no reader sees a part.
type counter struct {
	file  *os.File
	total uint64
	stop  chan struct{}
	done  chan struct{}
}

const counterStart, counterRate = 40_000_000, 4_000_000 // bytes, and bytes a second

func newCounter(t *testing.T, path string) *counter {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{file: f, stop: make(chan struct{}), done: make(chan struct{})}
	c.write(counterStart)
	began := time.Now()
	go func() {
		defer close(c.done)
		for {
			select {
			case <-c.stop:
				return
			case <-time.After(5 * time.Millisecond):
				c.write(counterStart + uint64(time.Since(began).Seconds()*counterRate))
			}
		}
	}()
	t.Cleanup(func() { c.hold(); f.Close() })
	return c
}

func (c *counter) write(total uint64) {
	c.total = total
	_, _ = fmt.Fprintf(io.NewOffsetWriter(c.file, 0), "254:0 rbytes=1000000 wbytes=%012d rios=10 wios=40 dbytes=0 dios=0\n", total)
}

// hold has the counter stand still.
func (c *counter) hold() {
	select {
	case <-c.stop:
	default:
		close(c.stop)
	}
	<-c.done
}

// TestPageInABrowser has Chromium show the page of a weird that reads a machine whose counters move:
// the figures are those of the files, the page survives weird's restart, the keys work, without a
// script there is a table, and nothing is wrong in the console.
func TestPageInABrowser(t *testing.T) {
	lab.Unit(t)
	b := browser.Open(t)
	dir := t.TempDir()
	if err := hosttest.Make(dir, "v2"); err != nil {
		t.Fatal(err)
	}
	c := newCounter(t, filepath.Join(dir, "sys/fs/cgroup/batch/io.stat"))
	flags := []string{"--root", dir, "--history", t.TempDir(), "--listen"}
	address, end := startWeird(t, append(flags, "127.0.0.1:0")...)
	home := "http://" + address + "/"
	b.Size(1280, 800, false)
	b.Go(home)
	row := `[...document.querySelectorAll("#rows tr")].find((r) => r.textContent.includes("cgroup:/batch"))`
	cell := func(name string) string { return row + `?.querySelector('[data-f=` + name + `]').textContent` }
	near := fmt.Sprintf(`/^(3\.[89]\d|4\.[01]\d) MB$/.test(%s)`, cell("write"))
	b.Await(near)
	var rate, percent string
	b.Eval(cell("write"), &rate)
	b.Eval(cell("percent"), &percent)
	t.Logf("the counter moves by 4 MB/s; the page shows %s, %s of the limit of 10 MB/s", rate, percent)
	if !regexp.MustCompile(`^(3[89]|4[01]) %$`).MatchString(percent) {
		t.Errorf("%s of the limit", percent)
	}
	if wrong := b.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}

	// weird goes away and comes back at the same address.
	end()
	b.Await(`document.getElementById("status").classList.contains("lost")`)
	startWeird(t, append(flags, address)...)
	b.Await(`document.getElementById("status").classList.contains("live")`)
	b.Await(near)
	b.Wrong() // that nobody answered in between is there

	// The keys, and the group's page.
	b.Press("/")
	b.Await(`document.activeElement.id === "filter"`)
	b.Press("z")
	b.Await(`!document.getElementById("empty").hidden && document.getElementById("count").textContent === "0 groups"`)
	b.Eval(`document.getElementById("filter").value = "bat"; document.getElementById("filter").dispatchEvent(new Event("input"))`, nil)
	b.Press("Escape")
	b.Await(`location.search === "?filter=bat" && document.getElementById("count").textContent === "2 groups"`)
	b.Press("j")
	b.Await(`document.activeElement.textContent === "cgroup:/batch"`)
	b.Press("Enter")
	b.Await(`location.pathname === "/group" && document.getElementById("state")?.textContent === "live" && document.querySelectorAll("#charts canvas").length > 0`)
	c.hold()
	total := limit.FormatMeasured(float64(c.total))
	b.Await(fmt.Sprintf(`document.querySelector('[data-c="0.wbps.total"]').textContent === %q && document.querySelector('[data-c="0.wbps.now"]').textContent === "0 B/s"`, total))
	b.Eval(`document.getElementById("ask").click()`, nil)
	b.Await(`document.querySelectorAll("#why .finding").length > 0`)
	if wrong := b.Wrong(); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}

	// Without a script.
	b.Script(false)
	b.Go("http://" + address + "/group?" + url.Values{"cgroup": {"/batch"}}.Encode())
	var text string
	b.Eval(`document.body.innerText`, &text)
	for _, want := range []string{"cgroup:/batch", total, "10 MB/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("without a script %q is not in\n%s", want, text)
		}
	}
}
