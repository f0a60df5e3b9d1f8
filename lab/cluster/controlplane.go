package cluster

import (
	"fmt"
	"path/filepath"
	"strings"

	"liqonet.io/liqonet/lab/pki"
	"liqonet.io/liqonet/lab/process"
	"liqonet.io/liqonet/lab/spec"
)

// Monitoring of nodes, faster than the defaults of 50s and 5s: a silent node is NotReady after monitorGrace, and a
// node's report takes effect after monitorPeriod.
const (
	monitorGrace  = "20s"
	monitorPeriod = "1s"
)

// ControlPlane writes the control plane's files to its disk and returns its services: etcd, API server,
// controller manager and scheduler. tools is the folder of the lab's programs.
func (id *Identity) ControlPlane(disk, tools string) ([]process.Service, error) {
	p := controlPlane{id: id, disk: disk, kube: filepath.Join(tools, "kube")}
	if err := p.writeKeys(); err != nil {
		return nil, fmt.Errorf("keys of control plane %s: %w", id.Cluster.Name, err)
	}
	if err := p.writeConfig(); err != nil {
		return nil, fmt.Errorf("audit policy of control plane %s: %w", id.Cluster.Name, err)
	}
	return []process.Service{
		p.service("etcd", p.etcd()),
		p.service("kube-apiserver", p.apiServer()),
		p.service("kube-controller-manager", p.controllerManager()),
		p.service("kube-scheduler", p.scheduler()),
	}, nil
}

type controlPlane struct {
	id   *Identity
	disk string
	kube string // the program
}

func (p controlPlane) service(name string, flags []string) process.Service {
	return process.Service{
		Name: name,
		Args: append([]string{p.kube, name}, flags...),
		Env:  []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + p.disk},
		Log:  filepath.Join(p.disk, "log", name+".log"),
	}
}

// key is the path of a file that writeKeys writes.
func (p controlPlane) key(name string) string { return filepath.Join(p.disk, "pki", name) }

func (p controlPlane) writeKeys() error {
	c := p.id.Cluster
	authority, err := p.id.authority.Pair()
	if err != nil {
		return err
	}
	signing, verifying, err := pki.SigningKey()
	if err != nil {
		return err
	}
	f := files{"sa.key": signing, "sa.pub": verifying}
	f.addPair("ca", authority)
	frontProxy, err := pki.NewAuthority("front-proxy-" + c.Name)
	if err != nil {
		return err
	}
	f["front-proxy-ca.crt"] = frontProxy.Certificate()
	proxyClient, err := frontProxy.Issue(pki.Subject{User: "front-proxy-client"})
	if err != nil {
		return err
	}
	f.addPair("front-proxy-client", proxyClient)

	service := "kubernetes.default.svc"
	for name, subject := range map[string]pki.Subject{
		"apiserver": {
			User:      "kube-apiserver",
			Names:     []string{"localhost", "kubernetes", "kubernetes.default", service, service + ".cluster.local"},
			Addresses: append(c.ControlPlaneAddresses(), localhost, c.ControlPlaneAddress(), c.APIService()),
		},
		"apiserver-kubelet-client": {User: "kube-apiserver-kubelet-client", Group: "system:masters"},
	} {
		pair, err := p.id.authority.Issue(subject)
		if err != nil {
			return err
		}
		f.addPair(name, pair)
	}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		pair, err := p.id.authority.Issue(pki.Subject{User: "system:" + name})
		if err != nil {
			return err
		}
		if f[name+".kubeconfig"], err = p.id.kubeconfig(pair); err != nil {
			return err
		}
	}
	return f.write(filepath.Join(p.disk, "pki"))
}

// AuditLog is the file, on a control plane's disk, in which its API server logs requests, one a line (JSON).
func AuditLog(disk string) string { return filepath.Join(disk, "log", "audit.log") }

// Files of the API server: its audit policy, and the limits of critical pods.
const (
	auditPolicy = "audit.yaml"
	admission   = "admission.yaml"
)

func (p controlPlane) writeConfig() error {
	all := files{}
	for _, name := range []string{auditPolicy, admission} {
		text, err := config.ReadFile("config/" + name)
		if err != nil {
			return err
		}
		all[name] = text
	}
	return all.write(p.disk)
}

func (p controlPlane) etcd() []string {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return []string{
		"--name=lab",
		"--data-dir=" + filepath.Join(p.disk, "etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=lab=" + peer,
		"--unsafe-no-fsync", // the data does not outlive the machine
		"--log-level=warn",
	}
}

func (p controlPlane) apiServer() []string {
	c := p.id.Cluster
	all := "0.0.0.0"
	if c.HasIPv6() {
		all = "::" // of both families
	}
	var limits []string
	if c.LimitCriticalPods {
		limits = []string{"--admission-control-config-file=" + filepath.Join(p.disk, admission)}
	}
	return append(limits,
		"--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address="+c.ControlPlaneAddresses()[0].String(),
		"--bind-address="+all,
		fmt.Sprintf("--secure-port=%d", spec.APIPort),
		"--cert-dir="+filepath.Join(p.disk, "apiserver"),
		"--tls-cert-file="+p.key("apiserver.crt"),
		"--tls-private-key-file="+p.key("apiserver.key"),
		"--client-ca-file="+p.key("ca.crt"),
		"--kubelet-client-certificate="+p.key("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+p.key("apiserver-kubelet-client.key"),
		"--kubelet-certificate-authority="+p.key("ca.crt"),
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--service-account-key-file="+p.key("sa.pub"),
		"--service-account-signing-key-file="+p.key("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-cluster-ip-range="+list(c.ServiceCIDRs()),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--audit-policy-file="+filepath.Join(p.disk, auditPolicy),
		"--audit-log-path="+AuditLog(p.disk),
		"--audit-log-maxsize=1000",         // megabytes: one file is all of it
		"--enable-aggregator-routing=true", // no kube-proxy runs beside the API server
		"--requestheader-client-ca-file="+p.key("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file="+p.key("front-proxy-client.crt"),
		"--proxy-client-key-file="+p.key("front-proxy-client.key"),
		"--profiling=false",
	)
}

func (p controlPlane) controllerManager() []string {
	c, grace := p.id.Cluster, monitorGrace
	if c.ControlPlaneOnly {
		grace = "24h" // its nodes are simulated, and not all of them renew their leases
	}
	return append(p.client("kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.key("sa.key"),
		"--root-ca-file="+p.key("ca.crt"),
		"--cluster-signing-cert-file="+p.key("ca.crt"),
		"--cluster-signing-key-file="+p.key("ca.key"),
		"--client-ca-file="+p.key("ca.crt"),
		"--requestheader-client-ca-file="+p.key("front-proxy-ca.crt"),
		"--cluster-name="+c.Name,
		"--cluster-cidr="+list(c.PodCIDRs()),
		"--service-cluster-ip-range="+list(c.ServiceCIDRs()),
		"--allocate-node-cidrs=true",
		"--node-monitor-grace-period="+grace,
		"--node-monitor-period="+monitorPeriod,
		// The default is a folder of the host's.
		"--flex-volume-plugin-dir="+filepath.Join(p.disk, "volumeplugins"),
	)
}

func (p controlPlane) scheduler() []string { return p.client("kube-scheduler") }

// list is the value of a flag that takes several.
func list[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = one.String()
	}
	return strings.Join(texts, ",")
}

// client are the flags of a program that has its own kubeconfig, and no second instance.
func (p controlPlane) client(name string) []string {
	kubeconfig := p.key(name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--cert-dir=" + filepath.Join(p.disk, name),
		"--leader-elect=false",
	}
}
