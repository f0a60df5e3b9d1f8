// Package flows measures the effects of a fault on packets and connections between two pods: a datagram every ten
// milliseconds, lasting TCP streams, and new connections. The server is the program workload, verb serve.
package flows

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Intervals of a measurement, and the times after which an answer counts as lost. The kernel repeats a lost SYN after a
// second, and again after two more: a connection that fails has lost three.
const (
	every        = 10 * time.Millisecond
	connectEvery = 100 * time.Millisecond
	answerWithin = 2 * time.Second
	dialWithin   = 5 * time.Second
	openWithin   = time.Minute // of the streams, before the measurement begins
	lasting      = 4           // streams to each host, unless the caller has another number
	echoPort     = "7"
	lossesMost   = 100
)

// Result is the measurement of one path.
type Result struct {
	To     string `json:"to"`
	Sent   int    `json:"sent"`   // datagrams
	Lost   int    `json:"lost"`   // of them, not answered within two seconds
	Gone   int    `json:"gone"`   // of these, not answered later either, until two seconds after the end
	Broken int    `json:"broken"` // streams
	Tried  int    `json:"tried"`  // new connections
	Failed int    `json:"failed"` // of them, not established within five seconds
	// Without is the longest time in which all datagrams were lost, Pause the longest one without a byte of a stream.
	Without time.Duration `json:"withoutNanoseconds"`
	// Stalled is the longest time in which no datagram was sent: the delay of the machine itself.
	Stalled time.Duration `json:"stalledNanoseconds"`
	// Losses are the first times of loss.
	Losses []Loss        `json:"losses"`
	Pause  time.Duration `json:"pauseNanoseconds"`
}

// Loss is a run of consecutive lost datagrams.
type Loss struct {
	From time.Time `json:"from"` // when the first of them was sent
	Lost int       `json:"lost"`
}

// Measurement is a running measurement.
type Measurement struct {
	stop  context.CancelFunc
	paths []*path
	all   sync.WaitGroup
}

// Begin opens that many streams to port 7 of each host, and measures until End. 0: four.
func Begin(ctx context.Context, hosts []string, streams int) (*Measurement, error) {
	if len(hosts) == 0 {
		return nil, fmt.Errorf("no host to measure")
	}
	if streams == 0 {
		streams = lasting
	}
	ctx, stop := context.WithCancel(ctx)
	m := &Measurement{stop: stop}
	for _, host := range hosts {
		p, err := open(ctx, host, streams)
		if err != nil {
			m.End()
			return nil, err
		}
		m.paths = append(m.paths, p)
	}
	for _, p := range m.paths {
		m.all.Go(func() { p.datagrams.run(ctx) })
		m.all.Go(func() { p.connections.run(ctx) })
		for _, s := range p.streams {
			m.all.Go(func() { s.run(ctx) })
		}
	}
	return m, nil
}

// End ends the measurement, waits for late answers, and returns the result of each path.
func (m *Measurement) End() []Result {
	m.stop()
	m.all.Wait()
	results := make([]Result, len(m.paths))
	for i, p := range m.paths {
		p.close()
		results[i] = p.result(p.datagrams.count())
	}
	return results
}

// Lap returns the results since the last lap, or since the beginning; the measurement goes on. Datagrams of the last
// two seconds, which may still be answered, belong to the next lap.
func (m *Measurement) Lap() []Result {
	results := make([]Result, len(m.paths))
	for i, p := range m.paths {
		results[i] = p.result(p.datagrams.before(time.Now().Add(-answerWithin)))
	}
	return results
}

// path is the measurement of the path to one host.
type path struct {
	host        string
	datagrams   *datagrams
	connections *connections
	streams     []*stream
}

func open(ctx context.Context, host string, streams int) (*path, error) {
	d, err := openDatagrams(ctx, host)
	if err != nil {
		return nil, err
	}
	p := &path{host: host, datagrams: d, connections: &connections{host: host}}
	for range streams {
		s, err := openStream(ctx, host)
		if err != nil {
			p.close()
			return nil, err
		}
		p.streams = append(p.streams, s)
	}
	return p, nil
}

func (p *path) close() {
	_ = p.datagrams.conn.Close()
	for _, s := range p.streams {
		_ = s.conn.Close()
	}
}

// result returns the results since the last one, of datagrams up to a number.
func (p *path) result(end int) Result {
	r := Result{To: p.host}
	r.Tried, r.Failed = p.connections.lap()
	p.datagrams.lap(&r, end)
	for _, s := range p.streams {
		pause, broken := s.lap()
		r.Pause = max(r.Pause, pause)
		if broken {
			r.Broken++
		}
	}
	return r
}
