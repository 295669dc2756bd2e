package planfile

import (
	"errors"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/plans"
)

// Answer is the helper: it answers questions with Read. Package planned asks it.
func Answer(name string, with []byte) (any, error) {
	if name != plans.ReadFiles {
		return nil, helper.Unknown(name)
	}
	var files []plans.File
	if err := helper.Unpack(with, &files); err != nil {
		return nil, err
	}
	config, err := Read(files)
	return plans.Answer{Config: config, Refusals: refusalsOf(err)}, nil
}

// refusalsOf are those that an error of Read is made of.
func refusalsOf(err error) []plans.Refusal {
	var one *plans.Refusal
	switch all := err.(type) {
	case nil:
		return nil
	case interface{ Unwrap() []error }:
		var list []plans.Refusal
		for _, err := range all.Unwrap() {
			list = append(list, refusalsOf(err)...)
		}
		return list
	default:
		if errors.As(err, &one) {
			return []plans.Refusal{*one}
		}
		return []plans.Refusal{{Text: err.Error()}}
	}
}
