package kube

import (
	"net/http"
	"time"
)

// spacesRefused is of how many namespaces the API server has to refuse news, until nothing is told of any for a while. One
// may refuse it for itself: it is being deleted, or has a quota or a policy.
const spacesRefused = 3

// refusals are when the API server has refused to be told in some way of the pods of a namespace, or, with an empty one, of
// all pods.
type refusals map[refused]time.Time

type refused struct {
	by        what
	namespace string
}

// has reports whether nothing is told now in a way of a namespace's pods.
func (r refusals) has(by what, namespace string, now time.Time) bool {
	return now.Sub(r[refused{by, namespace}]) < refusedTime || now.Sub(r[refused{by, ""}]) < refusedTime
}

// note notes the answer to what was told of a pod.
func (r refusals) note(by what, namespace string, err error, now time.Time) {
	if is(err, http.StatusUnauthorized) {
		r[refused{by, ""}] = now
	}
	if !is(err, http.StatusForbidden) {
		return
	}
	r[refused{by, namespace}] = now
	several := 0
	for of, at := range r {
		switch {
		case now.Sub(at) >= refusedTime:
			delete(r, of)
		case of.by == by && of.namespace != "":
			several++
		}
	}
	if several >= spacesRefused {
		r[refused{by, ""}] = now
	}
}
