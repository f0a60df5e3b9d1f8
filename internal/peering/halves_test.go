package peering

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Variables of a process that is one half of a command: its cluster, and the folder with the files of both halves.
const (
	halfVariable   = "LIQONET_TEST_HALF"
	folderVariable = "LIQONET_TEST_FOLDER"
)

// half is what a process has made of its cluster.
type half struct {
	Peering   records.Peering
	Drivers   []records.Driver // of its gateways
	Preshared []string         // identifiers of their preshared keys
	Changed   bool
}

// TestTwoProcesses connects two clusters by two processes, each with one cluster, that exchange files with offers only:
// first from nothing, then again, then with a third gateway on one side.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(halfVariable); name != "" {
		runHalf(t, name, os.Getenv(folderVariable))
		return
	}
	folder := t.TempDir()
	var processes sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		processes.Go(func() {
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTwoProcesses$", "-test.timeout=2m")
			child.Env = append(os.Environ(), halfVariable+"="+name, folderVariable+"="+folder)
			if output, err := child.CombinedOutput(); err != nil {
				t.Errorf("half %s: %v\n%s", name, err, output)
			}
		})
	}
	processes.Wait()
	for _, run := range []struct {
		name     string
		gateways [2]int
		changed  bool
	}{{"new", [2]int{2, 2}, true}, {"again", [2]int{2, 2}, false}, {"third", [2]int{3, 2}, true}} {
		var halves [2]half
		for i, name := range []string{"a", "b"} {
			text, err := os.ReadFile(filepath.Join(folder, run.name+"-result-"+name))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &halves[i]))
			assert.Equal(t, run.name+": changed", run.changed, halves[i].Changed)
			assert.Equal(t, run.name+": gateways", run.gateways[i], len(halves[i].Peering.Gateways))
		}
		checkHalves(t, run.name, halves[0], halves[1])
		checkHalves(t, run.name, halves[1], halves[0])
	}
}

// checkHalves checks that what one half has written of the other one is what that one has.
func checkHalves(t *testing.T, run string, own, far half) {
	t.Helper()
	assert.Equal(t, run+": ranges of this cluster as the peer reaches them", fmt.Sprint(far.Peering.Peer.CIDRs()), fmt.Sprint(own.Peering.Local.CIDRs()))
	assert.Equal(t, run+": MTU", far.Peering.MTU, own.Peering.MTU)
	if own.Peering.Role == far.Peering.Role {
		t.Errorf("%s: both are the %s", run, own.Peering.Role)
	}
	for i, g := range own.Peering.Gateways {
		for j, tunnel := range g.Tunnels {
			if tunnel.Driver != far.Drivers[j] || own.Peering.Role == records.Client && len(tunnel.Endpoints) == 0 {
				t.Errorf("%s: tunnel %d-%d: %+v", run, i+1, j+1, tunnel)
			}
		}
	}
	for _, id := range slices.Concat(own.Preshared, far.Preshared) {
		assert.Equal(t, run+": preshared key", own.Preshared[0], id)
	}
}

// runHalf is one process.
func runHalf(t *testing.T, name, folder string) {
	w, peer, role := fakecluster.New("a",
		fakecluster.Node{Name: "a1", PodCIDR: "10.244.1.0/24", Address: "172.31.1.11"},
		fakecluster.Node{Name: "a2", PodCIDR: "10.244.2.0/24", Address: "172.31.1.12"}), "b", records.Client
	if name == "b" {
		w, peer, role = fakecluster.New("b",
			fakecluster.Node{Name: "b1", PodCIDR: "10.244.1.0/24", Address: "172.31.2.11"},
			fakecluster.Node{Name: "b2", PodCIDR: "10.244.2.0/24", Address: "172.31.2.12"}), "a", records.Server
	}
	fakecluster.Run(t, w)
	o := unchangedOptions(w, w)
	for _, run := range []string{"new", "again", "third"} {
		if run == "third" && name == "a" {
			o.Local.Gateways = 3
		}
		o.Update = run == "third"
		o.Local.Cluster = w.Cluster
		changed, err := plan.Locked(t.Context(), &fakecluster.Recorder{}, func(ctx context.Context) (bool, error) {
			c := newConnector(o, &fakecluster.Recorder{})
			c.link, c.local.wanted.Initial = files(filepath.Join(folder, run), name, peer), role
			err := c.run(ctx)
			return c.changed(), err
		}, &o.Local.Cluster)
		require.NoError(t, err)
		result := half{Peering: w.Peering(t), Changed: changed}
		for _, id := range result.Peering.GatewayIDs() {
			k, err := inventory.ReadKeys(t.Context(), w.Cluster, id)
			require.NoError(t, err)
			result.Drivers, result.Preshared = append(result.Drivers, k.Driver()), append(result.Preshared, inventory.PresharedID(k.Preshared))
			checkSecret(t, filepath.Join(folder, run), k)
		}
		text, err := json.Marshal(result)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, run+"-result-"+name), text, 0o600))
	}
}

// files is a Link: it writes each offer into a file, and reads that of the peer's same round.
func files(prefix, own, peer string) Link {
	round := 0
	return func(ctx context.Context, offer records.Offer) (records.Offer, error) {
		round++
		text, err := records.Encode(offer)
		if err != nil {
			return offer, err
		}
		name := fmt.Sprintf("%s-%s-%d", prefix, own, round)
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			return offer, err
		}
		if err := os.Rename(name+".new", name); err != nil {
			return offer, err
		}
		for {
			answer, err := os.ReadFile(fmt.Sprintf("%s-%s-%d", prefix, peer, round))
			if err == nil {
				return records.Decode[records.Offer](string(answer))
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return offer, fmt.Errorf("offer %d of cluster %q: %w", round, peer, ctx.Err())
			}
		}
	}
}

// checkSecret checks that no file has a key that is a secret.
func checkSecret(t *testing.T, prefix string, k *inventory.Keys) {
	t.Helper()
	names, err := filepath.Glob(prefix + "-?-*")
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, key := range []inventory.Secret{k.Private, k.Preshared} {
			raw := key()
			if strings.Contains(string(text), raw.String()) || strings.Contains(string(text), string(raw[:])) {
				t.Errorf("%s has a secret key", filepath.Base(name))
			}
		}
	}
	if len(names) == 0 {
		t.Error("no offers")
	}
}
