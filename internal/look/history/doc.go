// Package history keeps what package watch saw, in files of a fixed size, and reads it back.
//
// There is a file for each Level: one point a second, every ten seconds and every minute. A file
// is a ring of blocks. A block explains itself: it defines each series (a group, a device of a
// group, a disk) before the first value of it, so that the loss of one block loses no other. A
// record is a frame, which is what happened up to one time, and has a checksum over itself and the
// number of its block's round. So what a crash has torn, and what is left of a former round, is
// no record, and nothing has to be cleared before a block is used again.
//
// One program writes. Others may read meanwhile, without a lock: a record that is just being
// written, or a block that is just being used again, ends what they read of that block.
//
// So no log is replayed either. Files are as large from the start as they will ever be.
package history
