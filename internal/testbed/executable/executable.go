// Package executable has the headers of programs for tests.
package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// Header returns the header of a 64-bit Linux executable; with an interpreter it is not static.
func Header(machine elf.Machine, abi elf.OSABI, interpreter bool) []byte {
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1, Shentsize: 64,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	header.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	header.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	header.Ident[elf.EI_OSABI] = byte(abi)
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD)}
	if interpreter {
		segment.Type = uint32(elf.PT_INTERP)
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, header) // a buffer takes everything
	_ = binary.Write(&b, binary.LittleEndian, segment)
	return b.Bytes()
}
