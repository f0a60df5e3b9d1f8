package wireguard

import "testing"

// FuzzDecodeUAPI decodes arbitrary text as the state of a device.
func FuzzDecodeUAPI(f *testing.F) {
	f.Add("private_key=00\nlisten_port=1\npublic_key=zz\nallowed_ip=0.0.0.0/0\n")
	f.Add("public_key=0000000000000000000000000000000000000000000000000000000000000001\nendpoint=192.0.2.1:1\nlast_handshake_time_sec=1\nlast_handshake_time_nsec=5\nrx_bytes=-1\n")
	f.Add("=\n\n===")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := decodeUAPI(text); err != nil && len(d.Peers) > 0 {
			t.Errorf("%q: an error and a device: %v", text, err)
		}
	})
}
