// Package kube reads from Kubernetes' API server what a node's container runtime is not told: how the
// annotations of running pods change, and which plan a namespace names. It tells the API server in turn
// how the limits of each pod are, by the annotation weir.io/status and by events.
//
// It lists and watches in plain HTTP, the pods of one node and the namespaces, metadata alone:
// client-go would cost more memory than the rest of weird. It believes nothing of the answers:
// their sizes and numbers are bounded. What was read last counts as long as the API server does not
// answer.
package kube

import (
	"time"

	"github.com/weir-io/weir/internal/annotations"
)

// StatusAnnotation says on a pod how its limits are.
const StatusAnnotation = annotations.Status

// The bounds of what is taken.
const (
	answerMost = 4 << 20 // bytes of one answer, or of one line of a watch. etcd keeps objects of up to 1.5 MB
	podsMost   = 4096    // kubelet's own default is 110
	spacesMost = 16384   // namespaces that name a plan
	claimsMost = 1024    // that are followed, of all pods together. A node has at most some hundred volumes
	// claimsKnown bounds the claims whose names are kept, those that wait included: 2 MB of names.
	claimsKnown = 8 * claimsMost
	classMost   = 1024 // VolumeAttributesClasses
	nameMost    = 253  // bytes (a DNS subdomain)
	pageMost    = 100  // objects of a page of a list
	pageLeast   = 5    // of one whose objects are large: all of them fit
	// pageBytesMost bounds a page, in bytes.
	pageBytesMost = pageMost * answerMost / 16
	pagesMost     = 10_000
)

// The times.
const (
	requestTime = 10 * time.Second
	// watchTime is how long one watch is asked for, and watchGrace what it may take longer until it
	// counts as one that hangs.
	watchTime  = 5 * time.Minute
	watchGrace = 30 * time.Second
	// pingEvery is after how long without an answer the API server is asked whether the connection
	// lives, and pingMost what that may take.
	pingEvery = 30 * time.Second
	pingMost  = 15 * time.Second
	// watchLeast is how long a watch lasts at least that counts as one: after a shorter one the pause
	// grows, as after a failure.
	watchLeast = 5 * time.Second
	// againLeast and againMost bound the pause after a failure, which doubles.
	againLeast = 200 * time.Millisecond
	againMost  = time.Minute
	// tellEvery is how often it is looked whether there is something to tell, and tellLeast how long
	// a pod is not told of again. A second more is given to what may still change at once.
	tellEvery = time.Second
	tellLeast = 10 * time.Second
	// tellAtOnce bounds the pods that are told of each tellEvery.
	tellAtOnce = 5
	// refusedTime is how long nothing is told after the API server has refused it.
	refusedTime = 5 * time.Minute
)
