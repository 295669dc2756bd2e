package kernel

import (
	"bytes"
	"context"
	"io"

	"github.com/weir-io/weir/internal/daemon/helper"
)

// HelperArg is the role of a helper that unpacks what gzip has packed, and UnpackThis is the
// question. ConfigMax bounds the answer, bytes.
const (
	HelperArg  = "__unpack"
	UnpackThis = "unpack"
	ConfigMax  = configMax
)

// ByHelper makes an Unpack for programs that do not link that library.
func ByHelper(ctx context.Context, helpers helper.Starter) Unpack {
	return func(in io.Reader) (io.Reader, error) {
		text, err := io.ReadAll(io.LimitReader(in, configMax))
		if err != nil {
			return nil, err
		}
		h, err := helpers.Start(HelperArg)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		var unpacked []byte
		if err := h.Ask(ctx, UnpackThis, text, &unpacked); err != nil {
			return nil, err
		}
		return bytes.NewReader(unpacked), nil
	}
}
