package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"liqonet.io/liqonet/internal/hint"
)

// architectures are those of the releases, by the machine in their ELF header.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64:  "amd64",
	elf.EM_AARCH64: "arm64",
}

// inspect returns the platform of a static Linux executable.
func inspect(path string) (v1.Platform, error) {
	refuse := func(reason string) (v1.Platform, error) {
		return v1.Platform{}, hint.With(fmt.Errorf("use %s as the image's program: %s", path, reason),
			"build liqoctl for Linux (CGO_ENABLED=0 GOOS=linux go build ./cmd/liqoctl) and name it with --binary FILE")
	}
	f, err := elf.Open(path)
	var malformed *elf.FormatError
	switch {
	case errors.As(err, &malformed) || errors.Is(err, io.EOF):
		return refuse("not a Linux executable")
	case err != nil:
		return v1.Platform{}, fmt.Errorf("read binary: %w", err)
	}
	defer f.Close()

	// On Linux, Go sets the header's operating system to NONE; the BSDs and Solaris set theirs.
	if f.OSABI != elf.ELFOSABI_NONE && f.OSABI != elf.ELFOSABI_LINUX {
		return refuse("an executable of another system than Linux")
	}
	arch, ok := architectures[f.Machine]
	if !ok {
		return refuse(fmt.Sprintf("its machine %s is neither amd64 nor arm64", f.Machine))
	}
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return refuse("not a Linux executable")
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return refuse("dynamically linked, and the image holds no libraries")
		}
	}
	return v1.Platform{OS: "linux", Architecture: arch}, nil
}
