// Package guest has the words that the lab's lanes share: a Guest is one row of
// the matrix, a Job is what it runs, a Result is what came back. A lane (UML,
// QEMU, the full system, this host itself) is a package that makes Guests.
package guest

import (
	"context"
	"time"
)

// A Guest boots, runs a job, and ends.
type Guest interface {
	// Name is unique in the matrix and fit for a folder: "uml-6.1-v2".
	Name() string
	// Run boots the guest and runs the job. The error is about the guest (it did
	// not boot, hung, or lost its results); failed tests are in the result. What
	// a broken guest did run is in the result all the same.
	Run(ctx context.Context, job Job) (Result, error)
}

// A Job is the same for each guest of a run, except for Short, Only, Dir and CPU.
type Job struct {
	Payload string        // tar with weir, the test binaries and job.json (package payload)
	Suites  []Suite       // what the payload holds
	Weir    string        // the binary, on the host
	Run     string        // go test's -run; empty for all
	Short   bool          // go test's -short: for guests that differ from others in little
	Only    []string      // requirements of package lab: tests that ask for less are skipped
	Dir     string        // existing folder for the guest's console and results
	Temp    string        // existing folder for what nobody looks at later, such as disks
	Timeout time.Duration // of the whole guest, booting included
	Slow    float64       // how much longer than others this machine takes (package calibrate)
	Piece   time.Duration // of computing takes on this machine, undisturbed (package calibrate)
	CPU     int           // the processor that the guest runs on, or process.Spare or All
	Log     func(line string)
}

// A Suite is one test binary.
type Suite struct {
	Package string `json:"package"` // import path
	Name    string `json:"name"`    // folder in the payload, unique
	Beside  bool   `json:"beside"`  // keeps to its own disks and groups: others may run meanwhile
	Binary  string `json:"-"`       // on the host
	Dir     string `json:"-"`       // the package's folder on the host, for testdata
}

// A Result is what a guest brought back.
type Result struct {
	Outputs []Output
	Boot    time.Duration // until the guest's first test binary; 0 when not known
	Total   time.Duration
	Busy    time.Duration // of a processor, by the guest and all that ran in it; 0 when not known
}

// An Output is what one test binary printed with -test.v=test2json.
type Output struct {
	Package string
	Log     []byte
	Exit    int     // exit status; -1 when it was killed
	Seconds float64 // how long it ran
	Ended   bool    // false: the guest died before it did
}
