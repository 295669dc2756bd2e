package keep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
)

// UnitDir is where weir puts units of its own.
const UnitDir = "/etc/systemd/system/"

// RestoreUnit sets kept limits when the host, or what makes containers, has started.
const RestoreUnit = "weir-restore.service"

// A Boot is weir's own units, which do something when the host starts.
type Boot struct {
	Root    string // of the host: a copy's systemd does not run here
	Feature string // what they are for, as errors begin with it
	Instead string // what to do where systemd does not run
}

// Install writes units by their names and texts, and has systemd start them at boot.
func (b Boot) Install(ctx context.Context, texts map[string]string) error {
	if err := b.possible(); err != nil {
		return err
	}
	return b.reload(ctx, texts, func(conn *systemd.Conn) error {
		return conn.Enable(ctx, true, slices.Sorted(maps.Keys(texts))...)
	})
}

// Rewrite gives units that are installed other texts.
func (b Boot) Rewrite(ctx context.Context, texts map[string]string) error {
	return b.reload(ctx, texts, func(*systemd.Conn) error { return nil })
}

// reload writes units, has systemd read them, and goes on from there.
func (b Boot) reload(ctx context.Context, texts map[string]string, then func(*systemd.Conn) error) error {
	if err := b.write(texts); err != nil {
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
	return then(conn)
}

// possible returns an error if systemd does not run here.
func (b Boot) possible() error {
	if b.Root == "/" && systemd.Running(b.Root) {
		return nil
	}
	return &fault.Unsupported{Feature: b.Feature, Reason: "systemd does not run here", Remedy: b.Instead}
}

func (b Boot) write(texts map[string]string) error {
	for name, text := range texts {
		if err := plain.Unit(text); err != nil {
			return fmt.Errorf("%s: %s: %w", b.Feature, name, err)
		}
		if err := durable.Replace(UnitDir+name, UnitDir+name+".new", text, 0o644); err != nil {
			return fmt.Errorf("%s: %w", b.Feature, err)
		}
	}
	return nil
}

// Remove removes units.
func (b Boot) Remove(ctx context.Context, names ...string) error {
	if err := b.possible(); err != nil {
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
		if err := os.Remove(UnitDir + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", b.Feature, err)
		}
	}
	return conn.Reload(ctx)
}
