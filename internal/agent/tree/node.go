package tree

import "path"

// noWatch is the watch of a node that has none. inotify's begin at 1.
const noWatch = -1

// A node is a group that is known.
type node struct {
	above *node // nil: it is the root
	name  string
	below map[string]*node // nil: none
	watch int32
	depth int  // 0: the root
	gone  bool // it is not part of the tree any more
}

// path is where the group is, below the root.
func (n *node) path() string {
	if n.above == nil {
		return "."
	}
	return path.Join(n.above.path(), n.name)
}

// each visits all groups below a node, a group before those below it.
func (n *node) each(visit func(*node)) {
	for _, child := range n.below {
		visit(child)
		child.each(visit)
	}
}

// attach makes a node for a name.
func (n *node) attach(name string) *node {
	child := &node{above: n, name: name, watch: noWatch, depth: n.depth + 1}
	if n.below == nil {
		n.below = map[string]*node{}
	}
	n.below[name] = child
	return child
}

// detach takes a node out of the tree.
func (n *node) detach() {
	if n.above != nil && n.above.below[n.name] == n {
		delete(n.above.below, n.name)
	}
}
