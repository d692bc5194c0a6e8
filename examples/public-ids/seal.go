// Public IDs of flake without the database: reads lines `secret,id,uuid,text` as tests/vectors/seal.csv has them, and writes them
// computed anew, the IDs that the UUIDs stand for where no ID is given.
package main

import (
	"bufio"
	"crypto/aes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
)

func isMarked(block []byte) bool { return block[6]>>4 == 8 && block[8]>>6 == 2 }

func walk(step func(dst, src []byte), block []byte) []byte {
	for step(block, block); !isMarked(block); step(block, block) {
	}
	return block
}

func seal(secret []byte, id int64) []byte {
	cipher, _ := aes.NewCipher(secret)
	n, plain := uint64(id), make([]byte, 16)
	binary.BigEndian.PutUint64(plain, n>>16<<16|8<<12|n>>4&0xfff)
	binary.BigEndian.PutUint64(plain[8:], 2<<62|n&15<<58)
	return walk(cipher.Encrypt, plain)
}

func unseal(secret, sealed []byte) (int64, bool) {
	if !isMarked(sealed) {
		return 0, false
	}
	cipher, _ := aes.NewCipher(secret)
	plain := walk(cipher.Decrypt, append([]byte(nil), sealed...))
	high, low := binary.BigEndian.Uint64(plain), binary.BigEndian.Uint64(plain[8:])
	return int64(high>>16<<16 | high&0xfff<<4 | low>>58&15), low<<6 == 0
}

func text(block []byte) string {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	text := make([]byte, 26)
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
	return string(text)
}

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		line := strings.Split(lines.Text(), ",")
		secret, _ := hex.DecodeString(line[0])
		block, _ := hex.DecodeString(strings.ReplaceAll(line[2], "-", ""))
		if line[1] != "" {
			id, _ := strconv.ParseInt(line[1], 10, 64)
			block = seal(secret, id)
		}
		number, letters := "", ""
		if id, ok := unseal(secret, block); ok {
			number, letters = strconv.FormatInt(id, 10), text(block)
		}
		fmt.Printf("%s,%s,%x-%x-%x-%x-%x,%s\n", line[0], number, block[:4], block[4:6], block[6:8], block[8:10], block[10:], letters)
	}
}
