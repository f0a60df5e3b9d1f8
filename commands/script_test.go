package commands_test

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"liqonet.io/liqonet/internal/testbed/executable"
)

// exits is the script command `exits CODE PROGRAM [ARG...]`: the program must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// machines are the machines known to `program`, by name.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}

// program is the script command `program MACHINE FILE`: it writes the header of a static Linux executable.
func program(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: program MACHINE FILE")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), executable.Header(machines[args[0]], elf.ELFOSABI_NONE, false), 0o600))
}
