package agent

import (
	"context"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	// pacerEvery is how often the agent looks whether weir's pacer and its guards are gone, while groups are held. If they
	// were all killed at once, nobody else resumes the processes that are paused.
	pacerEvery = 500 * time.Millisecond
	// pacerAgain is how long it waits after it has started another one.
	pacerAgain = 5 * time.Second
)

// watchPacer has the groups of a lost pacer resumed, and another one started for them.
func (a *Agent) watchPacer(ctx context.Context) {
	if !a.own {
		return
	}
	a.tellUncounted(pacer.Uncounted)
	for wait := pacerEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = pacerEvery
		switch pacer.StandingOf(a.state) {
		case pacer.Running:
			continue
		case pacer.Unneeded:
			_ = pacer.AwaitNeed(ctx, a.state) // where the kernel does not tell, it is looked for
			continue
		}
		wait = pacerAgain
		h, err := a.options.Open()
		if err == nil {
			err = errors.Join(pacer.Sweep(h.State, h.FS), h.Close())
		}
		if err != nil {
			a.options.Log.Error("weir's pacer is gone with its guards, and what it had paused cannot be resumed", "error", err)
			continue
		}
		a.options.Log.Warn("weir's pacer was gone with its guards: what it had paused goes on")
	}
}

// tellUncounted says in the log what weir's pacer does not count if weird starts it. On cgroup v1 the pacer holds all
// buffered writes; elsewhere weir show says it of the few groups that it is about.
func (a *Agent) tellUncounted(uncounted func() string) {
	h, err := a.options.Open()
	if err != nil {
		return // whoever needs the host says so
	}
	defer h.Close()
	if io, err := h.IO(); err != nil || io.Version != cgroupfs.V1 {
		return
	}
	if missed := uncounted(); missed != "" {
		a.options.Log.Warn("weir's pacer misses some writes if weird starts it: "+missed, "remedy", "under systemd, add the drop-in contrib/weird.service.d/exits.conf; see docs/guide/pacer.md")
	}
}
