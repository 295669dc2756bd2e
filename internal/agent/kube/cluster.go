package kube

import (
	"context"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/plain"
)

// A Cluster is what is known of the pods of one node, and of namespaces.
type Cluster struct {
	client   *Client
	node     string
	volumes  bool // the limits that CSI drivers keep with volumes count
	options  agent.ClusterOptions
	patience time.Duration // watchTime
	every    time.Duration // tellEvery

	mu     sync.Mutex
	pods   map[string]*known // by UID
	ended  map[string]uint64 // UIDs of the last pods that were known and are not there any more, with the number of each end
	ends   uint64            // of pods that were known
	number uint64            // of pods that were ever known
	spaces map[string]space  // that name a plan, by UID
	// All of them were read once.
	podsListed, spacesListed bool
	claims                   claims
	told                     map[string]string          // what was logged last of each path
	failed                   map[string]map[string]bool // which followers of a path are in trouble
}

// A known pod.
type known struct {
	namespace, name string
	claims          []claimed         // its PersistentVolumeClaims
	more            bool              // it has claims whose names are not kept: they are noted when the pod changes
	number          uint64            // of the pod, in the order in which they became known
	raw             map[string]string // its annotations, as they are
	good            map[string]string // those that count: the last ones that are right. nil: none were
	wrong           error             // why the present ones do not count; nil: they do
	ends            bool              // it was asked to go: what becomes of its limits is no news

	told map[what]string // what the API server has taken last; before that, what weird before this one has told it
	when time.Time       // when it was told last, or that was tried
}

type space struct{ name, plan string }

// New makes a Cluster for the pods of a node. With volumes it follows the pods' persistent volumes too, for
// the limits that CSI drivers keep with them. It does nothing before Run.
func New(c *Client, node string, volumes bool, o agent.ClusterOptions) *Cluster {
	return &Cluster{client: c, node: node, volumes: volumes, options: o, patience: watchTime, every: tellEvery,
		pods: map[string]*known{}, ended: map[string]uint64{}, spaces: map[string]space{}, claims: newClaims(), told: map[string]string{}, failed: map[string]map[string]bool{}}
}

// Run reads and tells until the context ends.
func (c *Cluster) Run(ctx context.Context) {
	var running sync.WaitGroup
	start := func(f *follower) (end func()) {
		ctx, cancel := context.WithCancel(ctx)
		about, who := f.path, f.selector.Get("fieldSelector")
		f.client, f.patience = c.client, c.patience
		f.log = func(err error) { c.say(about, who, err) }
		running.Go(func() {
			f.run(ctx)
			c.forget(about, who)
		})
		return cancel
	}
	all := []*follower{
		{path: "/api/v1/pods", selector: url.Values{"fieldSelector": {"spec.nodeName=" + c.node}}, whole: c.volumes, set: c.setPod, gone: c.endPod, keep: c.keepPods},
		{path: "/api/v1/namespaces", set: c.setSpace, gone: c.endSpace, keep: c.keepSpaces},
	}
	if c.volumes {
		all = append(all, &follower{path: classesPath, whole: true, set: c.setClass, gone: c.endClass, keep: c.keepClasses})
	}
	c.mu.Lock()
	c.claims.start = start
	c.mu.Unlock()
	for _, f := range all {
		defer start(f)()
	}
	running.Go(func() { c.tell(ctx) })
	running.Wait()
}

// say logs a trouble with something once, however many followers have it.
func (c *Cluster) say(about, who string, err error) {
	text := ""
	if err != nil {
		text = plain.Brief(err.Error())
	}
	c.mu.Lock()
	was, failed := c.told[about], c.failed[about]
	switch {
	case text == "":
		if delete(failed, who); len(failed) > 0 {
			text = was // of others
		}
	case failed == nil:
		c.failed[about] = map[string]bool{who: true}
	default:
		if failed[who] = true; len(failed) > 1 {
			text = was // it was said of the first
		}
	}
	c.told[about] = text
	c.mu.Unlock()
	switch {
	case text == was:
	case text != "":
		c.options.Log.Warn("Kubernetes' API server does not answer as it should", "about", about, "error", text)
	default:
		c.options.Log.Info("Kubernetes' API server answers again", "about", about)
	}
}

// forget forgets the trouble of a follower that has ended.
func (c *Cluster) forget(about, who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.failed[about], who); len(c.failed[about]) == 0 {
		delete(c.told, about)
		delete(c.failed, about)
	}
}

// Of returns the annotations of a pod that begin with weir.io/, as they are now, and the plan that
// the pod's namespace names; see planned.Live.
func (c *Cluster) Of(uid, namespace string) (all map[string]string, plan string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spaces {
		if s.name == namespace {
			plan = s.plan
		}
	}
	p := c.pods[uid]
	if p == nil || p.good == nil || p.namespace != namespace {
		return nil, plan, false
	}
	return maps.Clone(p.good), plan, true
}

