package weir

import (
	"context"
	"fmt"
	"os"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/heavy"
	"github.com/weir-io/weir/internal/self"
)

// Helpers says that weir may start its helpers as this program. Only RunHelper makes a useful one.
type Helpers struct{ ready bool }

// RunHelper is the first call in the main function of a program that changes limits:
//
//	func main() {
//		helpers := weir.RunHelper(os.Args)
//
// weir starts its helpers as /proc/self/exe, with a first argument that begins with "__". In such a
// process RunHelper does the helper's work, and ends the process. In all others it returns at once.
// Whatever a program does before this call, each helper does too.
func RunHelper(args []string) Helpers {
	if is, status := runHelper(args); is {
		os.Exit(status)
	}
	return Helpers{ready: true}
}

// runHelper does a helper's work. is is false if the arguments name none.
func runHelper(args []string) (is bool, status int) {
	if len(args) == 0 {
		return false, 0
	}
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(os.Stderr, "weir: "+format+"\n", args...) // there is nobody else to tell
	}
	is, err := self.Main(context.Background(), args[1:], self.Streams{In: os.Stdin, Out: os.Stdout, Say: say}, heavy.Roles(""))
	if err != nil {
		say("%v", err)
	}
	return is, fault.ExitCode(err)
}
