package gossip

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/memberlist"
)

// seal encrypts frames as memberlist does, without a label. Here a frame is opened only to be
// checked. What is passed on is still sealed, and memberlist opens it itself.
type seal struct {
	keys *memberlist.Keyring // nil: plain text
}

const (
	// sealVersion is the version of the encryption that nodes use. Version 0 has padding, which
	// memberlist removes without a check: an empty frame would end the process.
	sealVersion = 1
	nonceSize   = 12
	// sealHead is the length of the head of a sealed frame in a stream: one byte for the type, four
	// for the length.
	sealHead = 5
)

// openPacket returns the plain text of a packet.
func (s seal) openPacket(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == frameLabel {
		return nil, errUnsealed
	}
	if s.keys == nil {
		return b, nil
	}
	return s.open(b, nil)
}

// open decrypts a frame with the first key that fits. with is the additional data of the
// encryption.
func (s seal) open(sealed, with []byte) ([]byte, error) {
	if len(sealed) < 1+nonceSize || sealed[0] != sealVersion {
		return nil, errUnsealed
	}
	for _, key := range s.keys.GetKeys() {
		block, err := aes.NewCipher(key)
		if err != nil {
			continue
		}
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			continue
		}
		nonce, text := sealed[1:1+nonceSize], sealed[1+nonceSize:]
		if plain, err := gcm.Open(nil, nonce, text, with); err == nil {
			return plain, nil
		}
	}
	return nil, errUnsealed
}

// checkStream checks what one side sends on a stream, to its end.
func (s seal) checkStream(from source, answer bool) error {
	if s.keys == nil {
		return checkStream(from, answer)
	}
	read, err := from.take(sealHead)
	if err != nil {
		return err
	}
	head := append([]byte(nil), read...)
	if head[0] != frameEncrypted {
		return errUnsealed
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > maxStream {
		return fmt.Errorf("%w: %d bytes in one stream", errTooLarge, size)
	}
	sealed, err := from.take(int(size))
	if err != nil {
		return err
	}
	plain, err := s.open(sealed, head)
	if err != nil {
		return err
	}
	return checkStream(&bytesSource{plain}, answer)
}
