package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/base/shape"
)

// answerMost bounds an answer, in bytes.
const answerMost = 64 << 20

// Ask asks the daemon at a socket for a document.
func Ask(ctx context.Context, socket, route string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestMost)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://weird"+route, nil)
	if err != nil {
		return err
	}
	r, err := client.Do(request)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("nothing answers at %s: weird does not run; start it with systemctl start weird (which needs a plan in /etc/weir/plans.d), or run weird run", socket)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("ask weird at %s: %w; only root, the user that started weird, and users in the group weir-read or weir can", socket, unix.EACCES)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer at %s within %v", socket, requestMost)
	case err != nil:
		return fmt.Errorf("ask weird at %s: %w", socket, reason(err))
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, answerMost))
	if err != nil {
		return fmt.Errorf("ask weird at %s: %w", socket, err)
	}
	if r.StatusCode != http.StatusOK {
		var refused api.Error
		if err := json.Unmarshal(text, &refused); err == nil && refused.Error != "" {
			hint := ""
			if r.StatusCode == http.StatusNotFound {
				hint = "; weird run answers what weird status asks, weird health does not"
			}
			return fmt.Errorf("the weird at %s answers: %s%s", socket, refused.Error, hint)
		}
		return fmt.Errorf("the weird at %s answers with status %d", socket, r.StatusCode)
	}
	if err = shape.Check(text, bounds); err == nil {
		err = rawtext.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("what the weird at %s answers cannot be read: %w", socket, err)
	}
	return nil
}

// bounds are of an answer: whoever answers may be no weird.
var bounds = shape.Bounds{List: 100_000, Within: 4096, Entries: 400_000, Fields: 4096, Deep: 32, Text: 1 << 20}
