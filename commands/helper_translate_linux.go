package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/translation"
	"liqonet.io/liqonet/internal/translation/authority"
)

// helperTranslateFlags are the flags of `helper translate`.
type helperTranslateFlags struct {
	namespace string
	address   string
	authority string
}

// newHelperTranslate returns the command that the translation service's Deployment runs.
func newHelperTranslate(env *Env, run func(translation.Service, context.Context) error) *cobra.Command {
	var f helperTranslateFlags
	cmd := &cobra.Command{
		Use:   "translate",
		Short: "Serve the translation of addresses between clusters over HTTPS",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.options(env)
			if err != nil {
				return err
			}
			if s.Client, err = inClusterClient(env, s.Namespace, nil); err != nil {
				return err
			}
			return run(s, cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", "", "`NAMESPACE` of liqonet (default: $NAMESPACE)")
	flags.StringVar(&f.address, "address", ":8443", "`ADDRESS:PORT` to listen at")
	flags.StringVar(&f.authority, "authority", "/etc/liqonet/authority", "`FOLDER` of the certificate authority")
	return cmd
}

// options returns the service, without a client.
func (f *helperTranslateFlags) options(env *Env) (s translation.Service, err error) {
	s.Address, s.Log = f.address, helperLog(env)
	if err := given(env, required{&s.Namespace, "namespace", f.namespace, "NAMESPACE"}); err != nil {
		return s, err
	}
	certificate, err := os.ReadFile(filepath.Join(f.authority, corev1.TLSCertKey))
	if err != nil {
		return s, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(f.authority, corev1.TLSPrivateKeyKey))
	if err != nil {
		return s, fmt.Errorf("read the certificate authority: %w", err)
	}
	if s.Authority, err = authority.Parse(certificate, key); err != nil {
		return s, fmt.Errorf("certificate authority in %s: %w", f.authority, err)
	}
	return s, nil
}
