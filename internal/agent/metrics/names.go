package metrics

import dto "github.com/prometheus/client_model/go"

// A Metric is one that weird can have.
type Metric struct {
	Name   string
	Help   string
	Type   dto.MetricType
	Labels []string
}

func counter(name, help string, labels ...string) Metric {
	return Metric{name, help, dto.MetricType_COUNTER, labels}
}

func gauge(name, help string, labels ...string) Metric {
	return Metric{name, help, dto.MetricType_GAUGE, labels}
}

// The labels.
const (
	cgroupLabel    = "cgroup"    // the group's path: /system.slice/nginx.service
	deviceLabel    = "device"    // /dev/vda
	directionLabel = "direction" // read or write
	mountLabel     = "mount"     // the mount point of a file system
	projectLabel   = "project"   // the number of a project of a file system
	targetLabel    = "target"    // unit:nginx, docker:web
	planLabel      = "plan"      // small
)

var (
	readBytes    = counter("weir_io_read_bytes_total", "Bytes that the kernel has charged to the cgroup as read from the device.", cgroupLabel, deviceLabel)
	writtenBytes = counter("weir_io_written_bytes_total", "Bytes that the kernel has charged to the cgroup as written to the device.", cgroupLabel, deviceLabel)
	reads        = counter("weir_io_reads_total", "Read operations that the kernel has charged to the cgroup.", cgroupLabel, deviceLabel)
	writes       = counter("weir_io_writes_total", "Write operations that the kernel has charged to the cgroup.", cgroupLabel, deviceLabel)

	limitReadBytes    = gauge("weir_io_limit_read_bytes_per_second", "The cgroup's own limit on bytes read. Absent: it has none.", cgroupLabel, deviceLabel)
	limitWrittenBytes = gauge("weir_io_limit_written_bytes_per_second", "The cgroup's own limit on bytes written. Absent: it has none.", cgroupLabel, deviceLabel)
	limitReads        = gauge("weir_io_limit_reads_per_second", "The cgroup's own limit on read operations. Absent: it has none.", cgroupLabel, deviceLabel)
	limitWrites       = gauge("weir_io_limit_writes_per_second", "The cgroup's own limit on write operations. Absent: it has none.", cgroupLabel, deviceLabel)

	limitExpected = gauge("weir_io_limit_expected_held", "1 if the cgroup's limits on the device are expected to hold all I/O in the direction, 0 if not. Absent: there is no limit, or it is not known.",
		cgroupLabel, deviceLabel, directionLabel)

	limitHeld = gauge("weir_io_limit_held", "1 if the cgroup's limits on the device in the direction were held when they were last measured, 0 if one was not. Absent: none was measured in the last 5 minutes.",
		cgroupLabel, deviceLabel, directionLabel)

	escaped = counter("weir_io_escaped_bytes_total", "Bytes that the cgroup wrote to files that the kernel charges to other cgroups, as weir's pacer sees them by BPF. Absent: none, or it cannot see them.", cgroupLabel, deviceLabel)
	// weir's pacer cannot tell devices apart.
	throttled = counter("weir_io_throttled_seconds_total", "Time for which weir's pacer has paused the cgroup to hold its limit. Absent: the pacer does not hold it.", cgroupLabel)

	waiting = counter("weir_io_pressure_waiting_seconds_total", "Time in which at least one task of the cgroup waited for I/O (io.pressure, some; cgroup v2).", cgroupLabel)
	stalled = counter("weir_io_pressure_stalled_seconds_total", "Time in which all tasks of the cgroup waited for I/O (io.pressure, full; cgroup v2).", cgroupLabel)

	dirty     = gauge("weir_group_dirty_bytes", "Dirty page cache of the cgroup, including pages under writeback.", cgroupLabel)
	writeback = gauge("weir_group_writeback_bytes", "Page cache of the cgroup under writeback.", cgroupLabel)
	paced     = gauge("weir_group_paced_bytes_per_second", "The rate at which weir's pacer holds the cgroup's writes. Absent: it does not.", cgroupLabel)
	info      = gauge("weir_group_info", "1 for each cgroup that other metrics have, with its name and who made it. namespace and pod: of the Kubernetes pod that it is, or that it is a container of. container: the name of a running container in its pod. plan: the plan that is for it.", cgroupLabel, "target", "owner", "namespace", "pod", "container", planLabel)

	quotaUsedBytes  = gauge("weir_quota_used_bytes", "What the project stores on the file system.", mountLabel, projectLabel, targetLabel)
	quotaLimitBytes = gauge("weir_quota_limit_bytes", "What it may store. Absent: there is no limit.", mountLabel, projectLabel, targetLabel)
	quotaUsedFiles  = gauge("weir_quota_used_files", "How many files and directories the project has on the file system.", mountLabel, projectLabel, targetLabel)
	quotaLimitFiles = gauge("weir_quota_limit_files", "How many it may have. Absent: there is no limit.", mountLabel, projectLabel, targetLabel)

	watched    = gauge("weir_agent_groups", "Cgroups that weird watches, with those that have no I/O and no limit.")
	unreadable = gauge("weir_agent_unreadable_groups", "Cgroups and devices that weird could not read at the last scrape, or could not tell apart by name.")
	applied    = Metric{"weir_agent_apply_seconds", "How long weird run took to set the limits of a target. Absent, as all that weird run counts: it does not run.", dto.MetricType_HISTOGRAM, nil}
	drifts     = counter("weir_agent_drifts_total", "How often something else has changed limits that weird run keeps.")
	repaired   = counter("weir_agent_drift_repaired_total", "How often weird run has set them again.")
	failures   = counter("weir_agent_failures_total", "Attempts of weird run to set limits that failed.")
	missed     = counter("weir_agent_missed_events_total", "Changes that no event told weird run of, and that it found later by a comparison.")
	build      = gauge("weir_agent_build_info", "1, with the version of weird and of the Go that it was built with.", "version", "goversion")
)

// All lists every metric.
func All() []Metric {
	return []Metric{readBytes, writtenBytes, reads, writes, limitReadBytes, limitWrittenBytes, limitReads, limitWrites, limitExpected, limitHeld, escaped, throttled,
		waiting, stalled, dirty, writeback, paced, info, quotaUsedBytes, quotaLimitBytes, quotaUsedFiles, quotaLimitFiles, watched, unreadable, applied, drifts, repaired, failures, missed, build}
}
