package websocket

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Opcodes of frames (RFC 6455, section 5.2).
const (
	opContinuation = 0x0
	opBinary       = 0x2
	opClose        = 0x8
	opPing         = 0x9
	opPong         = 0xa
)

const (
	finalBit = 0x80
	maskBit  = 0x80
	// maxFrameHeader is the length of the header of a masked frame of at most maxDatagram bytes.
	maxFrameHeader = 2 + 2 + 4
	maxControl     = 125 // bytes in a control frame
	// maxDatagram is the size of the largest UDP datagram over IPv4.
	maxDatagram = 65535 - 20 - 8
)

// errFrame means that the other end does not send what a gateway sends.
var errFrame = errors.New("WebSocket frame")

// frame is one frame as it was received. Its payload is a part of the buffer that was parsed.
type frame struct {
	opcode  byte
	final   bool
	payload []byte
}

// appendFrame appends a final frame. A client must mask what it sends, a server must not: masked says which; the mask
// has to be unpredictable for programs that choose the payload, which here is ciphertext of WireGuard.
func appendFrame(b []byte, opcode byte, payload []byte, masked bool, mask uint32) []byte {
	var bit byte
	if masked {
		bit = maskBit
	}
	b = append(b, finalBit|opcode)
	if len(payload) <= maxControl {
		b = append(b, bit|byte(len(payload)))
	} else {
		b = binary.BigEndian.AppendUint16(append(b, bit|126), uint16(len(payload)))
	}
	if !masked {
		return append(b, payload...)
	}
	b = binary.LittleEndian.AppendUint32(b, mask)
	start := len(b)
	b = append(b, payload...)
	applyMask(b[start:], mask)
	return b
}

// parseFrame returns the first frame in b and its length; zero: b has a part of it. It removes the mask in place.
func parseFrame(b []byte, masked bool) (f frame, length int, err error) {
	if len(b) < 2 {
		return f, 0, nil
	}
	f.opcode, f.final = b[0]&0x0f, b[0]&finalBit != 0
	if b[0]&0x70 != 0 {
		return f, 0, fmt.Errorf("%w: bits of an extension", errFrame)
	}
	if (b[1]&maskBit != 0) != masked {
		return f, 0, fmt.Errorf("%w: masked by the wrong end", errFrame)
	}
	header, size := 2, int(b[1]&^maskBit)
	switch {
	case f.opcode >= opClose && (size > maxControl || !f.final):
		return f, 0, fmt.Errorf("%w: long control frame", errFrame)
	case size == 127:
		return f, 0, fmt.Errorf("%w: more than a datagram", errFrame)
	case size == 126:
		if len(b) < 4 {
			return f, 0, nil
		}
		header, size = 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	if size > maxDatagram {
		return f, 0, fmt.Errorf("%w: more than a datagram", errFrame)
	}
	var mask uint32
	if masked {
		if len(b) < header+4 {
			return f, 0, nil
		}
		mask = binary.LittleEndian.Uint32(b[header:])
		header += 4
	}
	if len(b) < header+size {
		return f, 0, nil
	}
	f.payload = b[header : header+size : header+size]
	applyMask(f.payload, mask)
	return f, header + size, nil
}

// applyMask applies a mask to a payload, or removes it. A mask of zero changes nothing.
func applyMask(b []byte, mask uint32) {
	if mask == 0 {
		return
	}
	wide := uint64(mask)<<32 | uint64(mask)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^wide)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= byte(mask >> (8 * i))
	}
}
