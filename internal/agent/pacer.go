package agent

import (
	"context"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
)

const (
	// pacerEvery is how often the agent looks whether weir's pacer and its guards are gone. If they were
	// all killed at once, nobody else resumes the processes that are paused.
	pacerEvery = 500 * time.Millisecond
	// pacerAgain is how long it waits after it has started another one.
	pacerAgain = 5 * time.Second
)

// watchPacer has the groups of a lost pacer resumed, and another one started for them.
func (a *Agent) watchPacer(ctx context.Context) {
	for wait := pacerEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if wait = pacerEvery; !a.own || !pacer.IsLost(a.state) {
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
