package tracer

// A wait is why a task sleeps, recognized by a function that it sleeps in. The order is that of
// enum wait in bpf/trace.h; if several are on a stack, the first counts.
type wait int

const (
	waitFrozen wait = iota
	waitMemcg
	waitReclaim
	waitDirty
	waitJournal
	waitQueue
	waitIO
	waitSyscall
	waitExit
	waitRelease // no wait: blk-throttle's thread lets go what it has held
	waitLoop    // no wait: a thread of the kernel does a loop device's I/O to its file
	waitBack    // no wait: on the way back to the task's own code
	waits
)

// waitFunctions are functions of the kernel, by their names in Linux 5.10 to 7.3. If a kernel
// does not have one, or has inlined it, another function on the stack is recognized. Suffixes
// that compilers add (.isra.0, .constprop.0, .cold) are ignored.
var waitFunctions = [waits][]string{
	// cgroup v2's freezer and SIGSTOP hold a task in get_signal (do_freezer_trap is inlined
	// into it), v1's freezer in __refrigerator (kernel/freezer.c).
	waitFrozen: {"__refrigerator", "do_freezer_trap", "get_signal"},
	// memory.high makes a task sleep on its way back to user space, or at once if a charge far
	// exceeds it (mm/memcontrol.c).
	waitMemcg:   {"mem_cgroup_handle_over_high", "__mem_cgroup_handle_over_high", "try_to_free_mem_cgroup_pages", "mem_cgroup_oom_synchronize"},
	waitReclaim: {"try_to_free_pages", "__alloc_pages_slowpath", "__alloc_pages_direct_reclaim", "throttle_direct_reclaim", "congestion_wait"},
	waitDirty:   {"balance_dirty_pages", "balance_dirty_pages_ratelimited", "balance_dirty_pages_ratelimited_flags"},
	waitJournal: {
		// fs/jbd2
		"jbd2_log_wait_commit", "jbd2_complete_transaction", "__jbd2_log_wait_for_space", "jbd2_log_do_checkpoint",
		"wait_transaction_locked", "wait_transaction_switching", "add_transaction_credits", "start_this_handle",
		"do_get_write_access", "jbd2_journal_get_write_access", "jbd2_journal_lock_updates", "jbd2_journal_flush",
		"jbd2_fc_begin_commit", "jbd2_fc_wait_bufs", "ext4_fc_commit", "jbd2_journal_commit_transaction",
		// fs/xfs
		"xlog_grant_head_wait", "xlog_grant_head_check", "xlog_wait_on_iclog", "xlog_state_get_iclog_space", "xlog_force_lsn",
		"xfs_log_force", "xfs_log_force_lsn", "xfs_log_force_seq", "xlog_cil_force_seq", "xlog_cil_push_now", "xfs_buf_lock",
		// fs/btrfs
		"btrfs_sync_log", "btrfs_commit_transaction", "wait_current_trans", "wait_for_commit", "btrfs_tree_lock", "btrfs_tree_read_lock",
		// kernel/locking
		"rwsem_down_read_slowpath", "rwsem_down_write_slowpath", "__mutex_lock", "__mutex_lock_slowpath", "percpu_rwsem_wait",
		"__percpu_down_read", "__down_common", "rwbase_read_lock", "rwbase_write_lock",
	},
	waitQueue: {"blk_mq_get_tag", "rq_qos_wait", "wbt_wait", "__rq_qos_throttle", "rq_qos_throttle", "blk_queue_enter", "__bio_queue_enter",
		"blkcg_maybe_throttle_current", "__blkcg_maybe_throttle_current", "blk_mq_freeze_queue_wait"},
	waitIO: {"io_schedule", "io_schedule_timeout", "blk_io_schedule", "folio_wait_bit_common", "wait_on_page_bit_common", "submit_bio_wait", "bio_await",
		"__iomap_dio_rw", "iomap_dio_rw", "do_blockdev_direct_IO", "__blkdev_direct_IO_simple", "__wait_on_buffer", "inode_dio_wait",
		"wait_on_page_writeback", "folio_wait_writeback", "xfs_buf_iowait", "blkdev_issue_flush", "wb_wait_for_completion", "sync_inodes_sb",
		"btrfs_start_ordered_extent", "btrfs_start_ordered_extent_nowriteback", "btrfs_wait_ordered_range", "submit_bio_noacct_nocheck"},
	// do_syscall_64 leaves the way back to the second one, and the stack, in 5.10.
	waitSyscall: {"do_syscall_64", "syscall_exit_to_user_mode", "do_int80_syscall_32", "do_fast_syscall_32", "el0_svc", "el0_svc_common"},
	waitExit:    {"do_exit", "do_group_exit"},
	waitRelease: {"blk_throtl_dispatch_work_fn"},
	waitLoop:    {"loop_workfn", "loop_rootcg_workfn", "loop_process_work", "loop_queue_work", "lo_rw_aio"},
	// Nothing else calls them (include/linux/resume_user_mode.h).
	waitBack: {"mem_cgroup_handle_over_high", "__mem_cgroup_handle_over_high"},
}
