package debian

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"
)

// A signer makes what apt authenticates an archive with: an OpenPGP key, and messages
// in clear with its signature (RFC 4880, with the EdDSA of RFC 9580 section 5.5.5.5).
// The key is of its name, so it is no secret.
type signer struct {
	name string
	key  ed25519.PrivateKey
}

func newSigner(name string) signer {
	seed := sha256.Sum256([]byte(name))
	return signer{name, ed25519.NewKeyFromSeed(seed[:])}
}

// Numbers of OpenPGP.
const (
	packetSignature = 2
	packetKey       = 6
	packetUser      = 13

	eddsa     = 22
	sha256ID  = 8
	textType  = 0x01 // of a signature on text
	certType  = 0x13 // of one that binds a user to a key
	created   = 2    // subpackets of a signature
	keyFlags  = 27
	issuer    = 16
	issuerOf4 = 33
)

// born is long ago, so that no clock finds a signature in its future.
var born = binary.BigEndian.AppendUint32(nil, uint32(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Unix()))

func (s signer) keyBody() []byte {
	curve := []byte{0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01} // Ed25519's object identifier
	point := append([]byte{0x40}, s.key.Public().(ed25519.PublicKey)...)
	return slices.Concat([]byte{4}, born, []byte{eddsa, byte(len(curve))}, curve, number(point))
}

// hashedKey is the form in which a key is hashed, for its fingerprint and its bond.
func (s signer) hashedKey() []byte {
	body := s.keyBody()
	return slices.Concat([]byte{0x99}, binary.BigEndian.AppendUint16(nil, uint16(len(body))), body)
}

// keyring is the public key, with a user and the bond between them.
func (s signer) keyring() []byte {
	user := []byte(s.name)
	bond := slices.Concat(s.hashedKey(), []byte{0xb4}, binary.BigEndian.AppendUint32(nil, uint32(len(user))), user)
	return slices.Concat(packet(packetKey, s.keyBody()), packet(packetUser, user), s.sign(certType, bond))
}

func (s signer) sign(kind byte, data []byte) []byte {
	fingerprint := sha1.Sum(s.hashedKey())
	hashed := slices.Concat(subpacket(created, born...), subpacket(keyFlags, 0x03), subpacket(issuerOf4, append([]byte{4}, fingerprint[:]...)...))
	head := slices.Concat([]byte{4, kind, eddsa, sha256ID}, binary.BigEndian.AppendUint16(nil, uint16(len(hashed))), hashed)
	tail := binary.BigEndian.AppendUint32([]byte{4, 0xff}, uint32(len(head)))
	digest := sha256.Sum256(slices.Concat(data, head, tail))
	signature := ed25519.Sign(s.key, digest[:])
	plain := subpacket(issuer, fingerprint[len(fingerprint)-8:]...)
	return packet(packetSignature, slices.Concat(head,
		binary.BigEndian.AppendUint16(nil, uint16(len(plain))), plain, digest[:2],
		number(signature[:32]), number(signature[32:])))
}

// message is text in clear with its signature. Lines must not begin with a dash nor
// end with a space.
func (s signer) message(text string) string {
	text = strings.TrimSuffix(text, "\n")
	signature := s.sign(textType, []byte(strings.ReplaceAll(text, "\n", "\r\n")))
	var b strings.Builder
	fmt.Fprintf(&b, "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n%s\n-----BEGIN PGP SIGNATURE-----\n\n", text)
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString(signature)), 64) {
		fmt.Fprintf(&b, "%s\n", line)
	}
	b.WriteString("-----END PGP SIGNATURE-----\n")
	return b.String()
}

// packet has a length of one octet, or of two.
func packet(tag byte, body []byte) []byte {
	head := []byte{0xc0 | tag, byte(len(body))}
	if n := len(body) - 192; n >= 0 {
		head = []byte{0xc0 | tag, byte(n>>8 + 192), byte(n)}
	}
	return append(head, body...)
}

func subpacket(kind byte, data ...byte) []byte {
	return append([]byte{byte(len(data) + 1), kind}, data...)
}

// number is preceded by how many bits it has.
func number(b []byte) []byte {
	b = bytes.TrimLeft(b, "\x00")
	return append(binary.BigEndian.AppendUint16(nil, uint16(8*len(b)-bits.LeadingZeros8(b[0]))), b...)
}

func TestPacketLength(t *testing.T) {
	for length, want := range map[int][]byte{0: {0xc2, 0}, 191: {0xc2, 191}, 192: {0xc2, 192, 0}, 448: {0xc2, 193, 0}} {
		if got := packet(packetSignature, make([]byte, length)); !bytes.Equal(got[:len(got)-length], want) {
			t.Errorf("header for %d bytes: %x, want %x", length, got[:len(got)-length], want)
		}
	}
}
