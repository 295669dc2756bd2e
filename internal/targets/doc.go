// Package targets turns a name from the user ("pid:4711", "unit:nginx", "docker:web",
// "cgroup:/batch") into the cgroup that a limit applies to, with its processes and its owner.
// Each kind of target is a small package below this one that implements Kind.
//
// It only looks: it moves no process and changes no group.
package targets
