// Package cache keeps what the lab builds outside the source tree. An entry is a
// folder whose name has the hash of its recipe; a changed recipe is another
// entry. An entry is checked against the hash of its files when it is used and they have
// changed since it was last checked, or the machine has booted. It is built again when they differ.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unusedFor is how long an entry stays that nobody uses.
const unusedFor = 14 * 24 * time.Hour

// Cache is a folder of entries.
type Cache struct {
	dir string
}

// Dir is $XDG_CACHE_HOME/weir-lab, or ~/.cache/weir-lab.
func Dir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache: %w", err)
	}
	return filepath.Join(base, "weir-lab"), nil
}

// Open makes the folder if need be, and removes entries that nobody used for long.
func Open(dir string) (*Cache, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open cache: %w", err)
	}
	c := &Cache{dir: dir}
	if err := c.prune(time.Now()); err != nil {
		return nil, fmt.Errorf("open cache %s: %w", dir, err)
	}
	return c, nil
}

// Hash is the name of a recipe: of all that decides what is built.
func Hash(recipe []string) string {
	h := sha256.New()
	for _, line := range recipe {
		_, _ = fmt.Fprintf(h, "%d:%s\n", len(line), line) // the length keeps ["a","b"] from being ["a\nb"]
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// sumFile, beside an entry's folder, holds the hash of its files.
const sumFile = ".sum"

// Get gives the folder of the entry for a recipe, built if need be by build,
// which fills an empty folder. Several processes may ask at once; one builds.
func (c *Cache) Get(ctx context.Context, name string, recipe []string, build func(ctx context.Context, dir string) error) (string, error) {
	dir := filepath.Join(c.dir, name+"-"+Hash(recipe))
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("get %s from cache: %w", name, err)
	}
	defer unlock()
	if good(dir) {
		now := time.Now()
		if err := os.Chtimes(dir, now, now); err != nil {
			return "", fmt.Errorf("get %s from cache: %w", name, err)
		}
		return dir, nil
	}
	if err := c.make(ctx, dir, build); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return dir, nil
}

func (c *Cache) make(ctx context.Context, dir string, build func(ctx context.Context, dir string) error) error {
	temp, err := os.MkdirTemp(c.dir, ".build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	if err := build(ctx, temp); err != nil {
		return err
	}
	sum, err := sumTree(temp)
	if err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(dir), os.Chmod(temp, 0o755), os.Rename(temp, dir)); err != nil {
		return err
	}
	return os.WriteFile(dir+sumFile, []byte(sum), 0o644)
}

func good(dir string) bool {
	want, err := os.ReadFile(dir + sumFile)
	if err != nil {
		return false
	}
	now, err := look(dir)
	if err != nil {
		return false
	}
	if seen, err := os.ReadFile(dir + seenFile); err == nil && now != "" && string(seen) == string(want)+" "+now {
		return true
	}
	have, err := sumTree(dir)
	if err != nil || have != string(want) {
		slog.Warn("cache entry is damaged, and built again", "entry", dir)
		return false
	}
	if now != "" {
		if err := os.WriteFile(dir+seenFile, []byte(string(want)+" "+now), 0o644); err != nil {
			slog.Warn("cache entry will be read again", "entry", dir, "error", err)
		}
	}
	return true
}

func sumTree(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s\x00%v\x00", name, d.Type())
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(h, f)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func (c *Cache) prune(now time.Time) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(c.dir, e.Name())
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < unusedFor {
			continue
		}
		if _, err := os.Stat(path + sumFile); err != nil && !strings.HasPrefix(e.Name(), ".build-") {
			continue // not an entry of ours
		}
		if err := errors.Join(os.RemoveAll(path), os.RemoveAll(path+sumFile), os.RemoveAll(path+seenFile), os.RemoveAll(path+".lock")); err != nil {
			return err
		}
	}
	return nil
}

// lock takes an exclusive flock(2), trying again until the context ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
