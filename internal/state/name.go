package state

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// nameMost bounds the name of a record's file without its ending: file systems take 255 bytes.
const nameMost = 240

// FileName is the name of a file for a record of a target: no path, printable, and short enough
// for each target. Of a long one it has the beginning, and a hash of the whole.
func FileName(target string) string {
	name := url.QueryEscape(target)
	if len(name) <= nameMost {
		return name
	}
	hash := sha256.Sum256([]byte(target))
	sum := hex.EncodeToString(hash[:])
	return name[:nameMost-len(sum)-1] + "-" + sum
}
