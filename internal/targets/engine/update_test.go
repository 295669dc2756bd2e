package engine

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

func TestWhichEnginesTakeUpdates(t *testing.T) {
	for api, want := range map[string]bool{"1.55": true, "1.100": true, "2.0": true, "1.54": false, "1.9": false, "": false, "x": false, "1.": false} {
		if got := docker.updates(api); got != want {
			t.Errorf("%q: %t", api, got)
		}
	}
	if podman(0, "").updates("1.55") {
		t.Error("Podman does")
	}
}

// An update has the whole of each list that changes, and what it was before.
func TestUpdateOf(t *testing.T) {
	a, b := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	wbps := func(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }
	kept := []targets.Recorded{
		{Path: "/dev/disk/by-id/a", Device: a, Limit: wbps(5).With(limit.RIOPS, limit.PerSecond(7))},
		{Path: "/dev/gone", Err: errors.New("gone"), Limit: wbps(6)},
	}
	const gone = `{"Path":"/dev/gone","Rate":6}`
	for _, c := range []struct {
		name          string
		changes       []targets.Recorded
		after, before string
	}{
		{"the same", []targets.Recorded{{Path: "/dev/sda", Device: a, Limit: wbps(5)}}, "", ""},
		{"another", []targets.Recorded{{Path: "/dev/sda", Device: a, Limit: wbps(1)}},
			`{"BlkioDeviceWriteBps":[{"Path":"/dev/disk/by-id/a","Rate":1},` + gone + `]}`, `{"BlkioDeviceWriteBps":[{"Path":"/dev/disk/by-id/a","Rate":5},` + gone + `]}`},
		{"a new one", []targets.Recorded{{Path: "/dev/sdb", Device: b, Limit: limit.Limit{RBPS: limit.PerSecond(3)}}},
			`{"BlkioDeviceReadBps":[{"Path":"/dev/sdb","Rate":3}]}`, `{"BlkioDeviceReadBps":[]}`},
		{"lifted", []targets.Recorded{{Path: "/dev/sda", Device: a, Limit: limit.Limit{RIOPS: limit.Unlimited}}, {Path: "/dev/sdb", Device: b, Limit: limit.None}},
			`{"BlkioDeviceReadIOps":[]}`, `{"BlkioDeviceReadIOps":[{"Path":"/dev/disk/by-id/a","Rate":7}]}`},
		{"by its path", []targets.Recorded{{Path: "/dev/gone", Limit: limit.None}},
			`{"BlkioDeviceWriteBps":[{"Path":"/dev/disk/by-id/a","Rate":5}]}`, `{"BlkioDeviceWriteBps":[{"Path":"/dev/disk/by-id/a","Rate":5},` + gone + `]}`},
	} {
		u, err := UpdateOf("docker:"+id, &targets.Record{Limits: kept}, c.changes)
		if err != nil {
			t.Fatal(err)
		}
		if c.after == "" {
			if u != nil {
				t.Errorf("%s: %s", c.name, u.After)
			}
			continue
		}
		if u == nil || string(u.After) != c.after || string(u.Before) != c.before || u.Kind != "docker" || u.Path != "/v1.55/containers/"+id+"/update" {
			t.Errorf("%s: %+v", c.name, u)
		}
	}
}

func TestUpdate(t *testing.T) {
	got := ""
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") + " " + string(body)
		if string(body) == "no" {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"message":"it broke"}`)
		}
	})
	k := Kind{Maker: docker, Host: "unix://" + e.socket}
	if err := k.Update(t.Context(), "/v1.55/containers/x/update", []byte(`{}`)); err != nil || got != "POST /v1.55/containers/x/update application/json {}" {
		t.Errorf("%q, %v", got, err)
	}
	if err := k.Update(t.Context(), "/x", []byte("no")); err == nil || err.Error() != "change the limits that Docker keeps: 500: it broke" {
		t.Errorf("%v", err)
	}
}
