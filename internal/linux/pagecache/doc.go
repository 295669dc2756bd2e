// Package pagecache drops single files from the page cache, and says how much of a file is in
// it: posix_fadvise(2) POSIX_FADV_DONTNEED, cachestat(2) (kernel 6.5 and later) and mincore(2)
// on older kernels.
//
// It never drops the host's caches: pages of other files stay, and so do pages that the kernel
// does not drop, such as those that a process has mapped.
package pagecache
