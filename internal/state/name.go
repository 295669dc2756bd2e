package state

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
)

// nameMost bounds the name of a record's file without its ending: file systems take 255 bytes. (Ready and
// locked are the longest endings.) Whatever fits has always had its own name.
const nameMost = 255 - len(Ready)

// FileName is the name of a file for a record of a target: no path, printable, and short enough
// for each target. Of a long one it has the beginning, and a hash of the whole
// behind a character that no other name has.
func FileName(target string) string {
	name := url.QueryEscape(target)
	if len(name) <= nameMost {
		return name
	}
	hash := sha256.Sum256([]byte(target))
	sum := hex.EncodeToString(hash[:])
	return name[:nameMost-len(sum)-1] + "=" + sum
}
