// Package pacer holds the buffered writes of groups where the kernel does not: on cgroup v1, on
// file systems without cgroup writeback, and in files of other groups. It pauses the groups'
// processes.
//
// The kernel counts for each process how many bytes it dirtied (write_bytes of /proc/PID/io).
// The pacer resumes a group's processes for a moment, pauses them, counts what they wrote, and
// leaves them paused until the average is back at the limit. It runs on a real-time thread where
// that is allowed. The kernel's own rule holds direct and synchronous writes; the pacer does not
// count them again.
//
// A pause stops the whole group, its computing too. No process is paused in the middle of a
// system call: a single write(2) completes, and the group is paused for all of it afterwards.
//
// # One process
//
// One pacer (weir __pacer) paces all groups. The first group that needs it starts it, and it exits
// two seconds after the last. The pacer and its guards leave their starter's groups, because a
// pacer must not pause itself.
//
// The pacer is one goroutine, and answers all requests in it. Go passes work between goroutines
// through threads that have no real-time priority, and on a busy machine the pacer was up to 33 ms
// late. To load BPF programs takes 50 to 95 ms of a processor, so another process does it (weir
// __escapes, weir __partial): it hands over the descriptors of maps and hooks, and ends. Only who
// needs the programs waits for them: a request gets its answer later, and a group with writes in
// doubt stays paused, for half a second at most.
//
// The process becomes weird, which links what uses BPF programs. Without weird beside weir it stays
// weir: it counts folios whole, and refuses to count escapes. Whoever starts a pacer looks after it
// until it answers: what hangs or ends at once is no pacer, and weir says so.
//
// The pacer has two guards (weir __guard), each at the end of a pipe from it. A guard knows each
// cell before the cell is paused for the first time. When the pipe closes, or is silent for 0.7 s,
// a guard resumes all processes. It ends a pacer that is silent for 3.2 s and has paused somebody,
// or is stopped itself. Once the pipe is closed
// and any group is on record, a guard starts another pacer, which takes the records over. If all
// three are killed at once, the next weir does that.
//
// A job names the files in which systemd keeps the unit's limit (KeptIn, v2). If the unit's group
// goes while one of them exists, the job waits: its record has the reason as "lapsed", and nothing
// reports the group as held. inotify on the directory above tells of the next group of that name,
// which the pacer holds at the rate of its rule. A group that has no rule two seconds later is not
// held, and the job ends.
//
// # What counts
//
// On v1, a byte is paid for once: by a pause when it is dirtied, or in the kernel's throttle when
// it is charged (ledger). Charged bytes take what the bucket has, and pause nobody. If the group's
// own fsync is charged for bytes that a pause has paid for, the pacer lends them (loan): under the
// group's lock it raises the rule by 2^46 for 25 ms and keeps the group paused meanwhile. The
// kernel then dispatches all that waits. While a process of the group is in the kernel still, the
// loan goes on, for a fifth of what it saves at most. A loan that fails is tried again. A guard
// ends a loan if the pacer dies, and so does the next weir: the raised rule says what it was. For a
// second after a loan all writes count, because the throttle begins anew with each change of a rule.
//
// On v2, where the kernel charges writeback too, all bytes count. If the kernel's rules hold a
// group, the pacer does not pause it until a write escapes the rules (CountEscaped). Then escaped
// bytes and charged bytes take from one bucket.
//
// write_bytes counts a whole folio when it becomes dirty (package partial). If it is ahead of what
// a group's calls have written by a tenth of a second of its limit (256 KiB to 4 MiB), or as far
// behind it, the pacer loads BPF programs and counts blocks from then on. What it had counted
// before is taken back. Calls that write the rest of these folios count at once. What is still in
// doubt is counted by the share of blocks that the pacer sees next. Without BPF folios count whole.
// In files of other groups on v2, all that escapes is in doubt at first, so the programs are loaded
// beside the watcher of such writes.
//
// Where the machine has a second processor, the pacer does not sleep when the group writes its
// share in less than 0.4 ms: it watches the writer's counter, and pauses the group while that
// moves.
//
// # Cells
//
// weir pauses processes in cells: on v1 in the freezer's hierarchy, on v2 right below the group
// that they are in. There a cell has no controllers, and the kernel goes on charging the group
// above. weir never writes the freezer file of a group that it did not make. So only an owner
// undoes an owner's pause, and docker exec works in a paced group. Processes that write nothing because
// their owner has paused them are not idle: the pacer keeps them paused too, and so does not miss what
// they write when the owner resumes them.
//
// inotify on the lists of processes tells the pacer who joins a group. The pacer counts their
// writes at once, and moves them into a cell. That takes 0.06 to 0.4 ms after their own move, or 7
// to 95 ms if the machine has moved no process lately (Linux 6.18). Newcomers are looked at after
// 60 µs at first. For two seconds after one has come, the kernel tells what processes have done by
// their end (taskstats), so that who writes and ends between two looks is counted.
//
// A read that is interrupted by a pause can return less; a write to a file does not. A paused
// process with a pending signal leaves its cell, alone, until it has taken the signal, and for two
// seconds now and then if the signal is one that has programs end. If it ends another one by a
// signal, both go on. Its parent is resumed to take note of its end. SIGCHLD is a signal that has
// programs end only while others of the group are being ended: a shell gets it after each of its
// commands. If a process is alone in the group, or its threads are in several groups, all go
// on with it. A blocked signal counts, because the process may be about to wait for it. The pacer
// adds what is written meanwhile to the group's debt.
//
// An empty group (weir-pacer) is frozen as long as the pacer runs. That makes pausing others six
// times as fast, because the kernel patches its code for the first frozen group.
package pacer
