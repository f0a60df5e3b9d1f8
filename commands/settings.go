package commands

import (
	"cmp"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// settings are defaults that the user sets once: in the configuration file, by the name of the flag, or in the
// environment, as in LIQOCTL_REMOTE_CONTEXT. A flag on the command line counts more than the environment, and
// that more than the file. An empty setting is none.
type settings struct {
	Kubeconfig        string   `mapstructure:"kubeconfig"`
	Context           string   `mapstructure:"context"`
	Cluster           string   `mapstructure:"cluster"`
	User              string   `mapstructure:"user"`
	Namespace         string   `mapstructure:"namespace"`
	RequestTimeout    string   `mapstructure:"request-timeout"`
	RemoteKubeconfig  string   `mapstructure:"remote-kubeconfig"`
	RemoteContext     string   `mapstructure:"remote-context"`
	RemoteCluster     string   `mapstructure:"remote-cluster"`
	RemoteUser        string   `mapstructure:"remote-user"`
	RemoteNamespace   string   `mapstructure:"remote-namespace"`
	Image             string   `mapstructure:"image"`
	Overlay           string   `mapstructure:"overlay"`
	WireGuard         string   `mapstructure:"wireguard"`
	MTU               string   `mapstructure:"mtu"`
	Timeout           string   `mapstructure:"timeout"`
	Reserve           []string `mapstructure:"reserve"`
	RemoteReserve     []string `mapstructure:"remote-reserve"`
	ServerServiceType string   `mapstructure:"gw-server-service-type"`
	Verbose           string   `mapstructure:"verbose"`
}

// environmentPrefix begins the names of liqoctl's variables.
const environmentPrefix = "LIQOCTL_"

// loadSettings reads the configuration file and the environment. An empty path stands for the file that
// LIQOCTL_CONFIG names, else for the default one, which need not exist.
func loadSettings(env *Env, path string) (settings, error) {
	named := cmp.Or(path, env.variable(environmentPrefix+"CONFIG"))
	file := cmp.Or(named, defaultConfig(env))
	v := viper.New()
	if file != "" {
		v.SetConfigFile(file)
		v.SetConfigType("yaml")
		err := v.ReadInConfig()
		if absent := errors.Is(err, fs.ErrNotExist); err != nil && (named != "" || !absent) {
			return settings{}, usagef("read configuration %s: %w", file, err)
		}
	}
	known := maps.Collect(settings{}.all())
	for _, name := range v.AllKeys() {
		if _, ok := known[name]; !ok {
			return settings{}, usagef("read configuration %s: unknown setting %q", file, name)
		}
	}
	for name := range known {
		if value := env.variable(variableOf(name)); value != "" {
			v.Set(name, value)
		}
	}
	var s settings
	if err := v.Unmarshal(&s); err != nil {
		return settings{}, usagef("read configuration %s: %w", file, err)
	}
	return s, nil
}

// all yields the settings as text, by the names of their flags.
func (s settings) all() iter.Seq2[string, string] {
	fields := reflect.ValueOf(s)
	return func(yield func(name, value string) bool) {
		for i := range fields.NumField() {
			value := fields.Field(i)
			text := value.String()
			if list, ok := value.Interface().([]string); ok {
				text = strings.Join(list, ",")
			}
			if !yield(fields.Type().Field(i).Tag.Get("mapstructure"), text) {
				return
			}
		}
	}
}

// apply sets the flags that were not given on the command line.
func (s settings) apply(flags *pflag.FlagSet) error {
	for name, value := range s.all() {
		flag := flags.Lookup(name)
		if flag == nil || flag.Changed || value == "" {
			continue
		}
		if err := flag.Value.Set(value); err != nil {
			return usagef("setting %s (%s) is %q: %w", name, variableOf(name), value, plainBool(err))
		}
	}
	return nil
}

// variableOf is the environment variable of a setting.
func variableOf(name string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// defaultConfig is the configuration file's usual place, after the XDG base directory specification; "" for a
// user without a home.
func defaultConfig(env *Env) string {
	if folder := env.variable("XDG_CONFIG_HOME"); folder != "" {
		return filepath.Join(folder, "liqoctl", "config.yaml")
	}
	if home := env.variable("HOME"); home != "" {
		return filepath.Join(home, ".config", "liqoctl", "config.yaml")
	}
	return ""
}
