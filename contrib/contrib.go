// Package contrib has the files that other programs take to run weir: systemd's, Kubernetes',
// Prometheus' and Grafana's.
package contrib

import "embed"

// WeirdService is the unit with which systemd runs weird.
//
//go:embed weird.service
var WeirdService string

// WeirdExits is the drop-in of that unit with which weir's pacer learns what processes have done by their end.
//
//go:embed weird.service.d/exits.conf
var WeirdExits string

// Kubernetes is the manifest of weird's pods, as the chart makes it of its own values.
//
//go:embed kubernetes/base/weir.yaml
var Kubernetes string

// Chart is Helm's, below kubernetes/chart.
//
//go:embed all:kubernetes/chart
var Chart embed.FS

// KubectlWeir is kubectl's plugin, a shell's program.
//
//go:embed kubernetes/kubectl-weir
var KubectlWeir string

// WeirdMetricsService is the unit with which systemd runs weird metrics, with the page and history.
//
//go:embed weird-metrics.service
var WeirdMetricsService string

// WeirdMetricsTrace is the drop-in of that unit with which the page can trace.
//
//go:embed weird-metrics.service.d/page-trace.conf
var WeirdMetricsTrace string

// AlertRules are the rules with which Prometheus tells of limits that do not hold.
//
//go:embed prometheus/weir.rules.yml
var AlertRules string
