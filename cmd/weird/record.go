package main

import (
	"context"
	"time"

	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/history"
)

// recordEvery is the finest level of history.
const recordEvery = time.Second

// record keeps what a feed reads each second, until the context ends. What fails is said once, until
// it is another failure or has ended.
func record(ctx context.Context, out *cli.Out, feed *metrics.Feed, r *history.Recorder) error {
	tick := time.NewTicker(recordEvery)
	defer tick.Stop()
	failed := ""
	for {
		s, err := feed.Read(ctx)
		if err == nil {
			err = r.Add(s)
		}
		switch now := said(err); {
		case ctx.Err() != nil:
			return r.Close()
		case now == failed:
		case err != nil:
			out.Say("history: %v; weird goes on and tries again each second", err)
			failed = now
		default:
			out.Say("history: it is recorded again")
			failed = ""
		}
		select {
		case <-ctx.Done():
			return r.Close()
		case <-tick.C:
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
