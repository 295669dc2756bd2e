// Package quota_test measures what weir's quotas hold on XFS and ext4, and kills weir while
// it sets them. Cgroups and systemd play no part in that: each kernel has them in one guest.
package quota_test
