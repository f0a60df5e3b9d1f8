// Package node makes processes into a node: namespaces of its own for processes, mounts, host name and control
// groups, around a network namespace that exists already. Inside, every node has the paths, ports and sockets
// that a machine of its own would have.
//
// A node is started in three steps, each the same binary with another command: boot enters the control group,
// init is PID 1 and makes the mounts, services starts containerd, kubelet and kube-proxy.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/cgroup"
	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/process"
)

// Commands of the lab binary that are the steps of a node's start; each takes the path of the configuration.
const (
	BootCommand     = "node-boot"
	InitCommand     = "node-init"
	ServicesCommand = "node-services"
)

// Commands of the lab binary that run a program in a node: from outside, and the last step inside.
const (
	EnterCommand  = "node-enter"  // PID -- PROGRAM [ARGUMENT...]
	BecomeCommand = "node-become" // -- PROGRAM [ARGUMENT...]
)

// Folders inside a node that the lab gives it.
const (
	ToolsDir  = "/opt/lab/bin"    // the lab's programs, read-only
	ConfDir   = "/opt/lab/conf"   // the node's configuration
	ImagesDir = "/opt/lab/images" // images to be imported, read-only
	LogDir    = "/var/log/lab"
)

// Search is the PATH of programs in a node.
const Search = ToolsDir + ":/usr/sbin:/usr/bin:/sbin:/bin"

// Config is the configuration of a node.
type Config struct {
	Name     string            `json:"name"`
	Disk     string            `json:"disk"`   // host folder: what survives the node
	Tools    string            `json:"tools"`  // host folder seen as ToolsDir
	Images   string            `json:"images"` // host folder seen as ImagesDir
	Group    cgroup.Group      `json:"group"`
	Services []process.Service `json:"services"`
}

// Folders of a node's disk.
func (c Config) conf() string { return filepath.Join(c.Disk, "conf") }

// file is where the configuration is kept, on the host and, as it is in conf, in the node.
func (c Config) file() string { return filepath.Join(c.conf(), configFile) }

const configFile = "node.json"

// Start starts the node as a child of this program. The command's process is PID 1 of the node: the node ends
// with it.
func Start(s *process.Spawner, c Config, in *netns.Namespace) (*exec.Cmd, error) {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode configuration of node %s: %w", c.Name, err)
	}
	if err := os.MkdirAll(c.conf(), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.file(), text, 0o600); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(c.Disk, "init.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", BootCommand, c.file())
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := s.Start(cmd, in); err != nil {
		return nil, fmt.Errorf("start node %s: %w", c.Name, err)
	}
	return cmd, nil
}

// environment is all that processes of a node get.
func environment() []string { return []string{"PATH=" + Search, "HOME=/root"} }

func readConfig(file string) (Config, error) {
	var c Config
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}
