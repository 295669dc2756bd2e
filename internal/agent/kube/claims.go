package kube

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/volumeqos"
)

// The paths of what is followed beside pods and namespaces.
const (
	volumesPath     = "/api/v1/persistentvolumes"
	classesPath     = "/apis/storage.k8s.io/v1/volumeattributesclasses"
	attachmentsPath = "/apis/storage.k8s.io/v1/volumeattachments"
)

func claimsPath(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/persistentvolumeclaims"
}

// escape spells a value for a field selector (kubernetes, apimachinery/pkg/fields: EscapeValue). Whoever writes
// a pod chooses the names of its claims, and nobody checks them.
var escape = strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`)

// claims are what is known of the persistent volumes of pods. Cluster.mu guards them.
type claims struct {
	volumes     map[string]*volume           // by name
	attachments map[string]*attachment       // by name
	classes     map[string]class             // by name, of the whole cluster
	listed      bool                         // classes are known
	changed     map[string]bool              // UIDs of pods that the agent is to look at
	following   map[string]func()            // ends it, by path and name
	start       func(*follower) (end func()) // nil: Run has not begun
}

func newClaims() claims {
	return claims{volumes: map[string]*volume{}, attachments: map[string]*attachment{}, classes: map[string]class{}, following: map[string]func(){}, changed: map[string]bool{}}
}

// A claimed is a claim of one pod. A pod's claim never has another volume; a later pod's claim of the same
// name can, for somebody may have made it anew.
type claimed struct {
	name   string
	volume string // empty: it is not known yet
	waits  bool   // it is not followed, until claims of other pods have gone
}

// A volume is a PersistentVolume.
type volume struct {
	read           bool
	driver, handle string // empty: it is of no CSI driver
	attributes     map[string]string
	class          string // empty: it has none

	limit limit.Limit // that counts: the last one that was right
	wrong error       // why the present one does not count; nil: it does
	right bool        // one was right, maybe none at all
}

// An attachment is the VolumeAttachment of a volume to this node.
type attachment struct {
	read     bool
	uid      string // empty: there is none
	metadata map[string]string
}

// A class is a VolumeAttributesClass.
type class struct {
	uid, driver string
	parameters  map[string]string
}

// claim notes the claims of a new pod, or those that there was no place for. They never change.
func (c *Cluster) claim(p *known, o object) {
	if !c.volumes {
		return
	}
	all := 0
	for _, other := range c.pods {
		all += len(other.claims)
	}
	p.more = false
	has := map[string]bool{}
	for _, claim := range p.claims {
		has[claim.name] = true
	}
	for _, v := range o.Spec.Volumes {
		name := ""
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = o.Metadata.Name + "-" + v.Name
		}
		if name == "" || len(name) > nameMost || has[name] {
			continue
		}
		if all >= claimsKnown {
			p.more = true
			break
		}
		has[name] = true
		p.claims = append(p.claims, claimed{name: name, waits: true})
		all++
	}
	c.follow()
}

// admit takes claims that wait into those that are followed, as far as there is place: the pods that are known for
// longest first.
func (c *Cluster) admit() {
	followed := 0
	var waiting []*known
	for _, p := range c.pods {
		waits := false
		for _, claim := range p.claims {
			if claim.waits {
				waits = true
			} else {
				followed++
			}
		}
		if waits {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *known) int { return cmp.Compare(a.number, b.number) })
	for _, p := range waiting {
		for i := range p.claims {
			if p.claims[i].waits && followed < claimsMost {
				p.claims[i].waits = false
				followed++
			}
		}
	}
}

// follow begins to follow what has come to matter, and ends what no longer does: a claim matters until it
// has a volume, for the pod keeps that; a volume as long as a pod has it and its driver keeps limits.
func (c *Cluster) follow() {
	c.admit()
	k := &c.claims
	if k.start == nil {
		return
	}
	named := map[string]bool{} // volumes and attachments that stay known
	want := map[string]*follower{}
	one := func(path, name string, f follower) {
		f.path, f.selector, f.whole = path, url.Values{"fieldSelector": {"metadata.name=" + escape.Replace(name)}}, true
		want[path+" "+name] = &f
	}
	for _, p := range c.pods {
		for _, claim := range p.claims {
			its := claim.volume
			if claim.waits {
				continue
			}
			if its == "" {
				one(claimsPath(p.namespace), claim.name, follower{set: func(o object) { c.setClaim(p.namespace, claim.name, o) }, gone: func(object) {}, keep: func(func(string) bool) {}})
				continue
			}
			v := k.volumes[its]
			if v == nil {
				v = &volume{}
				k.volumes[its] = v
			}
			named["volume "+its] = true
			if !v.read || volumeqos.Knows(v.driver) {
				one(volumesPath, its, follower{set: c.setVolume, gone: func(object) {}, keep: func(func(string) bool) {}})
			}
			if at := v.attachment(c.node); at != "" {
				if k.attachments[at] == nil {
					k.attachments[at] = &attachment{}
				}
				named["attachment "+at] = true
				one(attachmentsPath, at, follower{set: func(o object) { c.attach(its, o) }, gone: func(object) { c.attach(its, object{}) },
					keep: func(there func(string) bool) { c.keepAttachment(its, there) }})
			}
		}
	}
	maps.DeleteFunc(k.volumes, func(key string, _ *volume) bool { return !named["volume "+key] })
	maps.DeleteFunc(k.attachments, func(key string, _ *attachment) bool { return !named["attachment "+key] })
	for key, end := range k.following {
		if want[key] == nil {
			end()
			delete(k.following, key)
		}
	}
	for key, f := range want {
		if k.following[key] == nil {
			k.following[key] = k.start(f)
		}
	}
}

// attachment is the name of the VolumeAttachment of a volume whose driver keeps limits there; empty: it
// does not. (kubernetes, pkg/volume/csi/csi_attacher.go: getAttachmentName)
func (v *volume) attachment(node string) string {
	if !volumeqos.InAttachment(v.driver) {
		return ""
	}
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(v.handle+v.driver+node)))
}

// setClaim takes a claim, for the pods that have it and no volume for it yet.
func (c *Cluster) setClaim(namespace, name string, o object) {
	c.locked(func() {
		its := o.Spec.VolumeName
		if its == "" || len(its) > nameMost {
			return
		}
		for _, p := range c.pods {
			for i := range p.claims {
				if claim := &p.claims[i]; p.namespace == namespace && claim.name == name && claim.volume == "" && !claim.waits {
					claim.volume = its
				}
			}
		}
		c.follow()
		c.changedOf(its) // another pod may have made it known already
	})
}

func (c *Cluster) setVolume(o object) {
	c.locked(func() {
		v := c.claims.volumes[o.Metadata.Name]
		if v == nil {
			return
		}
		if !v.read { // what pods have had of it was left until now
			c.changedOf(o.Metadata.Name)
		}
		v.read, v.class = true, o.Spec.VolumeAttributesClassName
		if csi := o.Spec.CSI; csi != nil {
			v.driver, v.handle, v.attributes = csi.Driver, csi.VolumeHandle, volumeqos.Own(csi.Driver, csi.VolumeAttributes)
		}
		c.follow()
		c.judge(o.Metadata.Name)
	})
}
