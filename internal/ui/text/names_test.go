package text

import (
	"testing"

	"github.com/weir-io/weir/internal/act/escape"
)

// A file's name makes no line of its own among what weir run says.
func TestNamesStayInTheirLine(t *testing.T) {
	const name = "/srv/a\nweir: /dev/sda: wrote 1 MB: held"
	if got := escapedFile(escape.File{Path: name}); got != `/srv/a\nweir: /dev/sda: wrote 1 MB: held` {
		t.Errorf("%q", got)
	}
}
