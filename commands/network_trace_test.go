package commands

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/trace"
)

func TestTraceOptions(t *testing.T) {
	parsed := func(args ...string) (o trace.Options, err error) {
		err = parse(t, func(env *Env, local *clusterFlags) *cobra.Command {
			return newNetworkTrace(env, local, recorder[trace.Options, trace.Result](&o))
		}, args...)
		return o, err
	}
	got, err := parsed("shop/web", "10.71.0.5", "--remote-context", "b", "--protocol", "UDP", "--port", "53", "--timeout", "1m")
	want := trace.Options{
		Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, From: "shop/web", To: "10.71.0.5",
		Protocol: trace.UDP, Port: 53, Timeout: got.Timeout,
	}
	if diff := cmp.Diff(want, got, sameOptions); diff != "" || !errors.Is(err, errAsked) {
		t.Errorf("%v, options (-want +got):\n%s", err, diff)
	}
	for _, args := range [][]string{{"x", "y"}, {"x", "--remote-context", "b"}, {"x", "y", "--remote-context", "b", "--protocol", "sctp"}} {
		if _, err := parsed(args...); err == nil || errors.Is(err, errAsked) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

// TestDescribeTrace writes the traces of package trace's tests for people.
func TestDescribeTrace(t *testing.T) {
	files, err := filepath.Glob("../internal/trace/testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r trace.Result
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		golden(t, "trace-"+strings.TrimSuffix(filepath.Base(file), ".json"), describeTrace(r))
	}
}
