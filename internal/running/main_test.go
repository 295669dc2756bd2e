package running

import (
	"os"
	"testing"

	"github.com/weir-io/weir/internal/act/launch"
)

// TestMain is the keeper of a scope too, which weir starts before systemd makes the scope.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == launch.KeeperArg {
		launch.Keep(os.Stdin)
		return
	}
	os.Exit(m.Run())
}
