package build

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/spec"
)

// hostPrograms are the distribution's programs that a lab uses, each with its Debian package.
var hostPrograms = map[string]string{
	"runc":     "runc",
	"ip":       "iproute2",
	"nft":      "nftables",
	"iptables": "iptables",
}

// systemFolders have the programs for root, also if PATH lacks them.
var systemFolders = []string{"/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"}

// FindProgram returns the path of a program of the host.
func FindProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	for _, dir := range systemFolders {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("program %s: not found on this machine", name)
}

// EnsureHost installs, by apt-get, the programs that the host lacks for a lab with these network plugins.
func EnsureHost(ctx context.Context, report *progress.Reporter, plugins ...spec.NetworkPlugin) error {
	needed := maps.Clone(hostPrograms)
	for _, p := range plugins {
		maps.Copy(needed, pluginPrograms[p.Current()])
	}
	var missing []string
	for program, pkg := range needed {
		if _, err := FindProgram(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	return InstallPackages(ctx, report, missing)
}

// InstallPackages installs packages of the distribution without recommended ones.
func InstallPackages(ctx context.Context, report *progress.Reporter, names []string) error {
	if len(names) == 0 {
		return nil
	}
	names = slices.Sorted(slices.Values(names))
	if _, err := FindProgram("apt-get"); err != nil {
		return fmt.Errorf("install %v, which the lab needs: no apt-get here", names)
	}
	return report.Step(fmt.Sprintf("install Debian packages %v", names), func(*progress.Note) error {
		if err := aptGet(ctx, "update"); err != nil {
			return err
		}
		return aptGet(ctx, append([]string{"install", "-y", "--no-install-recommends"}, names...)...)
	})
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out)
	}
	return nil
}
