package volumeqos

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

const (
	ceph    = "rook-ceph.rbd.csi.ceph.com"
	openebs = "local.csi.openebs.io"
	linstor = "linstor.csi.linbit.com"
)

type texts = map[string]string

func TestParse(t *testing.T) {
	n := limit.PerSecond
	for _, c := range []struct {
		driver string
		all    texts
		want   limit.Limit
		says   string
	}{
		{ceph, texts{"maxReadIops": "1000", "maxWriteIops": "2000", "maxReadBps": "104857600", "maxWriteBps": "209715200"},
			limit.Limit{RBPS: n(100 << 20), WBPS: n(200 << 20), RIOPS: n(1000), WIOPS: n(2000)}, ""},
		{"rbd.csi.ceph.com", texts{"maxReadIops": "7", "maxWriteIops": ""}, limit.Limit{RIOPS: n(7)}, ""},
		{openebs, texts{"qosIopsLimit": "50000", "qosBandwithPerSec": "5000000"}, limit.Limit{RBPS: n(5e6), WBPS: n(5e6), RIOPS: n(50000), WIOPS: n(50000)}, ""},
		{openebs, texts{"qosIopsReadLimit": "100", "qosIopsWriteLimit": "200", "qosBandwithReadPerSec": "7000Mi", "qosBandwithWritePerSec": "8000Mi"},
			limit.Limit{RBPS: n(7000 << 20), WBPS: n(8000 << 20), RIOPS: n(100), WIOPS: n(200)}, ""},
		{openebs, texts{"qosIopsLimit": "100", "qosIopsReadLimit": "max", "qosIopsWriteLimit": "50"}, limit.Limit{RIOPS: n(100), WIOPS: n(50)}, ""},
		{linstor, texts{"qos.linbit.com/device": "/dev/drbd1000", "qos.linbit.com/rbps": "40Mi", "qos.linbit.com/wbps": "20Mi", "qos.linbit.com/riops": "4000", "qos.linbit.com/wiops": "2k"},
			limit.Limit{RBPS: n(40 << 20), WBPS: n(20 << 20), RIOPS: n(4000), WIOPS: n(2000)}, ""},
		{linstor, texts{"qos.linbit.com/device": "/dev/drbd1000", "qos.linbit.com/rbps": "0", "qos.linbit.com/wbps": "5"}, limit.Limit{WBPS: n(5)}, ""},
		{linstor, texts{"qos.linbit.com/rbps": "40Mi"}, limit.Limit{}, ""}, // without a device nri-volume-qos ignores it too
		{ceph, texts{"clusterID": "x", "pool": "y", "maxreadiops": "1"}, limit.Limit{}, ""},
		{ceph, nil, limit.Limit{}, ""},
		// Another driver's words, and those of drivers that have none.
		{ceph, texts{"qosIopsLimit": "1", "qos.linbit.com/device": "/dev/x", "qos.linbit.com/rbps": "1"}, limit.Limit{}, ""},
		{openebs, texts{"maxReadIops": "1"}, limit.Limit{}, ""},
		{"cephfs.csi.ceph.com", texts{"maxReadIops": "1"}, limit.Limit{}, ""},
		{"evilrbd.csi.ceph.com", texts{"maxReadIops": "x"}, limit.Limit{}, ""},
		{"", texts{"maxReadIops": "1"}, limit.Limit{}, ""},

		{ceph, texts{"maxReadIops": "-1", "maxReadBps": "5"}, limit.Limit{}, "maxReadIops: -1 is negative"},
		{ceph, texts{"maxReadIops": "max"}, limit.Limit{}, "maxReadIops: max is no"},
		{openebs, texts{"qosIopsLimit": "0"}, limit.Limit{}, "qosIopsLimit: 0 is less than 1 per second"},
		{ceph, texts{"maxWriteBps": "10MB/s"}, limit.Limit{}, "maxWriteBps: 10MB/s is no Kubernetes quantity"},
		{ceph, texts{"maxWriteBps": "\x1b[2J"}, limit.Limit{}, `maxWriteBps: "\x1b[2J" is no`},
		{ceph, texts{"maxReadIops": "4294967296"}, limit.Limit{}, "maxReadIops: "},
	} {
		l, err := Parse(c.driver, c.all)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says) || fault.ClassOf(err) != fault.WrongUse) || l != c.want {
			t.Errorf("%s %q: %+v, %v", c.driver, c.all, l, err)
		}
	}
}

// Of several places the lower value counts, whichever comes first, and one wrong value takes all back.
func TestPlaces(t *testing.T) {
	a, b := texts{"maxReadIops": "5", "maxWriteIops": "9"}, texts{"maxReadIops": "7", "maxWriteIops": "3", "maxReadBps": "1k"}
	want := limit.Limit{RIOPS: limit.PerSecond(5), WIOPS: limit.PerSecond(3), RBPS: limit.PerSecond(1000)}
	for _, places := range [][]texts{{a, b}, {b, a}, {a, nil, b}} {
		if l, err := Parse(ceph, places...); l != want || err != nil {
			t.Errorf("%v: %v, %v", places, l, err)
		}
	}
	if l, err := Parse(ceph, a, texts{"maxReadBps": "x"}); !l.IsZero() || err == nil {
		t.Errorf("%v, %v", l, err)
	}
}

func TestOwn(t *testing.T) {
	all := texts{"maxReadIops": strings.Repeat("1", 1000), "pool": "x", "qosIopsLimit": "1"}
	if its := Own(ceph, all); len(its) != 1 || len(its["maxReadIops"]) != valueMost {
		t.Errorf("%v", its)
	}
	if its := Own(linstor, texts{"qos.linbit.com/device": "d", "x": ""}); len(its) != 1 {
		t.Errorf("%v", its)
	}
	if its := Own("x", all); len(its) != 0 {
		t.Errorf("%v", its)
	}
	if !Knows(ceph) || InAttachment(ceph) || !InAttachment(linstor) || Knows("x") || InAttachment("x") {
		t.Error("the drivers are others")
	}
}
