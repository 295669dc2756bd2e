package machine

import "testing"

func TestExplain(t *testing.T) {
	for _, c := range []struct{ console, want string }{
		{"=== RUN   TestA\n--- PASS: TestA (0.0s)\n=== RUN   TestB\n=== RUN   TestB/x\n", "it was in TestB, TestB/x"},
		{"=== RUN   TestA\n[ 1.0] Kernel panic - not syncing: x\n", "[ 1.0] Kernel panic - not syncing: x"},
		{"Booting\n", "it was in no test: its console tells how far it came"},
	} {
		if got := explain(c.console).Error(); got != c.want {
			t.Errorf("explain(%q) = %q, want %q", c.console, got, c.want)
		}
	}
}
