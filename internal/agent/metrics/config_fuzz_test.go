package metrics

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

// FuzzAsksWho: of a file of keys and users that the server takes, weird knows whether clients have to
// say who they are.
func FuzzAsksWho(f *testing.F) {
	for _, s := range []string{"basic_auth_users:\n  a: b\n", "tls_server_config:\n  client_auth_type: RequireAndVerifyClientCert\n", "basic_auth_users: {}\n", "a: &a [*a]\n", "\x00"} {
		f.Add([]byte(s))
	}
	file := filepath.Join(f.TempDir(), "web.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		o := Options{Config: file}
		asks, err := o.AsksWho()
		if err != nil || o.Check() != nil {
			return // weird does not start
		}
		var parts map[string]any
		if err := yaml.Unmarshal(text, &parts); err != nil {
			t.Fatalf("%q: the server takes it, and it is not made of parts: %v", text, err)
		}
		tls, _ := parts["tls_server_config"].(map[string]any)
		users := reflect.ValueOf(parts["basic_auth_users"])
		if want := users.Kind() == reflect.Map && users.Len() > 0 || tls["client_auth_type"] == "RequireAndVerifyClientCert"; asks != want {
			t.Errorf("%q: asks %v, its parts %v", text, asks, want)
		}
	})
}
