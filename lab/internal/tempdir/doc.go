// Package tempdir makes folders that do not outlive their owner for long: one whose
// owner was killed is removed when the next of its kind is made. An owner is told
// to be alive by its lock on the folder, which the kernel takes away with the process.
package tempdir
