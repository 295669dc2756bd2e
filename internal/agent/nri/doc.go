// Package nri has weir's agent serve a container runtime as a plugin of its Node Resource Interface
// (containerd from 1.7 on, CRI-O from 1.26 on). The runtime asks it before a container's own
// program starts, when the container's cgroup and first process exist already: the plugin puts the
// limits of the pod and of the container into force, and lets the container start.
//
// A pod whose annotations are wrong is refused when one of its containers is made; its sandbox is there then. If weir
// takes too long, the container starts without its limits, and the agent sets them later: the
// plugin answers within a second, and a runtime gives it two (api.DefaultPluginRequestTimeout).
//
// The plugin is in the way of each container's start, so before its answer it does only what the program's first write
// needs: it finds the group by what the runtime says, writes the rules, and reads them back. It waits for nothing but
// the kernel, and for weir's pacer where the kernel alone would hold nothing of what the program writes through the
// page cache. Everything else follows the answer: the record on the disk, the owner's own settings (systemd's, for its
// units), the pacer for what the kernel charges to other groups, the journal and the log. The rules are on record in
// /run before they are written, so that after a kill -9 the next weird does what is left.
//
// The first rule on a disk waits until the disk has done all that it was asked for, from Linux 6.10 on. So when a container
// is made, the plugin has the kernel throttle the disks that its plan is on (planned.Activate); it starts later.
//
// While an answer is waited for, the agent's looks at targets pause (package haste): they need the same processors. A
// look at all targets, or a daemon that hangs, delays no start.
//
// The runtime asks for one container at a time. What the plugin cannot be told in time, the agent's next look at all
// pods finds.
package nri

import "time"

// Socket is where runtimes take plugins, unless they are told otherwise.
const Socket = "/var/run/nri/nri.sock"

// The plugin's name and place among the plugins of a runtime. It only reads what others have
// decided, so it comes late.
const (
	name  = "weir"
	index = "90"
)

const (
	// answerMost bounds one answer to the runtime.
	answerMost = time.Second
	// registerMost bounds the time until the runtime has taken the plugin.
	registerMost = 10 * time.Second
	// reconnectLeast and reconnectMost bound the pause before the next attempt to connect, which
	// doubles with each failure.
	reconnectLeast = 100 * time.Millisecond
	reconnectMost  = 2 * time.Second
	// openMost is how long an opened host is used: a hierarchy may be mounted at any time.
	openMost = time.Minute
	// noteMost bounds the records that wait to be written. The agent's next look at all targets
	// needs none of them.
	noteMost = 1024
	// linesMost bounds the lines that wait for the log.
	linesMost = 256
)

// tookMost is how many answers the status's P99 is of.
const tookMost = 1024
