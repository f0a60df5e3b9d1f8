package peering

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TestInterruptedNewKeys: connect makes new keys in the place of lost ones, and can be killed at any write and run again.
func TestInterruptedNewKeys(t *testing.T) {
	total := 0
	for n := 0; n <= total; n++ { // 0 counts
		t.Run(fmt.Sprintf("write%02d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := connected(t)
				before := publicKey(t, a, "b", 1)
				if err := a.kube.CoreV1().Secrets(a.Namespace).Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var count func() int
				a.set(func() { b.set(func() { count = killAt(n, cancel, a, b) }) })
				if _, err := Connect(ctx, connectOptions(a, b), &recorder{}); (err == nil) != (n == 0) {
					t.Fatalf("in spite of the interruption: %v", err)
				}
				total = max(total, count())
				noKill(a, b)
				if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
					t.Fatal(err)
				}
				checkGateways(t, a, b, 1, 1)
				if publicKey(t, a, "b", 1) == before {
					t.Error("the key is the one that was lost")
				}
			})
		})
	}
	if total < 3 {
		t.Errorf("only %d writes seen", total)
	}
}
