package commands

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/translation"
	"liqonet.io/liqonet/internal/translation/authority"
	"liqonet.io/liqonet/templates"
)

// newHelperTranslate returns the command that the translation service's Deployment runs.
func newHelperTranslate(env *Env, run func(translation.Service, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use:   "translate",
		Short: "Serve the translation of addresses between clusters over HTTPS",
		Args:  arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := translateService(env, templates.AuthorityPath)
			if err != nil {
				return err
			}
			if s.Client, err = inClusterClient(env, s.Namespace, nil); err != nil {
				return err
			}
			return run(s, cmd.Context())
		},
	}
}

// translateService returns the service, without a client, with the certificate authority in a folder.
func translateService(env *Env, folder string) (s translation.Service, err error) {
	s.Address, s.Log = net.JoinHostPort("", strconv.Itoa(templates.TranslationPort)), helperLog(env)
	if err := given(env, map[string]*string{"NAMESPACE": &s.Namespace}); err != nil {
		return s, err
	}
	certificate, err := os.ReadFile(filepath.Join(folder, corev1.TLSCertKey))
	if err != nil {
		return s, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(folder, corev1.TLSPrivateKeyKey))
	if err != nil {
		return s, fmt.Errorf("read the certificate authority: %w", err)
	}
	if s.Authority, err = authority.Parse(certificate, key); err != nil {
		return s, fmt.Errorf("certificate authority in %s: %w", folder, err)
	}
	return s, nil
}
