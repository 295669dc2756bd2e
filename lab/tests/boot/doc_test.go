// Package boot_test looks at what outlives a boot of the machine. It runs after all other
// tests: what it sets up is started then, which nobody else expects.
package boot_test
