package agent

import (
	"context"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
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
