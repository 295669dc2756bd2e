// Package quota_test measures what weir's quotas hold on XFS and ext4, and kills weir while
// it sets them.
package quota_test
