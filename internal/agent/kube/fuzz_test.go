package kube

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/weir-io/weir/internal/agent"
)

// FuzzTake: any line of a watch is taken or refused in one line, and what is kept is bounded.
func FuzzTake(f *testing.F) {
	f.Add([]byte(eventOf("ADDED", objectOf("n", "p", "u", "1", writes("1Mi")))))
	f.Add([]byte(eventOf("ERROR", `{"code":410,"status":"Failure","metadata":{}}`)))
	f.Add([]byte(eventOf("ADDED", `{"metadata":{"name":"v","uid":"u","resourceVersion":"1"},"driverName":"rbd.csi.ceph.com","parameters":{"maxReadIops":"x\u001b"},`+
		`"spec":{"volumes":[{"name":"d","persistentVolumeClaim":{"claimName":"d"}}],"volumeName":"v","csi":{"driver":"rbd.csi.ceph.com"},"volumeAttributesClassName":"v"}}`)))
	f.Add([]byte(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"weir.io/x\u001b":"\u0000"}}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		c := New(nil, "n", true, agent.ClusterOptions{Changed: func(string, string) {}, Pods: func() []agent.PodState { return nil }})
		c.claims.start = func(*follower) func() { return func() {} }
		one := &follower{path: pods, set: func(o object) {
			c.setPod(o) // whatever it is
			c.setClass(o)
			for _, p := range c.pods {
				for _, claim := range p.claims {
					c.setClaim(p.namespace, claim.name, o)
				}
			}
			c.setVolume(o)
			for name := range c.claims.volumes {
				c.attach(name, o)
			}
			c.keepClasses(func(string) bool { return true })
		}, gone: c.endPod, version: "1"}
		if err := one.take(line); err != nil && strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("%q", err)
		}
		for _, p := range c.pods {
			for name := range p.raw {
				if !strings.HasPrefix(name, "weir.io/") {
					t.Errorf("%q", name)
				}
			}
		}
		if len(c.Volumes("u", "")) > 1 {
			t.Errorf("%v", c.Volumes("u", ""))
		}
		for _, n := range c.news(time.Now(), refusals{}) {
			if len(n.text) > 5000 || strings.ContainsFunc(n.text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Errorf("%q", n.text)
			}
		}
	})
}
