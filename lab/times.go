package lab

import (
	"os"
	"strconv"
	"testing"

	"github.com/weir-io/weir/lab/environ"
)

// Times is how often a test does what it repeats: few, or what a target of the Makefile
// says in a variable of the environment.
func Times(t testing.TB, variable string, few int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number", variable, text)
	}
	return n
}

// More is how often a test does what it repeats: few in the default run, and more in the whole matrix and in
// runs of chosen tests or guests.
func More(few, more int) int {
	if os.Getenv(environ.Everywhere) != "" {
		return more
	}
	return few
}
