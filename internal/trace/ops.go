package trace

// Ops reads the counts of one kind only, which costs a fraction of a Snapshot.
func (t *Tracer) Ops(k Kind) (Ops, error) { return t.ops(k) }
