//go:build linux && lab

package gateway

import (
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/testbed/require"
)

// healingLimit is the time within which external changes to a gateway's object are undone: usually two seconds. A busy
// machine needs longer.
const healingLimit = 5 * time.Minute

// TestLabGatewayObjects deletes and alters the objects that a gateway's helper writes, in a real API server: there,
// labels remove an object from a watch.
func TestLabGatewayObjects(t *testing.T) {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	require.NoError(t, err)
	const namespace = "healing-gateway"
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	healGateway(t, client, namespace, healingLimit)
}
