package fault

// What can be done where something is measured or explained.
const (
	SetFirst     Do = "set-first"            // set a limit first, or measure without the target
	NameSpot     Do = "name-spot"            // name a directory of the target, or observe its own I/O
	OtherKinds   Do = "other-kinds"          // ask for other kinds of I/O; the notes say why these cannot be tried
	NameOne      Do = "name-one"             // name a directory of the target
	NameDir      Do = "name-directory"       // name a directory
	NameOtherDir Do = "name-other-directory" // name another directory
	AddDirect    Do = "add-direct"           // ask for direct I/O too
	AllRows      Do = "all-rows"             // ask for all rows
	ProveAlone   Do = "prove-alone"          // measure that limit alone, without the target
	OtherSystem  Do = "other-file-system"    // measure on another file system
	DropTarget   Do = "drop-target"          // do not name the target, so that a new group is measured
	DropOther    Do = "drop-neighbour"       // do not ask for a neighbour
	WriteLess    Do = "write-less"           // write at most Target, or name another directory
	TellWhy      Do = "tell-why"             // ask for the reason
	DropPlace    Do = "drop-place"           // do not name the place Target

	UseV1     Do = "use-v1"     // do not ask for cgroup v2, or boot without v1's controllers
	UseV2     Do = "use-v2"     // do not ask for cgroup v1
	AskHost   Do = "ask-host"   // ask about the machine that weir runs on, and not about a copy of its files
	Record    Do = "record"     // record the history in the directory Target
	OtherTime Do = "other-time" // name a time in which the history was recorded
	OlderTime Do = "older-time" // name the target as weir top does, or begin at an earlier time
)
