package nri

import (
	"testing"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// A live knows the limits of a pod's volumes.
type live struct{ volumes []annotations.On }

func (live) Of(string, string) (map[string]string, string, bool) { return nil, "", false }

func (live) Read(string) (of, volumes bool) { return true, true }

func (l live) Volumes(of, namespace string) []annotations.On {
	if of != uid || namespace != "prod" {
		return nil
	}
	return l.volumes
}

// The limits that CSI drivers keep with a pod's volumes are in force before its program starts. One that
// cannot be set keeps no pod from starting, whatever the pod asks for itself.
func TestVolumes(t *testing.T) {
	lab.Unit(t)
	bytes := func(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }
	for name, c := range map[string]struct {
		volumes     []annotations.On
		annotations map[string]string
		want        string
		failed      bool
	}{
		"a volume":                          {[]annotations.On{{Volume: "pvc-1", Limit: bytes(7e6)}}, nil, "254:16 wbps=7000000", false},
		"annotations lower it":              {[]annotations.On{{Volume: "pvc-1", Limit: bytes(7e6)}}, map[string]string{"weir.io/write": "2M"}, "254:0 wbps=2000000 254:16 wbps=2000000", false},
		"annotations do not raise it":       {[]annotations.On{{Volume: "pvc-1", Limit: bytes(7e6)}}, map[string]string{"weir.io/on.pvc-1": "write=9M"}, "254:16 wbps=7000000", false},
		"a volume that nobody has":          {[]annotations.On{{Volume: "pvc-2", Limit: bytes(7e6)}}, nil, "", false},
		"another that is called so":         {[]annotations.On{{Volume: "memory", Limit: bytes(7e6)}}, nil, "", false},
		"a volume in memory":                {[]annotations.On{{Volume: "pvc-memory", Limit: bytes(7e6)}}, nil, "", true},
		"a volume in memory, and own words": {[]annotations.On{{Volume: "pvc-memory", Limit: bytes(7e6)}}, map[string]string{"weir.io/write": "2M"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "v2", plain1+"/ID", noPlan)
			w.plugin.options.Live = live{c.volumes}
			w.serve(t)
			if err := w.begin(t, w.pod(c.annotations), container("web", webID, plain1+"/ID")); err != nil {
				t.Fatal(err)
			}
			if got := w.limits(t, plain1); sorted(got) != sorted(c.want) {
				t.Errorf("the pod has %q, want %q", got, c.want)
			}
			if s := w.plugin.Status(); (s.Failed == 1) != c.failed || s.Late+s.Refused != 0 || (s.Limited > 0) != (c.want != "") {
				t.Errorf("%+v", s)
			}
		})
	}
}
