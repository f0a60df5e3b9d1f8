package wireguard

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// engine is an implementation of WireGuard that carries the packets of one link.
type engine interface {
	read() (wgtypes.Device, error)
	configure(wgtypes.Config) error
	// start enables traffic while the link is up. It may be called again.
	start(mtu int) error
	// close closes the engine. The kernel's device continues to run; the userspace device ends, and its link with it.
	close() error
}

// kernelEngine configures the kernel's WireGuard, in the network namespace of the thread that opened the client.
type kernelEngine struct {
	name   string
	client *wgctrl.Client
}

func (e *kernelEngine) read() (wgtypes.Device, error) {
	d, err := e.client.Device(e.name)
	if err != nil {
		return wgtypes.Device{}, err
	}
	return *d, nil
}

func (e *kernelEngine) configure(cfg wgtypes.Config) error {
	return e.client.ConfigureDevice(e.name, cfg)
}

// start does nothing: the kernel's device runs while its link is up.
func (e *kernelEngine) start(int) error { return nil }

func (e *kernelEngine) close() error { return e.client.Close() }

// userspaceEngine is wireguard-go in this process.
type userspaceEngine struct {
	tun    *tunDevice
	device *device.Device
}

// newUserspaceEngine also creates the link, in the network namespace of the calling thread.
func newUserspaceEngine(name string, mtu int, log *slog.Logger) (*userspaceEngine, error) {
	t, err := openTUN(name, mtu)
	if err != nil {
		return nil, err
	}
	return newUserspaceDevice(t, log)
}

// newUserspaceDevice runs wireguard-go on a TUN.
func newUserspaceDevice(t *tunDevice, log *slog.Logger) (*userspaceEngine, error) {
	e := &userspaceEngine{tun: t, device: device.NewDevice(t, datagrams{conn.NewStdNetBind()}, deviceLogger(log))}
	err := limitBuffers(e.device)
	close(t.limited)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *userspaceEngine) read() (wgtypes.Device, error) {
	text, err := e.device.IpcGet()
	if err != nil {
		return wgtypes.Device{}, err
	}
	return decodeUAPI(text)
}

func (e *userspaceEngine) configure(cfg wgtypes.Config) error {
	return e.device.IpcSet(encodeUAPI(cfg))
}

// start opens the UDP sockets, in the network namespace of the calling thread.
func (e *userspaceEngine) start(mtu int) error {
	select {
	case <-e.device.Wait(): // it closes itself when its link is deleted
		return os.ErrClosed
	default:
		e.tun.setMTU(mtu)
		return e.device.Up()
	}
}

func (e *userspaceEngine) close() error {
	e.device.Close()
	return nil
}

// deviceLogger passes wireguard-go's messages to slog. They identify peers by a part of the public key.
func deviceLogger(log *slog.Logger) *device.Logger {
	lines := func(write func(string, ...any)) func(string, ...any) {
		return func(format string, args ...any) { write(fmt.Sprintf(format, args...)) }
	}
	return &device.Logger{Verbosef: lines(log.Debug), Errorf: lines(log.Warn)}
}
