package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// Bounds of logs: a cluster may have thousands of nodes.
const (
	logBytes = 1 << 20 // of a container, the latest
	logLines = 5000
	logPods  = 60 // of a cluster
)

// addLogs adds logs of liqonet's pods, also those before a restart: gateways first, then nodes with problems.
func (p part) addLogs(ctx context.Context) {
	pods, err := kube.All[*corev1.Pod](ctx, p.cluster, records.LabelComponent)
	if err != nil {
		p.missing("logs", err)
		return
	}
	rank := func(pod *corev1.Pod) int {
		switch {
		case pod.Labels[records.LabelComponent] == records.ComponentGateway:
			return 0
		case !kube.PodReady(pod):
			return 1
		}
		return 2
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	if more := len(pods) - logPods; more > 0 {
		p.missing("logs", fmt.Errorf("those of %d pods are skipped: there are %d", more, len(pods)))
		pods = pods[:logPods]
	}
	refused := make(map[string]error) // by component: the error is the same for all pods
	for _, pod := range pods {
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			runs := map[bool]string{false: ".log"}
			if s.RestartCount > 0 {
				runs[true] = ".previous.log"
			}
			for previous, suffix := range runs {
				text, err := p.log(ctx, pod, s.Name, previous)
				if err != nil {
					refused[pod.Labels[records.LabelComponent]] = err
					continue
				}
				p.add(fmt.Sprintf("%s/logs/%s/%s%s", p.folder, pod.Name, s.Name, suffix), text)
			}
		}
	}
	for _, of := range slices.Sorted(maps.Keys(refused)) {
		p.missing("logs of "+of, refused[of])
	}
}

func (p part) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) (string, error) {
	lines := int64(logLines)
	stream, err := p.cluster.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true, TailLines: &lines,
	}).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = stream.Close() }()
	return latest(stream, logBytes)
}

// latest returns the last bytes of a text. A kubelet with a byte limit returns the first bytes instead.
func latest(text io.Reader, limit int) (string, error) {
	var end []byte
	for chunk := make([]byte, 64<<10); ; {
		n, err := text.Read(chunk)
		end = append(end, chunk[:n]...)
		end = end[max(0, len(end)-limit):]
		switch {
		case errors.Is(err, io.EOF):
			return string(end), nil
		case err != nil:
			return "", err
		}
	}
}
