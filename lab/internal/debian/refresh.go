package debian

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

const (
	// indexAge is how old an index may be before it is asked for again.
	indexAge = 24 * time.Hour
	// retryAge is how soon a failed refresh of a usable index is tried again.
	retryAge = time.Hour
	// updateMax bounds one refresh: 10 MB on a slow line.
	updateMax = 10 * time.Minute
)

// The files whose times tell when the index was last got, and last asked for.
const (
	stampDone  = "updated"
	stampTried = "tried"
)

// refresh brings the index up to date if it is older than a day. An old index is
// better than none: with one, a failure is only logged.
func (s *suite) refresh(ctx context.Context) error {
	if s.age(stampDone) < indexAge {
		return nil
	}
	have := s.age(stampDone) < forever
	if have && s.age(stampTried) < retryAge {
		return nil
	}
	err := s.update(ctx)
	if err != nil && have && ctx.Err() == nil {
		slog.Warn("index not refreshed, using the one of before", "suite", s.name, "error", err)
		return s.stamp(stampTried)
	}
	return err
}

// update gets the suite's index now, with a newer keyring if it needs one.
func (s *suite) update(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, updateMax)
	defer cancel()
	defer s.forget()
	err := s.updateWith(ctx, s.ring())
	if errors.Is(err, errUnsigned) {
		err = s.updateThrough(ctx, err)
	}
	if err != nil {
		return fmt.Errorf("refresh index of %s: %w", s.name, err)
	}
	return s.stamp(stampDone)
}

// errUnsigned is the cause when no key at hand made an index's signature.
var errUnsigned = errors.New("signed with unknown keys")

// updateWith gets the index, trusting the keys of one keyring file ("" for what
// the system's entry trusts).
func (s *suite) updateWith(ctx context.Context, keyring string) error {
	if err := s.lay(keyring); err != nil {
		return err
	}
	// Without this, apt takes an index that it could not get for a warning.
	_, err := s.apt(ctx, "", "apt-get", "--error-on=any", "update")
	var failed *commandError
	if errors.As(err, &failed) && saysUnsigned(failed.output) {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	return err
}

// saysUnsigned recognises what apt reports for a missing key, with gpgv (up to
// Debian 12) and with sqv (from Debian 13).
func saysUnsigned(output string) bool {
	for _, words := range []string{"NO_PUBKEY", "Missing key", "is not signed"} {
		if strings.Contains(output, words) {
			return true
		}
	}
	return false
}

// forever is the age of what was never done.
const forever = time.Duration(1<<63 - 1)

func (s *suite) age(stamp string) time.Duration {
	info, err := os.Stat(s.path(stamp))
	if err != nil {
		return forever
	}
	return max(time.Since(info.ModTime()), 0)
}

func (s *suite) stamp(name string) error {
	if err := os.WriteFile(s.path(name), nil, 0o644); err != nil {
		return fmt.Errorf("note time of refresh: %w", err)
	}
	now := time.Now() // writing nothing to an empty file leaves its time alone
	return os.Chtimes(s.path(name), now, now)
}
