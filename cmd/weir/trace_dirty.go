package main

import (
	"context"
	"time"
)

func (a *app) traceDirty(ctx context.Context, args []string, window time.Duration, svg string) error {
	return nil
}
