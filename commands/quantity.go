package commands

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// unknown stands in a table for what nobody has measured.
const unknown = "-"

func orDash(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// seconds writes how long something took, such as "0.3s" or "2m5s".
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// age writes how long ago something was, as kubectl does: "12s" or "3m5s". Negative: not known.
func age(d time.Duration) string {
	if d < 0 {
		return unknown
	}
	return duration.HumanDuration(d)
}

// roundTrip writes a round trip, such as "1.3ms". Negative: not known.
func roundTrip(d time.Duration) string {
	if d < 0 {
		return unknown
	}
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

// percent writes a share from 0 to 1, such as "2%".
func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// byteCount writes a number of bytes with a binary unit, such as "1.5MiB".
func byteCount(n int64) string {
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

// bitRate writes bits a second with a decimal unit, such as "1.5Gbit/s".
func bitRate(bits float64) string {
	units := []string{"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}
	unit := 0
	for bits >= 1000 && unit < len(units)-1 {
		bits /= 1000
		unit++
	}
	return fmt.Sprintf("%.1f%s", bits, units[unit])
}