// own are the annotations that weir reads, and none else.
func own(all map[string]string) map[string]string {
	its := map[string]string{}
	for name, value := range all {
		if strings.HasPrefix(name, annotations.Prefix) && name != StatusAnnotation {
			its[name] = value
		}
	}
	return its
}

func (c *Cluster) setPod(o object) {
	if o.isOver() { // its claims take no other's place
		c.endPod(o)
		return
	}
	m := o.Metadata
	its := own(m.Annotations)
	err := c.check(its)
	c.mu.Lock()
	p := c.pods[m.UID]
	if p == nil {
		if len(c.pods) >= podsMost {
			c.mu.Unlock()
			return
		}
		was := m.Annotations[StatusAnnotation]
		c.number++
		p = &known{namespace: m.Namespace, name: m.Name, number: c.number, told: map[what]string{byAnnotation: was, byEvent: was}}
		c.pods[m.UID] = p
		delete(c.ended, m.UID)
		c.claim(p, o)
	} else if p.more {
		c.claim(p, o)
	}
	p.ends = m.DeletionTimestamp != ""
	if p.raw != nil && maps.Equal(p.raw, its) {
		c.mu.Unlock()
		return
	}
	p.raw, p.wrong = its, err
	if _, unread := annotations.Parse(its); err == nil || p.good == nil && unread == nil {
		p.good = its // of a plan that is not allowed none before it is known: the plans refuse it
	}
	c.mu.Unlock()
	c.options.Changed("pod", m.UID)
	c.options.Changed("containerd", "")
}

// check says what is wrong with a pod's annotations.
func (c *Cluster) check(its map[string]string) error {
	if c.options.Check != nil {
		return c.options.Check(its)
	}
	_, err := annotations.Parse(its)
	return err
}

// checkAgain has annotations count that were wrong and are right by now: the plans may have changed.
func (c *Cluster) checkAgain() {
	c.mu.Lock()
	var right []string
	for uid, p := range c.pods {
		if p.wrong == nil {
			continue
		}
		if p.wrong = c.check(p.raw); p.wrong == nil {
			p.good = p.raw
			right = append(right, uid)
		}
	}
	c.mu.Unlock()
	for _, uid := range right {
		c.options.Changed("pod", uid)
	}
	if len(right) > 0 {
		c.options.Changed("containerd", "")
	}
}

func (c *Cluster) endPod(o object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(o.Metadata.UID)
	c.follow()
}

// drop forgets a pod that is not there any more, but for its UID. Past a bound it forgets the UID of the one that has been
// gone for longest, whose containers have most likely ended.
func (c *Cluster) drop(uid string) {
	if c.pods[uid] == nil {
		return
	}
	delete(c.pods, uid)
	if len(c.ended) >= podsMost {
		first := uid
		for other, number := range c.ended {
			if first == uid || number < c.ended[first] {
				first = other
			}
		}
		delete(c.ended, first)
	}
	c.ends++
	c.ended[uid] = c.ends
}

func (c *Cluster) keepPods(there func(string) bool) {
	c.mu.Lock()
	for uid := range c.pods {
		if !there(uid) {
			c.drop(uid)
		}
	}
	c.follow()
	first := !c.podsListed
	c.podsListed = true
	c.mu.Unlock()
	if first { // what pods have had that it does not name was left until now
		c.options.Changed("pod", "")
		c.options.Changed("containerd", "")
	}
}

// setSpace takes a namespace. The plans of all its pods may change.
func (c *Cluster) setSpace(o object) {
	m := o.Metadata
	plan := m.Annotations[annotations.Prefix+"plan"]
	if _, err := annotations.Parse(map[string]string{annotations.Prefix + "plan": plan}); err != nil {
		plan = ""
	}
	c.changeSpace(m, plan)
}

func (c *Cluster) endSpace(o object) { c.changeSpace(o.Metadata, "") }

func (c *Cluster) changeSpace(m meta, plan string) {
	c.mu.Lock()
	was := c.spaces[m.UID]
	if delete(c.spaces, m.UID); plan != "" && len(c.spaces) < spacesMost {
		c.spaces[m.UID] = space{m.Name, plan}
	}
	c.mu.Unlock()
	if was.plan != plan {
		c.options.Changed("pod", "")
	}
}

// keepSpaces forgets namespaces that have gone. One of the same name may be there, which names no plan.
func (c *Cluster) keepSpaces(there func(string) bool) {
	c.mu.Lock()
	before := len(c.spaces)
	maps.DeleteFunc(c.spaces, func(uid string, _ space) bool { return !there(uid) })
	gone, first := len(c.spaces) < before, !c.spacesListed
	c.spacesListed = true
	c.mu.Unlock()
	if gone || first { // what pods have had of a namespace that names no plan was left until now
		c.options.Changed("pod", "")
	}
}
