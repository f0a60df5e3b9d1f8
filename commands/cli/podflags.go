package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/templates"
)

// PodFlags adds the flags that hold for all pods of liqonet in a cluster. The empty value restores the default.
func PodFlags(cmd *cobra.Command, to *templates.Pods) {
	flags := cmd.Flags()
	checked(to,
		ui.AddFlag(flags, &to.Labels, "pod-labels", setting.ManyPairs, "labels of all pods of liqonet", setting.Pairs(&to.Labels, setting.ManyPairs, asItIs)),
		ui.AddFlag(flags, &to.Annotations, "pod-annotations", setting.OnePair, "annotation of all pods of liqonet; repeat for more", setting.Pairs(&to.Annotations, setting.OnePair, asItIs)),
		ListFlag(flags, &to.ImagePullSecrets, "image-pull-secret", "NAME,...", "Secrets in liqonet's namespace with the registry's credentials",
			func(text string) (string, error) { return text, nil }),
		ui.AddFlag(flags, &to.PriorityClass, "priority-class", "NAME",
			"priority class of all pods of liqonet (default: system-node-critical on nodes, system-cluster-critical for gateways)",
			func(text string) (*string, error) { return &text, nil }),
		ui.AddFlag(flags, &to.Requests, "requests", "NAME=QUANTITY,...", "CPU and memory that each pod requests (default cpu=10m,memory=32Mi)", setting.Pairs(&to.Requests, "NAME=QUANTITY,...", quantity)),
		ui.AddFlag(flags, &to.Limits, "limits", "NAME=QUANTITY,...", "limits of CPU and memory of each pod (default memory=256Mi)", setting.Pairs(&to.Limits, "NAME=QUANTITY,...", quantity)))
}

// gatewayPodFlags adds the flags that select the nodes of gateways.
func gatewayPodFlags(cmd *cobra.Command, to *templates.Pods) {
	checked(to,
		ui.AddFlag(cmd.Flags(), &to.GatewayNodeSelector, "gateway-node-selector", setting.ManyPairs, "labels of the nodes that may run gateways", setting.Pairs(&to.GatewayNodeSelector, setting.ManyPairs, asItIs)),
		ListFlag(cmd.Flags(), &to.GatewayTolerations, "gateway-toleration", "KEY[=VALUE][:EFFECT],...",
			"taints that gateways tolerate", toleration))
}

// checked makes flags reject values that no pod can have.
func checked(pods *templates.Pods, flags ...*pflag.Flag) {
	for _, f := range flags {
		f.Value = checkedValue{f.Value, pods}
	}
}

// checkedValue is the value of a flag that sets a field of pods.
type checkedValue struct {
	pflag.Value

	pods *templates.Pods
}

// Set implements pflag.Value.
func (v checkedValue) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	return v.pods.Validate()
}

// asItIs takes any value of a pair.
func asItIs(_, value string) (string, error) { return value, nil }

// ListFlag adds a flag that takes values, separated by commas or by repeating the flag. The empty value is none.
func ListFlag[T any](flags *pflag.FlagSet, to *[]T, name, kind, usage string, read func(text string) (T, error)) *pflag.Flag {
	return ui.AddFlag(flags, to, name, kind, usage, func(text string) ([]T, error) {
		if text == "" {
			return []T{}, nil
		}
		return ui.Appended(*to, text, read)
	})
}

func quantity(_, text string) (apiresource.Quantity, error) {
	q, err := apiresource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return q, fmt.Errorf("%q is not a quantity such as 100m or 64Mi", text)
	}
	return q, nil
}

// toleration parses a toleration in the format of kubectl taint. Without a value it matches any value, without an
// effect all effects.
func toleration(text string) (corev1.Toleration, error) {
	taint, effect, _ := strings.Cut(text, ":")
	key, value, valued := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if valued {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	return t, nil
}
