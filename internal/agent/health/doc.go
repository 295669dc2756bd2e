// Package health answers whether weir's daemon lives: in HTTP, at a unix socket that only root
// can connect to, and at an address for the probes of Kubernetes. It is for cmd/weird, because
// net/http is too heavy for weir.
package health
