package kube

import "github.com/weir-io/weir/internal/volumeqos"

// Read reports what has been read of a pod; see planned.Live. A pod that the whole list did not have is not in the cluster
// by this UID, as static pods are not: nothing will be known of it. Of one whose annotations or volumes' limits were wrong
// from the beginning, those from before are not known. One that was known and is gone keeps what it has had: if somebody has
// removed it by force, its containers run on for a while. That is not on record: who starts anew takes it for a static one.
func (c *Cluster) Read(uid string) (of, volumes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[uid]
	if p == nil {
		_, ended := c.ended[uid]
		there := c.podsListed && !ended
		return there && c.spacesListed, there
	}
	return p.good != nil && c.spacesListed, !c.volumes || c.judged(p)
}

// judged reports whether the limits of a pod's volumes are known, or that they have none.
func (c *Cluster) judged(p *known) bool {
	for _, claim := range p.claims {
		v := c.claims.volumes[claim.volume]
		if v == nil || !v.read || volumeqos.Knows(v.driver) && !v.right {
			return false
		}
	}
	return !p.more
}
