package kube

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/weir-io/weir/internal/base/plain"
)

// A follower keeps up with the objects of one kind.
type follower struct {
	client   *Client
	path     string // /api/v1/pods
	selector url.Values
	whole    bool // more than the metadata is read
	set      func(object)
	gone     func(object)
	keep     func(func(uid string) bool) // forget those that a list has not had
	log      func(error)                 // nil: it works
	patience time.Duration               // watchTime

	version string // from which on a watch goes; empty: a list is due
}

// errExpired says that a list is due: the API server has forgotten what came after the version.
var errExpired = errors.New("the API server has forgotten the version that was read last")

// run follows until the context ends.
func (f *follower) run(ctx context.Context) {
	for wait := againLeast; ctx.Err() == nil; {
		began := time.Now()
		err := f.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errExpired) {
			f.version = ""
		} else {
			f.log(err)
		}
		// A watch that ends at once, again and again, is a failure too, whatever the server says.
		if took := time.Since(began); err == nil && took > watchLeast || took > againMost {
			wait = againLeast
		}
		pause := wait/2 + rand.N(wait/2+1) // so that not all nodes ask at once
		wait = min(2*wait, againMost)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// once lists, if that is due, and follows one watch to its end. nil: the server has ended it.
func (f *follower) once(ctx context.Context) error {
	if f.version == "" {
		if err := f.list(ctx); err != nil {
			return err
		}
	}
	return f.watch(ctx)
}

// list takes all objects, page by page.
func (f *follower) list(ctx context.Context) error {
	seen := map[string]bool{}
	more, version, size := "", "", pageMost
	for page := 0; page == 0 || more != ""; page++ {
		if page == pagesMost {
			return fmt.Errorf("the API server's list of %s does not end after %d pages", f.path, page)
		}
		var list struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []object
		}
		err := f.page(ctx, more, size, &list)
		for ; errors.Is(err, errLarge) && size > pageLeast; err = f.page(ctx, more, size, &list) {
			size = max(size/4, pageLeast)
		}
		if err != nil {
			if is(err, http.StatusGone) {
				return errExpired
			}
			return err
		}
		for _, item := range list.Items {
			if item.Metadata.isWhole() && len(seen) < max(podsMost, spacesMost) {
				seen[item.Metadata.UID] = true
				f.set(item)
			}
		}
		more, version = list.Metadata.Continue, list.Metadata.ResourceVersion
	}
	if version == "" {
		return fmt.Errorf("the API server's list of %s has no version", f.path)
	}
	f.keep(func(uid string) bool { return seen[uid] })
	f.version = version
	return nil
}

// errLarge says that a page has too many bytes. One with fewer objects may not: any tenant can make some pods
// of more than a megabyte, and they keep nobody from hearing of the others.
var errLarge = errors.New("it is too large")

func (f *follower) page(ctx context.Context, more string, size int, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	query := f.query()
	query.Set("limit", strconv.Itoa(size))
	if more != "" {
		query.Set("continue", more)
	}
	r, err := f.client.do(ctx, http.MethodGet, f.path, query, f.accept("PartialObjectMetadataList"), "", nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, pageBytesMost+1))
	if err != nil {
		return err
	}
	if len(text) > pageBytesMost {
		return fmt.Errorf("a page of the API server's list of %s: %w: it has more than %d bytes", f.path, errLarge, pageBytesMost)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the API server's list of %s: %w", f.path, err)
	}
	return nil
}

// accept is what an answer may be: objects, or where that is enough their metadata alone, which is less.
func (f *follower) accept(metadata string) string {
	if f.whole {
		return "application/json"
	}
	return metadataOnly(metadata)
}

func (f *follower) query() url.Values {
	query := url.Values{}
	for name, values := range f.selector {
		query[name] = values
	}
	return query
}

// watch follows changes until the server ends the watch.
func (f *follower) watch(ctx context.Context) error {
	// A watch that says nothing for longer than it was asked for hangs.
	ctx, cancel := context.WithTimeoutCause(ctx, f.patience+min(watchGrace, f.patience), fmt.Errorf("the API server does not end a watch of %v", f.patience))
	defer cancel()
	query := f.query()
	query.Set("watch", "true")
	query.Set("resourceVersion", f.version)
	query.Set("allowWatchBookmarks", "true")
	query.Set("timeoutSeconds", strconv.Itoa(max(1, int(f.patience/time.Second))))
	r, err := f.client.do(ctx, http.MethodGet, f.path, query, f.accept("PartialObjectMetadata"), "", nil)
	if is(err, http.StatusGone) {
		return errExpired
	}
	if err != nil {
		var e *statusError
		if errors.As(err, &e) && e.status/100 == 4 && !is(err, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests) {
			f.version = "" // the server would refuse the same version again
		}
		return err
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(make([]byte, 0, 16<<10), answerMost)
	lines.Split(wholeLines)
	for lines.Scan() {
		if err := f.take(lines.Bytes()); err != nil {
			f.version = "" // after the same version the same line would come again
			return err
		}
		f.log(nil)
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		f.version = "" // the same here
	}
	return lines.Err()
}

// wholeLines leaves out what a broken connection has left of a line: it comes again.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// An event is a line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// take takes an event.
func (f *follower) take(line []byte) error {
	var e event
	var o object
	var status struct { // of an error (metav1.Status)
		Code    int
		Message string
	}
	err := json.Unmarshal(line, &e)
	switch {
	case err != nil:
	case e.Type == "ERROR":
		if err = json.Unmarshal(e.Object, &status); err == nil {
			if status.Code == http.StatusGone {
				return errExpired
			}
			return &statusError{status.Code, plain.Brief(status.Message)}
		}
	case slices.Contains([]string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}, e.Type):
		err = json.Unmarshal(e.Object, &o)
	default:
		return fmt.Errorf("the API server's watch of %s has an event of the type %s", f.path, plain.Short(e.Type, 100))
	}
	if err != nil {
		return fmt.Errorf("read the API server's watch of %s: %w", f.path, err)
	}
	m := o.Metadata
	if m.ResourceVersion == "" || len(m.ResourceVersion) > nameMost {
		return fmt.Errorf("the API server's watch of %s has an event without a version", f.path)
	}
	if m.isWhole() {
		switch e.Type {
		case "ADDED", "MODIFIED":
			f.set(o)
		case "DELETED":
			f.gone(o)
		}
	}
	f.version = m.ResourceVersion
	return nil
}
