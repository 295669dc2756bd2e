package main

// foundMutants are faults in what finds groups, reads configurations of others and explains.
var foundMutants = []mutant{
	{name: "a group just above this cgroup namespace is looked for in it", file: "internal/linux/cgroupfs/process.go",
		was: `path == "/.." || `, is: "", packages: []string{"./internal/linux/cgroupfs"}, run: "."},
	{name: "a mount of groups outside of this cgroup namespace is used", file: "internal/linux/cgroupfs/fs.go",
		was: "if isOutside(m.Root) {", is: "if false {", packages: []string{"./internal/linux/cgroupfs"}, run: "."},
	{name: "import takes a star behind a word for a comment", file: "internal/cgconfig/parse.go",
		was: "\tp.begins = false\n", is: "", packages: []string{"./internal/cgconfig"}, run: "."},
	{name: "import takes no star for a comment", file: "internal/cgconfig/parse.go",
		was: " && (!p.begins || !strings.HasPrefix(p.rest, \"*\"))", is: "", packages: []string{"./internal/cgconfig"}, run: "."},
	{name: "a rate that Docker does not keep is called another limit", file: "internal/look/why/rules_record.go",
		was: "return bound && (!too || is != n)", is: "return bound != too || is != n", packages: []string{"./internal/look/why"}, run: "."},
	{name: "a limit that weir keeps is said to be lost", file: "internal/look/why/rules_record.go",
		was: "if r == nil || f.Group.KeptIn != \"\" {\n", is: "if r == nil {\n", packages: []string{"./internal/look/why"}, run: "."},
	{name: "a limit of a unit on v1 that weir sets again is said to be lost", file: "internal/keep/kept.go",
		was: "if ofUnit := b.version == cgroupfs.V1", is: "if ofUnit := b.version == cgroupfs.V2", packages: []string{"./internal/keep", "./internal/look/explain"}, run: "."},
}
