package web

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/api/apitest"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab/browser"
)

// shots is where screenshots go, from here.
const shots = "../../../out/page"

// TestScreens looks at the page in a browser: nothing is wrong in its console, nothing is cut at any
// width, and the keys do what the page says. It takes screenshots for people to look at.
func TestScreens(t *testing.T) {
	b := browser.Open(t)
	if err := os.MkdirAll(shots, 0o755); err != nil {
		t.Fatal(err)
	}
	p := aPage(t, Options{History: record(t, time.Hour), Tracer: &stillTracer{sees: apitest.Trace()}, Source: &source{make: func(int) *watch.Snapshot {
		s := aHost(time.Now())
		s.Groups[0].Path, s.Groups[0].Target = "/batch", "cgroup:/batch" // which the machine of the tests has
		return s
	}}})
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(p.Close) // streams end first
	web := "/group?cgroup=" + "%2Fsystem.slice%2Fdocker-0123456789ab.scope"
	for _, c := range []struct {
		name, path    string
		width, height int
		dark          bool
	}{
		{"list-light", "/", 1280, 800, false},
		{"list-dark", "/", 1280, 800, true},
		{"list-phone", "/", 360, 740, false},
		{"list-narrow", "/", 1020, 900, false},
		{"list-tablet", "/", 768, 900, false},
		{"group-light", web, 1280, 900, false},
		{"group-dark", web, 1280, 900, true},
		{"group-why", "/group?cgroup=/batch&why=1", 1280, 900, false},
		{"group-phone", web, 360, 740, true},
		{"group-paced", "/group?cgroup=%2Fmachine.slice%2Fmachine-qemu-1-db.scope", 1280, 900, false},
		{"trace-light", web + "&trace", 1280, 900, false},
		{"trace-phone", web + "&trace", 360, 740, true},
		{"past", "/?at=20m", 1280, 800, false},
		{"refusal", "/nothing", 1280, 500, false},
	} {
		b.Size(c.width, c.height, c.dark)
		path, traces := strings.CutSuffix(c.path, "&trace")
		b.Go(server.URL + path)
		switch path {
		case "/":
			b.Await(`document.getElementById("state").textContent === "live" && document.querySelectorAll("#rows tr").length === 7`)
		case web:
			b.Await(`document.getElementById("state").textContent === "live" && document.querySelectorAll("#charts canvas").length >= 3`)
		}
		if traces {
			b.Eval(`document.querySelector("#trace a.button").click()`, nil)
			b.Await(`document.querySelectorAll("#trace .shares tr").length > 5 && document.activeElement.closest("#trace") && !document.querySelector("#trace[aria-busy]")`)
		}
		var over int
		if b.Eval(`document.documentElement.scrollWidth`, &over); over > c.width {
			t.Errorf("%s: the page is %d pixels wide, and the window %d", c.name, over, c.width)
		}
		// Nothing is cut in tables either. (That of the past may be scrolled.)
		var cut []string
		if b.Eval(`[...document.querySelectorAll(".scroll:not([tabindex])")].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.textContent.slice(0, 80))`, &cut); len(cut) > 0 {
			t.Errorf("%s: a table is wider than the window: %q", c.name, cut)
		}
		seesControls(t, b, c.name)
		b.Screenshot(filepath.Join(shots, c.name+".png"))
		if wrong := b.Wrong(); len(wrong) > 0 && c.name != "refusal" {
			t.Errorf("%s: %q", c.name, wrong)
		}
	}
}

// seesControls checks that at any width what the list can be sorted by is to be seen, that what is live can be
// paused, and that a long reason for trouble fits.
func seesControls(t *testing.T, b *browser.Page, name string) {
	t.Helper()
	const seen = `const seen = (e) => e && e.getClientRects().length > 0;`
	var missing []string
	b.Eval(`(() => { `+seen+`
		return [...document.querySelectorAll("#groups thead th[data-sort]")].filter((h) => seen(h) && ![...document.querySelectorAll("#rows td, #rows th")].some((d) => d.classList.contains(h.dataset.sort) && seen(d))).map((h) => h.textContent);
	})()`, &missing)
	if len(missing) > 0 {
		t.Errorf("%s: the list can be sorted by %q, which it does not show", name, missing)
	}
	var pause bool
	if b.Eval(`(() => { `+seen+` return !document.body.dataset.live || seen(document.getElementById("pause")); })()`, &pause); !pause {
		t.Errorf("%s: nothing pauses the page", name)
	}
	var over int
	b.Eval(`(() => {
		const state = document.getElementById("state");
		if (!state) return 0;
		const was = state.textContent, status = document.getElementById("status"), kind = status.className;
		status.className = "status lost";
		state.textContent = "read /sys/fs/cgroup/system.slice/a-service-with-a-long-name.service/io.stat: input/output error, since";
		const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
		state.textContent = was;
		status.className = kind;
		return over;
	})()`, &over)
	if over > 0 {
		t.Errorf("%s: with a reason for trouble the page is %d pixels wider than the window", name, over)
	}
}
