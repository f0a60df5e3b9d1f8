// Package units writes measurements as people read them.
package units

import (
	"fmt"
	"time"
)

// Unknown stands for what nobody has measured.
const Unknown = "-"

// RoundTrip writes a round trip, such as "1.3ms". Negative: not known.
func RoundTrip(d time.Duration) string {
	if d < 0 {
		return Unknown
	}
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

// Percent writes a share from 0 to 1, such as "2%".
func Percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// Bytes writes a number of bytes with a binary unit, such as "1.5MiB".
func Bytes(n int64) string {
	const kibi = 1024
	if n < kibi {
		return fmt.Sprintf("%dB", n)
	}
	value, unit := float64(n)/kibi, 0
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for value >= kibi {
		value /= kibi
		unit++
	}
	return fmt.Sprintf("%.1f%s", value, units[unit])
}

// Rate writes bits a second with a decimal unit, such as "1.5Gbit/s".
func Rate(bits float64) string {
	units := []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}
	unit := 0
	for bits >= 1000 && unit < len(units)-1 {
		bits /= 1000
		unit++
	}
	return fmt.Sprintf("%.1f%s", bits, units[unit])
}
