package main

import (
	"context"

	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/target"
)

func (a *app) lock(ctx context.Context, t target.Target) (hold.Locked, error) {
	return a.host.Lock(ctx, t)
}
