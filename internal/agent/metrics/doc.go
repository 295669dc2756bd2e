// Package metrics serves what weir watches to Prometheus: each group's counters beside its
// limits, with the same labels and in the same units, so that one can be divided by the other.
// docs/metrics.md lists the metrics. It is for cmd/weird, because Prometheus' library is too heavy
// for weir.
package metrics
