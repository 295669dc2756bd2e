// Package pagecache takes single files out of the page cache, and says what of a file
// is in it: posix_fadvise(2) POSIX_FADV_DONTNEED, cachestat(2) (kernel 6.5 and later)
// and mincore(2) where that is missing.
//
// It never empties the host's caches: what is not the file's stays, and so do pages
// that the kernel will not give up, such as those that a process has mapped.
package pagecache
