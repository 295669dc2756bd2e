// Package browser drives Debian's headless Chromium for tests: it opens pages, evaluates
// expressions in them, presses keys and takes screenshots. It speaks Chromium's DevTools protocol
// over a pair of pipes (--remote-debugging-pipe: JSON messages with a zero byte behind each).
package browser

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// most is far longer than a browser takes for anything here, also on a busy machine.
const most = time.Minute

// Required is a variable of the environment that has tests with a browser run. Without it they are skipped: a browser
// is a hundred megabytes to install.
const Required = "WEIR_BROWSER"

// names are what Debian calls it: the smaller one first.
func names() []string { return []string{"chromium-headless-shell", "chromium"} }

// A Page is a tab of a browser.
type Page struct {
	t       testing.TB
	session string
	in      *os.File

	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	loaded  chan struct{}
	wrong   []string
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// message is what comes from the browser: an answer, or an event.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	answer
}

// Open starts a browser with one empty page, until the end of the test. The test is skipped unless
// browsers are Required.
func Open(t testing.TB) *Page {
	t.Helper()
	if os.Getenv(Required) == "" {
		t.Skip("a test with a browser, which make page installs and runs")
	}
	program := ""
	for _, name := range names() {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		t.Fatal("there is no browser: apt-get install chromium-headless-shell")
	}
	ours, theirs := pipes(t)
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb", "--lang=en-US",
		"--user-data-dir="+t.TempDir(), "--remote-debugging-pipe")
	cmd.ExtraFiles = theirs[:]                         // descriptors 3 and 4
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // it has processes of its own, which end with it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	closed(t, theirs[:]...)
	p := &Page{t: t, in: ours[1], waiting: map[int]chan answer{}, loaded: make(chan struct{}, 64)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.read(ours[0])
	}()
	t.Cleanup(func() {
		if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
			t.Errorf("end the browser: %v", err)
		}
		_ = cmd.Wait() // it was killed
		closed(t, ours[:]...)
		<-ended
	})
	p.attach()
	return p
}

// closed closes files.
func closed(t testing.TB, files ...*os.File) {
	t.Helper()
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// pipes are both directions: what we read and write, and what the browser reads and writes.
func pipes(t testing.TB) (ours, theirs [2]*os.File) {
	t.Helper()
	var err, err2 error
	theirs[0], ours[1], err = os.Pipe()
	ours[0], theirs[1], err2 = os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func (p *Page) attach() {
	p.t.Helper()
	var target struct{ TargetID string }
	p.must("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	p.must("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.must(p.session, domain+".enable", nil, nil)
	}
}

// read takes messages until the browser ends.
func (p *Page) read(out *os.File) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			p.mu.Lock()
			for id, c := range p.waiting {
				close(c)
				delete(p.waiting, id)
			}
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		p.mu.Lock()
		if c := p.waiting[m.ID]; c != nil {
			c <- m.answer
			delete(p.waiting, m.ID)
		}
		p.note(m)
		p.mu.Unlock()
	}
}

// note keeps what went wrong in the page.
func (p *Page) note(m message) {
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown":
		p.wrong = append(p.wrong, "exception: "+string(m.Params))
	case "Runtime.consoleAPICalled", "Log.entryAdded":
		var e struct {
			Type  string
			Entry struct{ Level, Text, URL string }
		}
		if json.Unmarshal(m.Params, &e) == nil && (e.Type == "error" || e.Type == "warning" || e.Entry.Level == "error" || e.Entry.Level == "warning") {
			p.wrong = append(p.wrong, m.Method+": "+string(m.Params))
		}
	}
}

// ask sends a command and waits for its answer.
func (p *Page) ask(session, method string, params any) (json.RawMessage, error) {
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return nil, errors.New("the browser has ended")
	}
	p.next++
	id, c := p.next, make(chan answer, 1)
	p.waiting[id] = c
	p.mu.Unlock()
	m := map[string]any{"id": id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if session != "" {
		m["sessionId"] = session
	}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(text, 0)); err != nil {
		return nil, err
	}
	select {
	case a, is := <-c:
		if !is {
			return nil, errors.New("the browser has ended")
		}
		if a.Error != nil {
			return nil, errors.New(a.Error.Message)
		}
		return a.Result, nil
	case <-time.After(most):
		return nil, fmt.Errorf("no answer within %s", most)
	}
}

func (p *Page) must(session, method string, params, into any) {
	p.t.Helper()
	text, err := p.ask(session, method, params)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		p.t.Fatalf("browser: %s: %v", method, err)
	}
}

// Wrong returns what went wrong in pages since it was asked last: exceptions, and errors and warnings
// of the console, among them what the content security policy refused.
func (p *Page) Wrong() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.wrong
	p.wrong = nil
	return all
}

// Size sets the size of the window, in pixels, and whether it wants dark colours.
func (p *Page) Size(width, height int, dark bool) {
	p.t.Helper()
	p.must(p.session, "Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.must(p.session, "Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Script turns scripts of pages on or off.
func (p *Page) Script(on bool) {
	p.t.Helper()
	p.must(p.session, "Emulation.setScriptExecutionDisabled", map[string]any{"value": !on}, nil)
}

// Go opens an address, and waits until it is loaded.
func (p *Page) Go(url string) {
	p.t.Helper()
	for len(p.loaded) > 0 {
		<-p.loaded
	}
	var at struct{ ErrorText string }
	p.must(p.session, "Page.navigate", map[string]any{"url": url}, &at)
	if at.ErrorText != "" {
		p.t.Fatalf("browser: open %s: %s", url, at.ErrorText)
	}
	select {
	case <-p.loaded:
	case <-time.After(most):
		p.t.Fatalf("browser: %s is not loaded", url)
	}
}

// Eval evaluates an expression in the page, and decodes its value into a variable; nil: it is not
// looked at.
func (p *Page) Eval(expression string, into any) {
	p.t.Helper()
	var got struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.must(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	if e := got.ExceptionDetails; e != nil {
		p.t.Fatalf("browser: %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if into == nil {
		return
	}
	if len(got.Result.Value) == 0 {
		got.Result.Value = []byte("null")
	}
	if err := json.Unmarshal(got.Result.Value, into); err != nil {
		p.t.Fatalf("browser: %s is %s: %v", expression, got.Result.Value, err)
	}
}

// Await waits until an expression is true.
func (p *Page) Await(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		var is bool
		if p.Eval("Boolean("+expression+")", &is); is {
			return
		}
		if time.Now().After(deadline) {
			var text string
			p.Eval("document.body.innerText", &text)
			p.t.Fatalf("browser: never true: %s\n%s\n%v", expression, text, p.Wrong())
		}
	}
}

// Press presses a key, by the name that its event has ("j", "/", "Enter").
func (p *Page) Press(key string) {
	p.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	switch {
	case len(key) == 1:
		down["text"] = key
	case key == "Enter":
		down["text"], down["windowsVirtualKeyCode"] = "\r", 13
	case key == "Tab":
		down["windowsVirtualKeyCode"] = 9
	case key == "Escape":
		down["windowsVirtualKeyCode"] = 27
	}
	p.must(p.session, "Input.dispatchKeyEvent", down, nil)
	p.must(p.session, "Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Screenshot writes the whole page into a PNG file.
func (p *Page) Screenshot(file string) {
	p.t.Helper()
	var shot struct{ Data string }
	p.must(p.session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
