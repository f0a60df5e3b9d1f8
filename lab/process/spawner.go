// Package process starts the programs of a lab so that they end with the lab, and keeps them running until
// then.
package process

import (
	"os/exec"
	"runtime"
	"syscall"

	"liqonet.io/liqonet/lab/netns"
)

// Spawner starts processes from one thread that never ends. The kernel sends the signal "your parent died"
// when the *thread* that started a process ends, so any other thread would do only by luck.
type Spawner struct {
	jobs chan job
}

type job struct {
	cmd  *exec.Cmd
	in   *netns.Namespace
	done chan error
}

// NewSpawner returns a spawner that lives as long as the program.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan job)}
	go s.run()
	return s
}

// Start starts cmd inside a network namespace, or in the program's own if it is nil. When the program ends,
// however it ends, the process is killed.
func (s *Spawner) Start(cmd *exec.Cmd, in *netns.Namespace) error {
	j := job{cmd: cmd, in: in, done: make(chan error, 1)}
	s.jobs <- j
	return <-j.done
}

func (s *Spawner) run() {
	runtime.LockOSThread() // and never unlocked
	home, err := netns.Current()
	for j := range s.jobs {
		if err != nil {
			j.done <- err
			continue
		}
		j.done <- start(j, home)
	}
}

func start(j job, home *netns.Namespace) error {
	if j.cmd.SysProcAttr == nil {
		j.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	j.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// The thread may still be where the job before this one left it.
	if j.in == nil {
		j.in = home
	}
	if err := j.in.Enter(); err != nil {
		return err
	}
	return j.cmd.Start()
}
