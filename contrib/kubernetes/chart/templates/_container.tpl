{{- define "weir.securityContext" -}}
# Root: the files of cgroups are root's, and Kubernetes gives capabilities to root alone.
runAsUser: 0
runAsGroup: 0
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
# A profile of the runtime keeps weir from looking at other containers' processes.
appArmorProfile: {type: Unconfined}
capabilities:
  drop: [ALL]
  add:
    - SYS_ADMIN # enter the cgroup namespace of process 1; be obeyed by systemd
    - SYS_PTRACE # look through /proc/PID at the mounts, files and I/O of other users' processes
    - DAC_OVERRIDE # write the limits of groups that belong to other users
    - DAC_READ_SEARCH # find the files of containers in directories of other users
    - SYS_RESOURCE # more open files, and more memory for BPF maps on kernels before 5.11
    - SYS_NICE # weir's pacer, and what limits newborn containers, run in real time
    - KILL # send signals to processes that the pacer has paused
    - BPF # count writes to files that the kernel charges to another group
    - PERFMON # the same, and weir trace
{{- end }}

{{- define "weir.volumeMounts" -}}
# The limits are files of the host's cgroups.
- {name: cgroup, mountPath: /sys/fs/cgroup}
# Locks, the pacer's socket, and records until the next boot: shared with weir on the host.
- {name: run, mountPath: /run/weir}
# What weir has put into force, so that it takes away that and nothing else.
- {name: lib, mountPath: /var/lib/weir}
# The runtime's socket, for the list of pods. HostToContainer: a container's file system that is
# unmounted on the host must not stay mounted here.
- {name: runtime, mountPath: {{ dir .Values.runtime.socket | quote }}, mountPropagation: HostToContainer}
{{- if .Values.systemd.enabled }}
# systemd's socket, and the files in which it keeps limits.
- {name: systemd, mountPath: /run/systemd, mountPropagation: HostToContainer}
{{- end }}
{{- end }}
