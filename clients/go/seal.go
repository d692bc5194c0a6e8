package flakeids

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Key is one of flake_create_key. It makes and opens public IDs without the database, as flake_seal and flake_unseal do.
type Key struct {
	prefix string
	aes    cipher.Block
}

// ErrInvalidID says that a text or a UUID was not made with this key.
var ErrInvalidID = errors.New("flake: no public ID of this key")

const digits = "0123456789abcdefghjkmnpqrstvwxyz"

// NewKey takes the name of the key, and the 16 bytes of its secret.
func NewKey(name string, secret []byte) (*Key, error) {
	if len(secret) != 16 {
		return nil, fmt.Errorf("flake: a secret has 16 bytes, not %d", len(secret))
	}
	block, err := aes.NewCipher(secret)
	return &Key{name + "_", block}, err
}

// Seal returns the public ID.
func (key *Key) Seal(id int64) string {
	block, text := key.SealUUID(id), make([]byte, 26)
	for n := range text {
		var digit byte
		for bit := 5*n - 2; bit < 5*n+3; bit++ {
			digit <<= 1
			if bit >= 0 {
				digit |= block[bit/8] >> (7 - bit%8) & 1
			}
		}
		text[n] = digits[digit]
	}
	return key.prefix + string(text)
}

// Unseal returns the ID, or ErrInvalidID.
func (key *Key) Unseal(text string) (int64, error) {
	if !strings.HasPrefix(text, key.prefix) || len(text) != len(key.prefix)+26 {
		return 0, ErrInvalidID
	}
	var block [16]byte
	for n, letter := range text[len(key.prefix):] {
		digit := strings.IndexRune(digits, letter)
		if digit < 0 || n == 0 && digit > 7 {
			return 0, ErrInvalidID
		}
		for bit := 5*n - 2; bit < 5*n+3; bit++ {
			if bit >= 0 {
				block[bit/8] |= byte(digit>>(5*n+2-bit)&1) << (7 - bit%8)
			}
		}
	}
	return key.UnsealUUID(block)
}

// SealUUID returns the public ID as the bytes of a UUID.
func (key *Key) SealUUID(id int64) [16]byte {
	n, plain := uint64(id), [16]byte{}
	binary.BigEndian.PutUint64(plain[:], n>>16<<16|8<<12|n>>4&0xfff)
	binary.BigEndian.PutUint64(plain[8:], 2<<62|n&15<<58)
	return walk(key.aes.Encrypt, plain)
}

// UnsealUUID returns the ID, or ErrInvalidID.
func (key *Key) UnsealUUID(sealed [16]byte) (int64, error) {
	if !isMarked(sealed) {
		return 0, ErrInvalidID
	}
	plain := walk(key.aes.Decrypt, sealed)
	high, low := binary.BigEndian.Uint64(plain[:]), binary.BigEndian.Uint64(plain[8:])
	if low<<6 != 0 {
		return 0, ErrInvalidID
	}
	return int64(high>>16<<16 | high&0xfff<<4 | low>>58&15), nil
}

func isMarked(block [16]byte) bool { return block[6]>>4 == 8 && block[8]>>6 == 2 }

func walk(step func(dst, src []byte), block [16]byte) [16]byte {
	for step(block[:], block[:]); !isMarked(block); step(block[:], block[:]) {
	}
	return block
}
