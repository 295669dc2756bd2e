package cli

import "github.com/weir-io/weir/internal/base/cmdline"

// Quote spells a word for a shell to read.
func Quote(word string) string { return cmdline.Quote(word) }
