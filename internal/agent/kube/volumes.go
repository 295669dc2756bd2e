package kube

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/volumeqos"
)

// Volumes returns the limits of a pod's persistent volumes; see planned.Live.
func (c *Cluster) Volumes(uid, namespace string) (all []annotations.On) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	if p == nil || p.namespace != namespace {
		return nil
	}
	for _, claim := range p.claims {
		name := claim.volume
		v := c.claims.volumes[name]
		is := func(on annotations.On) bool { return on.Volume == name }
		if v != nil && !v.limit.IsZero() && !slices.ContainsFunc(all, is) {
			all = append(all, annotations.On{Volume: name, Limit: v.limit})
		}
	}
	return all
}

// wrongVolume says what is wrong with the limit of one of a pod's volumes.
func (c *Cluster) wrongVolume(p *known) error {
	for _, claim := range p.claims {
		if v := c.claims.volumes[claim.volume]; v != nil && v.wrong != nil {
			return fmt.Errorf("volume %s of the claim %s: %w", plain.Short(claim.volume, nameMost), plain.Short(claim.name, nameMost), v.wrong)
		}
	}
	if p.more || slices.ContainsFunc(p.claims, func(claim claimed) bool { return claim.waits }) {
		return fmt.Errorf("the pods of the node have more than %d claims; weir looks at the rest of this pod's when other pods end", claimsMost)
	}
	return nil
}

// judge finds the limit of a volume anew from what is known of it.
func (c *Cluster) judge(name string) {
	v := c.claims.volumes[name]
	if v == nil || !v.read || !volumeqos.Knows(v.driver) {
		return
	}
	l, known, err := c.limitOf(v)
	if !known {
		return
	}
	if v.wrong = err; err == nil && (l != v.limit || !v.right) {
		v.limit, v.right = l, true
		c.changedOf(name)
	}
}

// limitOf reads the limit of a volume. known is false as long as something of it is not read yet.
func (c *Cluster) limitOf(v *volume) (l limit.Limit, known bool, err error) {
	places := []map[string]string{v.attributes}
	if at := v.attachment(c.node); at != "" {
		a := c.claims.attachments[at]
		if a == nil || !a.read {
			return l, false, nil
		}
		places = []map[string]string{a.metadata}
	} else if v.class != "" {
		its, is := c.claims.classes[v.class]
		switch {
		case !c.claims.listed:
			return l, false, nil
		case !is:
			return l, true, fmt.Errorf("there is no VolumeAttributesClass %s", plain.Short(v.class, nameMost))
		case its.driver != v.driver:
			return l, true, fmt.Errorf("VolumeAttributesClass %s is for the driver %s, and the volume is of the driver %s", plain.Short(v.class, nameMost), plain.Short(its.driver, nameMost), plain.Short(v.driver, nameMost))
		}
		places = append(places, its.parameters)
	}
	l, err = volumeqos.Parse(v.driver, places...)
	return l, true, err
}

// changedOf notes that the agent is to look at the pods that have a volume.
func (c *Cluster) changedOf(name string) {
	for uid, p := range c.pods {
		if slices.ContainsFunc(p.claims, func(claim claimed) bool { return claim.volume == name }) {
			c.claims.changed[uid] = true
		}
	}
}

// locked does something under the lock, and has the agent look at pods that have changed by it.
func (c *Cluster) locked(do func()) {
	c.mu.Lock()
	do()
	changed := c.claims.changed
	c.claims.changed = map[string]bool{}
	c.mu.Unlock()
	for uid := range changed {
		c.options.Changed("pod", uid)
	}
}

func (c *Cluster) setClass(o object) {
	c.locked(func() {
		if _, is := c.claims.classes[o.Metadata.Name]; is || len(c.claims.classes) < classMost {
			c.claims.classes[o.Metadata.Name] = class{o.Metadata.UID, o.DriverName, volumeqos.Own(o.DriverName, o.Parameters)}
		}
		c.judgeClass(o.Metadata.Name)
	})
}

func (c *Cluster) endClass(o object) {
	c.locked(func() {
		delete(c.claims.classes, o.Metadata.Name)
		c.judgeClass(o.Metadata.Name)
	})
}

func (c *Cluster) keepClasses(there func(string) bool) {
	c.locked(func() {
		maps.DeleteFunc(c.claims.classes, func(_ string, its class) bool { return !there(its.uid) })
		c.claims.listed = true
		for name := range c.claims.volumes {
			c.judge(name)
		}
	})
}

// judgeClass judges the volumes that have a class.
func (c *Cluster) judgeClass(class string) {
	for name, v := range c.claims.volumes {
		if v.class == class {
			c.judge(name)
		}
	}
}

// attach takes the attachment of a volume to this node; one without a name: there is none.
func (c *Cluster) attach(name string, o object) {
	c.locked(func() {
		v := c.claims.volumes[name]
		if v == nil {
			return
		}
		a := c.claims.attachments[v.attachment(c.node)]
		if a == nil {
			return
		}
		*a = attachment{read: true, uid: o.Metadata.UID}
		if o.Spec.Attacher == v.driver && o.Spec.NodeName == c.node {
			a.metadata = volumeqos.Own(v.driver, o.Status.AttachmentMetadata)
		}
		c.judge(name)
	})
}

// keepAttachment notes that a list had no attachment of a volume.
func (c *Cluster) keepAttachment(name string, there func(string) bool) {
	c.mu.Lock()
	its := c.claims.volumes[name]
	none := false
	if its != nil {
		a := c.claims.attachments[its.attachment(c.node)]
		none = a != nil && !there(a.uid)
	}
	c.mu.Unlock()
	if none {
		c.attach(name, object{})
	}
}
