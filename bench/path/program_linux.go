package path

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
)

// program is the testing.TB of a bed outside of tests. It has the methods that package internal/testbed uses.
type program struct {
	testing.TB // nil
	ctx        context.Context
	cleanups   []func()
	errs       []error // after which a call went on
}

// failure is the panic that ends a call. A test ends its goroutine instead.
type failure struct{ error }

// try calls a function, and returns the error that ends it.
func try(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	do()
	return nil
}

func (p *program) Helper()                           {}
func (p *program) Context() context.Context          { return p.ctx }
func (p *program) Cleanup(f func())                  { p.cleanups = append(p.cleanups, f) }
func (p *program) Failed() bool                      { return false } // the log of a process is part of its error
func (p *program) Error(args ...any)                 { p.errs = append(p.errs, errors.New(fmt.Sprint(args...))) }
func (p *program) Fatal(args ...any)                 { panic(failure{errors.New(fmt.Sprint(args...))}) }
func (p *program) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (p *program) TempDir() string {
	dir, err := os.MkdirTemp("", "liqonet-bench-")
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { p.errs = append(p.errs, os.RemoveAll(dir)) })
	return dir
}

// close calls what was given to Cleanup, the last first.
func (p *program) close() error {
	for _, f := range slices.Backward(p.cleanups) {
		p.errs = append(p.errs, try(f))
	}
	err := errors.Join(p.errs...)
	p.cleanups, p.errs = nil, nil
	return err
}
