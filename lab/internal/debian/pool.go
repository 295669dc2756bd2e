package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	// downloadMax bounds one download: 120 MB, a kernel, on a slow line.
	downloadMax = 20 * time.Minute
	// unusedMax is how long a package stays in the pool after its last use.
	unusedMax = 60 * 24 * time.Hour
)

// pool holds the packages of all suites, each as SHA256.deb.
func (a *Archive) pool() string { return filepath.Join(a.dir, "pool") }

// prune removes what nothing asked for in a long time: versions come and go
// weekly in the newest suites.
func (a *Archive) prune() error {
	entries, err := os.ReadDir(a.pool())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if time.Since(info.ModTime()) > unusedMax {
			if err := os.RemoveAll(filepath.Join(a.pool(), entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// deb returns rec's file from the pool, downloading it if it is not there or is
// not what the index says it should be.
func (s *suite) deb(ctx context.Context, rec record) (Package, error) {
	path := filepath.Join(s.archive.pool(), rec.sha256+".deb")
	p := Package{Name: rec.name, Version: rec.version, Suite: s.name, DebPath: path, SHA256: rec.sha256}
	if sum, err := fileSHA256(path); err == nil && sum == rec.sha256 {
		now := time.Now()
		return p, os.Chtimes(path, now, now)
	}
	if err := s.download(ctx, rec, path); err != nil {
		return Package{}, err
	}
	return p, nil
}

func (s *suite) download(ctx context.Context, rec record, path string) error {
	ctx, cancel := context.WithTimeout(ctx, downloadMax)
	defer cancel()
	dir, err := os.MkdirTemp(s.archive.pool(), "download")
	if err != nil {
		return fmt.Errorf("download: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := s.apt(ctx, dir, "apt-get", "download", rec.name+"="+rec.version); err != nil {
		return err
	}
	got, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(got) != 1 {
		return fmt.Errorf("download %s: %d files came (%v)", rec.name, len(got), err)
	}
	sum, err := fileSHA256(got[0])
	if err != nil {
		return fmt.Errorf("download %s: %w", rec.name, err)
	}
	if sum != rec.sha256 {
		return fmt.Errorf("download %s: SHA-256 is %s, the index says %s", rec.name, sum, rec.sha256)
	}
	return os.Rename(got[0], path)
}

func fileSHA256(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
