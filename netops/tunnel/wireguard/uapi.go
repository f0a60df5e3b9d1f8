package wireguard

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"go4.org/netipx"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// encodeUAPI encodes a change as a "set" operation of WireGuard's cross-platform protocol, without its first line
// (https://www.wireguard.com/xplatform/#configuration-protocol). The text contains keys.
func encodeUAPI(cfg wgtypes.Config) string {
	var b strings.Builder
	line := func(key, value string) { b.WriteString(key + "=" + value + "\n") }
	if cfg.PrivateKey != nil {
		line("private_key", hex.EncodeToString(cfg.PrivateKey[:]))
	}
	if cfg.ReplacePeers {
		line("replace_peers", "true")
	}
	if cfg.ListenPort != nil {
		line("listen_port", strconv.Itoa(*cfg.ListenPort))
	}
	if cfg.FirewallMark != nil {
		line("fwmark", strconv.Itoa(*cfg.FirewallMark))
	}
	for _, p := range cfg.Peers {
		encodePeer(p, line)
	}
	return b.String()
}

func encodePeer(p wgtypes.PeerConfig, line func(key, value string)) {
	line("public_key", hex.EncodeToString(p.PublicKey[:]))
	if p.UpdateOnly {
		line("update_only", "true")
	}
	if p.Remove {
		line("remove", "true")
		return
	}
	if p.PresharedKey != nil {
		line("preshared_key", hex.EncodeToString(p.PresharedKey[:]))
	}
	if p.Endpoint != nil {
		line("endpoint", unmap(p.Endpoint.AddrPort()).String())
	}
	if p.PersistentKeepaliveInterval != nil {
		line("persistent_keepalive_interval", strconv.Itoa(int(p.PersistentKeepaliveInterval.Seconds())))
	}
	if p.ReplaceAllowedIPs {
		line("replace_allowed_ips", "true")
	}
	for _, n := range p.AllowedIPs {
		line("allowed_ip", prefixOf(n).String())
	}
}

// decodeUAPI decodes the reply to a "get" operation. Unused keys are ignored; errors contain the key of the line, never
// its value.
func decodeUAPI(text string) (wgtypes.Device, error) {
	device := wgtypes.Device{Type: wgtypes.Userspace}
	for line := range strings.Lines(text) {
		var err error
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		switch {
		case key == "private_key":
			device.PrivateKey, err = parseHexKey(value)
		case key == "listen_port":
			device.ListenPort, err = strconv.Atoi(value)
		case key == "fwmark":
			device.FirewallMark, err = strconv.Atoi(value)
		case key == "public_key":
			var peer wgtypes.Peer
			peer.PublicKey, err = parseHexKey(value)
			device.Peers = append(device.Peers, peer)
		case len(device.Peers) > 0:
			err = decodePeerLine(&device.Peers[len(device.Peers)-1], key, value)
		}
		if err != nil {
			return wgtypes.Device{}, fmt.Errorf("read WireGuard state, line %q: %w", key, err)
		}
	}
	return device, nil
}

func decodePeerLine(peer *wgtypes.Peer, key, value string) (err error) {
	number := func() (n int64) {
		n, err = strconv.ParseInt(value, 10, 64)
		return n
	}
	switch key {
	case "preshared_key":
		peer.PresharedKey, err = parseHexKey(value)
	case "endpoint":
		var endpoint netip.AddrPort
		endpoint, err = netip.ParseAddrPort(value)
		peer.Endpoint = net.UDPAddrFromAddrPort(endpoint)
	case "persistent_keepalive_interval":
		peer.PersistentKeepaliveInterval = time.Duration(number()) * time.Second
	case "last_handshake_time_sec":
		if seconds := number(); seconds != 0 {
			peer.LastHandshakeTime = time.Unix(seconds, 0)
		}
	case "last_handshake_time_nsec":
		if nanoseconds := number(); !peer.LastHandshakeTime.IsZero() {
			peer.LastHandshakeTime = peer.LastHandshakeTime.Add(time.Duration(nanoseconds))
		}
	case "rx_bytes":
		peer.ReceiveBytes = number()
	case "tx_bytes":
		peer.TransmitBytes = number()
	case "allowed_ip":
		var prefix netip.Prefix
		prefix, err = netip.ParsePrefix(value)
		peer.AllowedIPs = append(peer.AllowedIPs, *netipx.PrefixIPNet(prefix))
	}
	return err
}

// parseHexKey parses 64 hexadecimal digits; its errors do not contain them.
func parseHexKey(value string) (wgtypes.Key, error) {
	raw, err := hex.DecodeString(value)
	if err != nil || len(raw) != wgtypes.KeyLen {
		return wgtypes.Key{}, fmt.Errorf("want %d hexadecimal digits", 2*wgtypes.KeyLen)
	}
	return wgtypes.Key(raw), nil
}
