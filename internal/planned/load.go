package planned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/plans"
)

// Dir is where plans are, below the host's root.
const Dir = "/etc/weir/plans.d"

// Load reads the configuration of a host: a file, or the files of a directory that end in .yaml or
// .yml, in the order of their names, without hidden ones. An empty path is Dir below root, which need
// not be there. The errors are the reader's, and of files that cannot be read.
func Load(root, path string, read plans.Reader) (*plans.Config, error) {
	c, err := load(root, path, read)
	var away *awayError
	if path == "" && errors.As(err, &away) {
		return none(), nil
	}
	return c, err
}

// LoadNewer is Load where plans of files are in force. The usual directory has to be there, too: who
// exchanges it may take the old one away before the new one is there. One that is empty has no plans.
func LoadNewer(root, path string, read plans.Reader) (*plans.Config, error) {
	c, err := load(root, path, read)
	var away *awayError
	if path == "" && errors.As(err, &away) {
		err = fmt.Errorf("%w; put it back, or make it an empty directory to have no plans", err)
	}
	return c, err
}

// An awayError says that what has the plans is not there.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

func load(root, path string, read plans.Reader) (*plans.Config, error) {
	if path == "" {
		path = filepath.Join(root, Dir)
	}
	names, err := filesOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = &awayError{err}
	}
	if err != nil {
		return nil, fmt.Errorf("read plans: %w", err)
	}
	var files []plans.File
	for _, name := range names[:min(len(names), plans.FilesMax+1)] { // the reader refuses one too many
		text, err := peek.Regular(name, plans.FileBytesMax) // which waits for no pipe, and opens no device
		if err != nil {
			return nil, fmt.Errorf("read plans: %w", err)
		}
		files = append(files, plans.File{Name: name, Text: text})
	}
	if len(files) == 0 {
		return none(), nil
	}
	return read(files)
}

// none is the configuration of no files.
func none() *plans.Config { return &plans.Config{Default: plans.None} }

// ByHelper makes a plans.Reader for programs that do not link package planfile: it has a helper
// read the files.
func ByHelper(helpers helper.Starter) plans.Reader {
	return func(files []plans.File) (*plans.Config, error) {
		h, err := helpers.Start(plans.HelperArg)
		if err != nil {
			return nil, fmt.Errorf("read plans: %w", err)
		}
		defer h.Close()
		var a plans.Answer
		if err := h.Ask(context.Background(), plans.ReadFiles, files, &a); err != nil {
			return nil, fmt.Errorf("read plans: %w", err)
		}
		return a.Result()
	}
}

func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	var names []string
	for _, e := range entries {
		if IsFile(e.Name()) {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	return names, err
}

// IsFile reports whether a file of a directory has plans, by its name. A hidden one is an editor's own, such as the dangling
// link by which Emacs locks a file.
func IsFile(name string) bool {
	return !strings.HasPrefix(name, ".") && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}
