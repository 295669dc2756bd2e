package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/cpu"

	"github.com/weir-io/weir/lab/internal/build"
	"github.com/weir-io/weir/lab/internal/cache"
	"github.com/weir-io/weir/lab/internal/campaign"
	"github.com/weir-io/weir/lab/internal/debian"
	"github.com/weir-io/weir/lab/internal/fullguest"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/kernel"
	"github.com/weir-io/weir/lab/internal/matrix"
	"github.com/weir-io/weir/lab/internal/native"
	"github.com/weir-io/weir/lab/internal/small"
)

// lanes makes guests. Two rows with one kernel share its image.
type lanes struct {
	archive *debian.Archive
	cache   *cache.Cache
	builds  *build.Builds // compiled by the time that guests are made
	temp    string
	memory  int // of small guests, in MiB

	full sync.Mutex // one system at a time, and no small guest waits for it
	mu   sync.Mutex
	made map[string]small.Image // by kind and version as asked for
}

// newLanes uses the folder temp to build in.
func newLanes(cacheDir string, builds *build.Builds, temp string, memory int) (*lanes, error) {
	store, err := cache.Open(filepath.Join(cacheDir, "built"))
	if err != nil {
		return nil, err
	}
	archive, err := debian.Open(filepath.Join(cacheDir, "debian"))
	if err != nil {
		return nil, err
	}
	return &lanes{archive: archive, cache: store, builds: builds, temp: temp, memory: memory, made: make(map[string]small.Image)}, nil
}

func (l *lanes) makers() map[string]campaign.Maker {
	return map[string]campaign.Maker{
		matrix.UML:      l.small(kernel.UML),
		matrix.QEMU:     l.small(kernel.Cloud),
		matrix.Full:     l.fullGuest(kernel.UML),
		matrix.FullQEMU: l.fullGuest(kernel.Cloud),
		matrix.Native: func(context.Context, matrix.Row) (guest.Guest, error) {
			return native.Host{}, nil
		},
	}
}

// rows selects rows whose lane there is a maker for.
func (l *lanes) rows(ctx context.Context, f matrix.Filter) ([]matrix.Row, error) {
	newest := map[kernel.Kind]string{}
	if f.Kernel != "" && f.Kernel != kernel.Newest {
		for _, kind := range []kernel.Kind{kernel.UML, kernel.Cloud} {
			version, err := kernel.NewestVersion(ctx, l.archive, kind)
			if err != nil {
				return nil, err
			}
			newest[kind] = version
		}
	}
	selected, err := matrix.Select(f, slices.Collect(maps.Values(newest))...)
	if err != nil {
		return nil, err
	}
	makers := l.makers()
	var rows []matrix.Row
	for _, r := range selected {
		other := r.Kernel == kernel.Newest && len(newest) > 0 && newest[kindOf(r.Lane)] != f.Kernel
		if _, ok := makers[r.Lane]; ok && !other {
			rows = append(rows, r)
		}
	}
	if cpu.X86.HasAMXTile {
		return withWideRegisters(rows, f.Kernel != "")
	}
	return rows, nil
}

// withWideRegisters says what a processor with AMX does not run.
func withWideRegisters(rows []matrix.Row, asked bool) ([]matrix.Row, error) {
	run, changed := matrix.WithWideRegisters(rows, asked)
	if len(run) == 0 && changed {
		return nil, errors.New("select guests: user-mode Linux before 7.2 does not run on this processor, which has AMX; choose -lane qemu, or the newest kernel")
	}
	if changed {
		fmt.Fprintln(os.Stderr, "lab: user-mode Linux before 7.2 does not run on this processor, which has AMX: the newest kernel, or an emulator, stands in for 5.10, 6.1 and 6.12 there")
	}
	return run, nil
}

// kindOf is the kind of kernel that a lane boots.
func kindOf(lane string) kernel.Kind {
	if lane == matrix.UML || lane == matrix.Full {
		return kernel.UML
	}
	return kernel.Cloud
}

func (l *lanes) small(kind kernel.Kind) campaign.Maker {
	return func(ctx context.Context, row matrix.Row) (guest.Guest, error) {
		image, err := l.image(ctx, kind, row.Kernel)
		if err != nil {
			return nil, err
		}
		row.Kernel = image.Version
		return image.Machine(row.Name(), row.Mode, row.IOMount, l.memory), nil
	}
}

func (l *lanes) fullGuest(kind kernel.Kind) campaign.Maker {
	return func(ctx context.Context, row matrix.Row) (guest.Guest, error) {
		l.full.Lock()
		defer l.full.Unlock()
		full := fullguest.Builder{Archive: l.archive, Cache: l.cache, Agent: l.builds.Init, Temp: l.temp}
		k, err := full.Kernel(ctx, kind, row.Kernel)
		if err != nil {
			return nil, err
		}
		row.Kernel = k.Version
		return full.Machine(ctx, row.Name(), k, row.Suite, row.Mode)
	}
}

func (l *lanes) image(ctx context.Context, kind kernel.Kind, version string) (small.Image, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := string(kind) + " " + version
	if image, ok := l.made[key]; ok {
		return image, nil
	}
	images := small.Images{Archive: l.archive, Cache: l.cache, Init: l.builds.Init, Temp: l.temp}
	image, err := images.Get(ctx, kind, version)
	if err != nil {
		return small.Image{}, err
	}
	l.made[key] = image
	return image, nil
}
