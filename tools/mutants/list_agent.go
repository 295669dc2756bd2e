package main

// agentMutants are faults in the agent that keeps plans.
var agentMutants = []mutant{
	{name: "agent: dropped events are not found", file: "internal/agent/tree/take.go",
		was: "\t\tt.lost = true\n", is: "", packages: []string{"./internal/agent/tree"}, run: "TestOverflow"},
	{name: "agent: what events tell counts as missed", file: "internal/agent/tree/take.go",
		was: "\tif len(t.found) == 0 {", is: "\tif true {", packages: []string{"./internal/agent/tree"}, run: "TestComparison"},
	{name: "agent: a renamed group keeps its old name", file: "internal/agent/tree/watch.go",
		was: "\tif was := t.watched[watch]; was != nil && was != n {", is: "\tif was := t.watched[watch]; false {", packages: []string{"./internal/agent/tree"}, run: "TestMovedInto"},
	{name: "agent: an owner that fights is fought for ever", file: "internal/agent/reconcile/core.go",
		was: "if len(e.drifts) < FightDrifts {", is: "if true {", packages: []string{"./internal/agent/reconcile"}, run: "TestGivesWay"},
	{name: "agent: two targets share a group", file: "internal/agent/reconcile/core.go",
		was: "by != \"\" && by != t.Key", is: "false", packages: []string{"./internal/agent/reconcile"}, run: "TestOneGroup"},
	{name: "agent: plans with a mistake are taken away", file: "internal/agent/agent.go",
		was:      "\t\ta.refuse(by, err)\n\t\treturn err\n",
		is:       "\t\ta.refuse(by, err)\n\t\tconfig, _ = planned.Load(\"/nowhere\", \"\", a.options.Read)\n",
		packages: []string{"./internal/agent"}, run: "TestKeepsPlans"},
	{name: "agent: a directory of plans that is away has none", file: "internal/agent/agent.go",
		was: "\t\tread = planned.LoadNewer\n", is: "", packages: []string{"./internal/agent"}, run: "TestPlansThatAreAway"},
	{name: "agent: half a file of plans is read", file: "internal/agent/settle.go",
		was: "if len(w.writers()) > 0 {", is: "if false {", packages: []string{"./internal/agent"}, run: "TestPlansThatAreBeingWritten"},
	{name: "agent: a named look forgets the others", file: "internal/agent/reconcile/core.go",
		was: "if names == nil || slices", is: "if true || slices", packages: []string{"./internal/agent/reconcile"}, run: "."},
	{name: "agent: everything is asked for what is named", file: "internal/planned/kind.go",
		was: "if names != nil && !slices", is: "if false && !slices", packages: []string{"./internal/agent/source"}, run: "TestOnlyWhat"},
}
