package kube

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/base/plain"
)

// what is a way in which the API server is told.
type what string

const (
	byAnnotation what = "weir.io/status"
	byEvent      what = "events"
)

// A news is what is told of a pod.
type news struct {
	uid, namespace, name string
	text                 string // for the annotation; empty: there is nothing to say any more
	reason               string // of the event; empty: there is none
	warns                bool
	by                   []what // the ways in which it is not told yet
}

// tell tells the API server what has changed, until the context ends.
func (c *Cluster) tell(ctx context.Context) {
	refused := refusals{}
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c.checkAgain()
		for _, n := range c.news(time.Now(), refused) {
			for _, w := range n.by {
				if refused.has(w, n.namespace, time.Now()) { // since a moment
					continue
				}
				err := map[what]func(context.Context, news) error{byAnnotation: c.annotate, byEvent: c.event}[w](ctx, n)
				refused.note(w, n.namespace, err, time.Now())
				gone := is(err, http.StatusNotFound, http.StatusConflict)
				if err == nil || gone {
					c.took(n, w)
				}
				if !gone && ctx.Err() == nil {
					c.say(string(w), "", err)
				}
			}
		}
	}
}

// took notes that the API server knows. What it has not taken is told again: otherwise a pod would go
// on saying "held" after it no longer is.
func (c *Cluster) took(n news, w what) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.pods[n.uid]; p != nil {
		p.told[w] = n.text
	}
}

// news are the pods whose state is another one than what was told in some way, a few at once: those
// that have waited longest. Until all pods were looked at, that nothing is known of one says nothing.
func (c *Cluster) news(now time.Time, refused refusals) (all []news) {
	if c.options.Looked != nil && !c.options.Looked() {
		return nil
	}
	states := map[string]agent.PodState{}
	for _, s := range c.options.Pods() {
		states[cmp.Or(s.UID, s.Name)] = s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, p := range c.pods {
		state, is := states[uid]
		if !is {
			state = states[p.namespace+"/"+p.name]
		}
		n := newsOf(state, p.wrong, c.wrongVolume(p))
		if n == nil || p.ends || now.Sub(p.when) < tellLeast {
			continue
		}
		for _, w := range []what{byAnnotation, byEvent} {
			if p.told[w] != n.text && !refused.has(w, p.namespace, now) {
				n.by = append(n.by, w)
			}
		}
		if len(n.by) == 0 {
			continue
		}
		n.uid, n.namespace, n.name = uid, p.namespace, p.name
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b news) int {
		return cmp.Or(c.pods[a.uid].when.Compare(c.pods[b.uid].when), strings.Compare(a.uid, b.uid))
	})
	all = all[:min(len(all), tellAtOnce)]
	for _, n := range all {
		c.pods[n.uid].when = now
	}
	return all
}

// newsOf says how a pod's limits are; nil: that is about to change.
func newsOf(s agent.PodState, wrong, wrongVolume error) *news {
	var n news
	switch {
	case wrong != nil:
		n = news{text: "wrong: " + wrong.Error() + "; the annotations from before count", reason: "AnnotationsWrong", warns: true}
	case wrongVolume != nil:
		n = news{text: "wrong: " + wrongVolume.Error() + "; what counted before stays in force", reason: "VolumeLimitsWrong", warns: true}
	case s.Name == "":
	case s.Settling:
		return nil
	case s.Finding != "":
		n = news{text: "not in force: " + s.Finding, reason: "LimitsNotInForce", warns: true}
	case s.NotHeld != "":
		n = news{text: "not held: " + s.NotHeld, reason: "LimitsNotHeld", warns: true}
	case s.Held:
		n = news{text: fmt.Sprintf("held (measured), plan %s", s.Plan), reason: "LimitsHeld"}
	default:
		n = news{text: fmt.Sprintf("in force, plan %s", s.Plan), reason: "LimitsInForce"}
	}
	n.text = plain.Brief(n.text)
	return &n
}

// annotate sets a pod's annotation. The right for it is to patch pods/status, which cannot change
// what a pod runs. The UID makes the API server refuse it for another pod of that name.
func (c *Cluster) annotate(ctx context.Context, n news) error {
	var value any // null removes it
	if n.text != "" {
		value = n.text
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/status", url.PathEscape(n.namespace), url.PathEscape(n.name))
	return c.client.send(ctx, http.MethodPatch, path, "application/merge-patch+json",
		map[string]any{"metadata": map[string]any{"uid": n.uid, "annotations": map[string]any{StatusAnnotation: value}}})
}

// event makes an event of a pod.
func (c *Cluster) event(ctx context.Context, n news) error {
	if n.reason == "" {
		return nil
	}
	kind, now := "Normal", time.Now().UTC().Format(time.RFC3339)
	if n.warns {
		kind = "Warning"
	}
	return c.client.send(ctx, http.MethodPost, fmt.Sprintf("/api/v1/namespaces/%s/events", url.PathEscape(n.namespace)), "application/json", map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": kind, "reason": n.reason, "message": "weir: " + n.text, "count": 1,
		"firstTimestamp": now, "lastTimestamp": now, "source": map[string]any{"component": "weird", "host": c.node},
		"metadata":       map[string]any{"generateName": n.name[:min(len(n.name), 200)] + ".", "namespace": n.namespace},
		"involvedObject": map[string]any{"apiVersion": "v1", "kind": "Pod", "namespace": n.namespace, "name": n.name, "uid": n.uid},
	})
}
