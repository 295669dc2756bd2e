package main

// nriMutants are faults in what the agent does for container runtimes and for pods' annotations.
var nriMutants = []mutant{
	{name: "nri: a container starts before its limits are in force", file: "internal/agent/nri/serve.go",
		was: "return s.limit(ctx, pod, container)", is: "go s.limit(ctx, pod, container); return nil", packages: []string{"./internal/agent/nri"}, run: "TestTheKernelRefuses"},
	{name: "nri: a start waits as long as the kernel does", file: "internal/agent/nri/plugin.go",
		was: "context.WithTimeout(ctx, p.answer)", is: "context.WithTimeout(ctx, 60*p.answer)", packages: []string{"./internal/agent/nri"}, run: "TestNothingHangs"},
	{name: "nri: wrong annotations are taken", file: "internal/agent/nri/plugin.go",
		was: "return fmt.Errorf(\"weir: %w\", err)", is: "return nil", packages: []string{"./internal/agent/nri"}, run: "TestRefusals"},
	{name: "nri: the plugin connects once", file: "internal/agent/nri/serve.go",
		was: "case <-time.After(wait):", is: "case <-time.After(1e6 * wait):", packages: []string{"./internal/agent/nri"}, run: "TestTheRuntimeRestarts"},
	{name: "annotations raise what a plan allows", file: "internal/planned/seen.go",
		was: "(!bounded || is < was)", is: "(!bounded || is > was)", packages: []string{"./internal/planned", "./internal/agent/nri"}, run: "TestAnnotations|TestStart"},
	{name: "annotations: Mi is a million", file: "internal/annotations/quantity.go",
		was: "return 10 * (1 +", is: "return 9 * (1 +", packages: []string{"./internal/annotations"}, run: "."},
	{name: "agent: a named pod is not looked at", file: "internal/planned/kind.go",
		was: "name == l.Name || name == l.UID || ", is: "name == l.Name || ", packages: []string{"./internal/agent/source"}, run: "TestOnlyThePod"},
}
