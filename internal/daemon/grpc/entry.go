package grpc

import "encoding/binary"

// keyMost bounds the key of an entry that can be needed, in bytes. Keys of Kubernetes have at most 317, and those of
// containerd 4096.
const keyMost = 4096

// An entry is one of a map of texts: its key is the first field, its value the second.
type entry struct {
	key, value []byte
	needed     bool
	cut        bool // the value is too large, and not there
}

// appendEntry reads an entry of a map, and appends it to what was picked if its key is needed. fits is false if it is needed
// and too large. Of one that is not needed nothing is kept, however large it is.
func (p Pick) appendEntry(picked []byte, thing *part, f fieldHead, isNeeded func(key string) bool) (all []byte, fits bool, err error) {
	e, err := readEntry(&part{thing.in, f.size}, uint64(max(p.Most-len(picked), 0)), isNeeded)
	if err != nil {
		return nil, false, err
	}
	thing.left -= f.size
	if !e.needed {
		return picked, true, nil
	}
	if e.cut || len(picked)+len(e.key)+len(e.value) > p.Most {
		return picked, false, nil
	}
	message := AppendString(AppendString(nil, 1, string(e.key)), 2, string(e.value))
	picked = binary.AppendUvarint(picked, uint64(f.number)<<3|wireBytes)
	picked = binary.AppendUvarint(picked, uint64(len(message)))
	return append(picked, message...), true, nil
}

// readEntry reads an entry with a value of at most that many bytes. A value that comes before its key may be needed.
func readEntry(of *part, most uint64, isNeeded func(key string) bool) (e entry, err error) {
	e.needed = isNeeded("")
	for keyed := false; of.left > 0; {
		f, err := of.next()
		if err != nil {
			return e, err
		}
		isKey, isValue := f.number == 1 && f.wire == wireBytes, f.number == 2 && f.wire == wireBytes
		switch {
		case isKey && f.size <= keyMost:
			e.key, err = of.appendTo(e.key[:0], f.size)
			keyed, e.needed = true, isNeeded(string(e.key))
		case isValue && f.size <= most && (e.needed || !keyed):
			e.value, err = of.appendTo(e.value[:0], f.size)
			e.cut = false
		default:
			if isKey {
				keyed, e.needed = true, false
			}
			e.cut = e.cut || isValue
			err = of.skip(f.size)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
}
