package systemd

import (
	"context"
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
)

// A text that would end its line never reaches systemd: the connection here is none.
func TestNothingButOneLineReachesSystemd(t *testing.T) {
	var none *Conn
	for _, text := range []string{"a\nOnSuccess=evil.service", "a\rb", "a\\", "\xff", "\u2028"} {
		rates := IOLimitAt("/dev/"+text, limit.Limit{WBPS: limit.PerSecond(1)})
		_, startErr := none.StartScope(context.Background(), Scope{Name: "x.scope", Description: text})
		for what, err := range map[string]error{
			"Set":        none.Set(context.Background(), "x.service", true, rates),
			"Set string": none.Set(context.Background(), "x.service", true, []Setting{{"Description", dbus.MakeVariant(text)}}),
			"StartScope": startErr,
		} {
			if refused := (*plain.ValueError)(nil); !errors.As(err, &refused) {
				t.Errorf("%s of %q: %v", what, text, err)
			}
		}
	}
}
