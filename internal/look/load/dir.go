package load

import (
	"os"

	"github.com/weir-io/weir/internal/fault"
)

// A NoDirError says that no load can be made in a place, because it is no directory.
type NoDirError struct{ Dir string }

func (e *NoDirError) Error() string {
	return e.Dir + ": name a directory, where a file without a name can be made"
}

// Class makes it wrong use.
func (e *NoDirError) Class() fault.Class { return fault.WrongUse }

// CheckDir returns a *NoDirError for what is no directory.
func CheckDir(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return &NoDirError{dir}
	}
	return nil
}
