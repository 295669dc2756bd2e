package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/durable"
	"github.com/weir-io/weir/internal/plain"
	"github.com/weir-io/weir/internal/systemd"
)

// unitDir is where weir puts units of its own.
const unitDir = "/etc/systemd/system/"

// installUnits writes weir's units, and makes systemd start them at boot.
func (a *app) installUnits(ctx context.Context, feature string, texts map[string]string) error {
	if err := a.mayHaveUnits(feature); err != nil {
		return err
	}
	if err := writeUnits(feature, texts); err != nil {
		return err
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Reload(ctx); err != nil {
		return err
	}
	return conn.Enable(ctx, true, slices.Sorted(maps.Keys(texts))...)
}

// mayHaveUnits returns an error if systemd, which a feature needs, does not run.
func (a *app) mayHaveUnits(feature string) error {
	if a.root == "/" && systemd.Running("/") {
		return nil
	}
	verb, _, _ := strings.Cut(feature, " --at-boot")
	return &cgroupfs.Unsupported{Feature: feature, Reason: "systemd does not run here", Remedy: "have what starts this host call weir " + verb}
}

func writeUnits(feature string, texts map[string]string) error {
	for name, text := range texts {
		if err := plain.Unit(text); err != nil {
			return fmt.Errorf("%s: %s: %w", feature, name, err)
		}
		if err := durable.Replace(unitDir+name, unitDir+name+".new", text, 0o644); err != nil {
			return fmt.Errorf("%s: %w", feature, err)
		}
	}
	return nil
}

// removeUnits removes weir's units from systemd.
func (a *app) removeUnits(ctx context.Context, feature string, names ...string) error {
	if err := a.mayHaveUnits(feature); err != nil {
		return err
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Enable(ctx, false, names...); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(unitDir + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", feature, err)
		}
	}
	return conn.Reload(ctx)
}

// ownPath is the path of this weir, for systemd to run.
func ownPath() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find weir itself: %w", err)
	}
	return program, plain.Value("the path of weir itself", program)
}
