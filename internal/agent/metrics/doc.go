// Package metrics serves what weir watches to Prometheus: each group's counters beside its
// limits, with the same labels and in the same units, so that one can be divided by the other.
// docs/metrics.md lists the metrics. It is for cmd/weird, because Prometheus' library is too heavy
// for weir.
//
// weird reads the groups when Prometheus asks, so it costs nothing in between. The page of 2,000
// limited groups takes 46 ms of processor time beside the reading (BenchmarkPage). One double
// series would lose the whole scrape, so a group whose name cannot be told from another's is left
// out and counted.
package metrics
