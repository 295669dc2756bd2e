package load

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A line is one line of a load's report: a tick or the result.
type line struct {
	Tick   *Tick   `json:"tick,omitempty"`
	Result *Result `json:"result,omitempty"`
}

// lineMax bounds a line, the result with all its stalls.
const lineMax = 1 << 20

// Decode reads what RunTo writes. It passes each tick to tick (which may be nil) when it
// arrives, and returns the result. If the load ended without a result, errors.Is(err,
// io.ErrUnexpectedEOF). It does not read beyond the result.
func Decode(r io.Reader, tick func(Tick)) (Result, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var l line
		err := json.Unmarshal(lines.Bytes(), &l)
		switch {
		case err == nil && l.Result != nil:
			return *l.Result, nil
		case err == nil && l.Tick != nil:
			if tick != nil {
				tick(*l.Tick)
			}
		default:
			return Result{}, fmt.Errorf("load: read the report: %w", errors.Join(err, fmt.Errorf("line %.100q", lines.Bytes())))
		}
	}
	err := lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return Result{}, fmt.Errorf("load: read the report: %w", err)
}
