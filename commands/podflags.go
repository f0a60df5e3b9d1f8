package commands

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"liqonet.io/liqonet/templates"
)

// podFlags adds the flags that hold for all pods of liqonet in a cluster. The empty value restores the default.
func podFlags(cmd *cobra.Command, to *templates.Pods) {
	flags := cmd.Flags()
	pairsFlag(flags, &to.Labels, "pod-labels", manyPairs, "labels of all pods of liqonet", label)
	pairsFlag(flags, &to.Annotations, "pod-annotations", onePair, "annotation of all pods of liqonet; repeat for more", annotation)
	listFlag(flags, &to.ImagePullSecrets, "image-pull-secret", "NAME,...", "Secrets in liqonet's namespace with the registry's credentials",
		func(text string) (string, error) { return text, objectName(text) })
	addFlag(flags, &to.PriorityClass, "priority-class", "NAME",
		"priority class of all pods of liqonet (default: system-node-critical on nodes, system-cluster-critical for gateways)",
		func(text string) (*string, error) {
			if text == "" {
				return &text, nil
			}
			return &text, objectName(text)
		})
	pairsFlag(flags, &to.Requests, "requests", "NAME=QUANTITY,...", "CPU and memory that each pod requests (default cpu=10m,memory=32Mi)", quantity)
	pairsFlag(flags, &to.Limits, "limits", "NAME=QUANTITY,...", "limits of CPU and memory of each pod (default memory=256Mi)", quantity)
}

// gatewayPodFlags adds the flags that say on which nodes gateways run.
func gatewayPodFlags(cmd *cobra.Command, to *templates.Pods) {
	pairsFlag(cmd.Flags(), &to.GatewayNodeSelector, "gateway-node-selector", manyPairs, "labels of the nodes that may run gateways", label)
	listFlag(cmd.Flags(), &to.GatewayTolerations, "gateway-toleration", "KEY[=VALUE][:EFFECT],...",
		"taints that gateways and the translation service tolerate", toleration)
}

// onePair and manyPairs are the arguments of pairsFlag. With onePair a value may have commas.
const (
	onePair   = "KEY=VALUE"
	manyPairs = "KEY=VALUE,..."
)

// pairsFlag adds a flag that takes pairs of key and value, by repeating the flag, or with commas where kind is not onePair.
// The empty value is no pairs.
func pairsFlag[M ~map[K]V, K ~string, V any](flags *pflag.FlagSet, to *M, name, kind, usage string, read func(key, value string) (V, error)) {
	addFlag(flags, to, name, kind, usage, func(text string) (M, error) {
		if text == "" {
			return M{}, nil
		}
		all := maps.Clone(*to)
		if all == nil {
			all = make(M)
		}
		pairs := []string{text}
		if kind != onePair {
			pairs = strings.Split(text, ",")
		}
		for _, pair := range pairs {
			key, value, found := strings.Cut(pair, "=")
			if !found {
				return nil, fmt.Errorf("%q is not KEY=VALUE", pair)
			}
			parsed, err := read(key, value)
			if err != nil {
				return nil, err
			}
			all[K(key)] = parsed
		}
		return all, nil
	})
}

// listFlag adds a flag that takes values, separated by commas or by repeating the flag. The empty value is none.
func listFlag[T any](flags *pflag.FlagSet, to *[]T, name, kind, usage string, read func(text string) (T, error)) {
	addFlag(flags, to, name, kind, usage, func(text string) ([]T, error) {
		if text == "" {
			return []T{}, nil
		}
		return appended(*to, text, read)
	})
}

// refusedName is the error for a text that cannot be that; nil where there are no problems.
func refusedName(what, text string, problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("%q is not %s: %s", text, what, problems[0])
}

func label(key, value string) (string, error) {
	return value, errors.Join(refusedName("a label's key", key, validation.IsQualifiedName(key)),
		refusedName("a label's value", value, validation.IsValidLabelValue(value)))
}

func annotation(key, value string) (string, error) {
	return value, refusedName("an annotation's key", key, validation.IsQualifiedName(strings.ToLower(key)))
}

func objectName(text string) error {
	return refusedName("the name of an object", text, validation.IsDNS1123Subdomain(text))
}

func quantity(name, text string) (apiresource.Quantity, error) {
	if name != string(corev1.ResourceCPU) && name != string(corev1.ResourceMemory) {
		return apiresource.Quantity{}, fmt.Errorf("%q is neither cpu nor memory", name)
	}
	q, err := apiresource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		return q, fmt.Errorf("%q is not a quantity such as 100m or 64Mi", text)
	}
	return q, nil
}

// toleration reads a taint as kubectl taint writes it. Without a value it is any, without an effect all.
func toleration(text string) (corev1.Toleration, error) {
	taint, effect, _ := strings.Cut(text, ":")
	key, value, valued := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if valued {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		return t, fmt.Errorf("%q is no effect of taints: must be NoSchedule, PreferNoSchedule or NoExecute", effect)
	}
	_, err := label(key, value)
	return t, err
}
