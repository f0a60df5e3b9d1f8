package commands_test

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/buildinfo"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"liqoctl": func() {
			env := &cli.Env{
				In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(),
				Program: os.Getenv("TEST_PROGRAM"), InTerminal: os.Getenv("TEST_TERMINAL") != "", ErrTerminal: os.Getenv("TEST_TERMINAL") != "",
				Build: buildinfo.Info{Version: "v1.2.3", Commit: "5c4a8d7", Go: "go1.26.8", Platform: "linux/amd64"},
			}
			os.Exit(commands.Run(context.Background(), env, os.Args[1:]))
		},
	})
}

// TestScripts runs the command line with the scripts in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "program": program},
	})
}
