package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"

	"liqonet.io/liqonet/internal/setting"
)

// environmentPrefix is the prefix of liqoctl's environment variables.
const environmentPrefix = "LIQOCTL_"

// ConfigFlag names the file, which cannot name itself.
const ConfigFlag = "config"

// ApplySettings sets the flags that the command line leaves open: from the environment, as in LIQOCTL_REMOTE_CONTEXT,
// else from the configuration file, by the flag's name. An empty setting is ignored. The empty path selects the file
// that LIQOCTL_CONFIG names, else for the default one, which need not exist.
func ApplySettings(env *Env, cmd *cobra.Command, path string) error {
	named := cmp.Or(path, env.Variable(variableOf(ConfigFlag)))
	file := cmp.Or(named, defaultConfig(env))
	v := viper.New()
	if file != "" {
		v.SetConfigFile(file)
		v.SetConfigType("yaml")
		err := v.ReadInConfig()
		if absent := errors.Is(err, fs.ErrNotExist); err != nil && (named != "" || !absent) {
			return Usagef("read configuration %s: %w", file, err)
		}
	}
	known := settable(cmd.Root())
	for _, name := range v.AllKeys() {
		if !known[name] {
			return Usagef("read configuration %s: unknown setting %q: no flag has this name", file, name)
		}
	}
	env.warnUnknown(known)
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if err == nil && !f.Changed && known[f.Name] {
			err = applySetting(f, env.Variable(variableOf(f.Name)), v.Get(f.Name))
		}
	})
	if err == nil {
		warnUnprotected(env, cmd, cmp.Or(env.Variable(variableOf(dryRunFlag)), v.GetString(dryRunFlag)))
	}
	return err
}

// dryRunFlag is a flag for which a command without it warns, because the user relies on it.
const dryRunFlag = "dry-run"

// warnUnprotected warns if a dry run is set for a command without dry runs.
func warnUnprotected(env *Env, cmd *cobra.Command, dryRun string) {
	if yes, _ := setting.YesOrNo(dryRun); yes && cmd.Flags().Lookup(dryRunFlag) == nil {
		env.Progress.Warn(fmt.Sprintf("%s is ignored: %s has no flag --%s", variableOf(dryRunFlag), cmd.CommandPath(), dryRunFlag), "")
	}
}

// applySetting sets a flag to the value of its variable, else to that in the file.
func applySetting(f *pflag.Flag, variable string, entry any) error {
	values, isList := entry.([]any)
	switch {
	case variable != "":
		values = []any{variable}
	case entry != nil && !isList:
		values = []any{entry}
	}
	for _, value := range values {
		text := fmt.Sprint(value)
		if text == "" {
			continue
		}
		if err := f.Value.Set(text); err != nil {
			return Usagef("setting %s (%s) is %q: %w", f.Name, variableOf(f.Name), text, err)
		}
	}
	return nil
}

// settable returns the names of all flags of all commands.
func settable(cmd *cobra.Command) map[string]bool {
	names := make(map[string]bool)
	add := func(f *pflag.Flag) {
		names[f.Name] = f.Name != ConfigFlag && !slices.Contains([]string{"help", "help-all", "version", "explain"}, f.Name)
	}
	cmd.Flags().VisitAll(add)
	cmd.PersistentFlags().VisitAll(add)
	for _, sub := range cmd.Commands() {
		maps.Copy(names, settable(sub))
	}
	return names
}

// warnUnknown lists variables with liqoctl's prefix for which there is no flag.
func (e *Env) warnUnknown(known map[string]bool) {
	for _, entry := range e.Environ {
		variable, _, _ := strings.Cut(entry, "=")
		flag, ours := strings.CutPrefix(variable, environmentPrefix)
		name := strings.ToLower(strings.ReplaceAll(flag, "_", "-"))
		if ours && name != ConfigFlag && !known[name] {
			e.Progress.Warn(fmt.Sprintf("%s is ignored: there is no flag --%s", variable, name), "")
		}
	}
}

// variableOf returns the environment variable of a setting.
func variableOf(name string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// defaultConfig returns the default path of the configuration file, according to the XDG base directory specification;
// "" for a user without a home.
func defaultConfig(env *Env) string {
	if folder := env.Variable("XDG_CONFIG_HOME"); folder != "" {
		return filepath.Join(folder, "liqoctl", "config.yaml")
	}
	if home := env.Variable("HOME"); home != "" {
		return filepath.Join(home, ".config", "liqoctl", "config.yaml")
	}
	return ""
}
