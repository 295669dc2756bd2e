package plans

import "errors"

// HelperArg is the role of a helper that reads files with package planfile, and ReadFiles is the
// question: a list of File.
const (
	HelperArg = "__plans"
	ReadFiles = "read"
)

// An Answer is the helper's: a configuration, or what is wrong with the files.
type Answer struct {
	Config   *Config
	Refusals []Refusal
}

// Result is the answer as a Reader has it.
func (a Answer) Result() (*Config, error) {
	if len(a.Refusals) == 0 {
		return a.Config, nil
	}
	var errs []error
	for i := range a.Refusals {
		errs = append(errs, &a.Refusals[i])
	}
	return nil, errors.Join(errs...)
}
