package ui

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Unknown is the cell of a table for a value that was not measured.
const Unknown = "-"

// OrDash returns a dash for an empty text.
func OrDash(text string) string { return cmp.Or(text, Unknown) }

// Seconds writes how long something took, such as "0.3s" or "2m5s".
func Seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Age writes how long ago something was, as kubectl does: "12s" or "3m5s".
func Age(d time.Duration) string { return duration.HumanDuration(d) }

// RoundTrip writes a round trip, such as "1.3ms".
func RoundTrip(d time.Duration) string {
	return fmt.Sprintf("%.1fms", float64(d)/float64(time.Millisecond))
}

// Percent writes a share from 0 to 1, such as "2%".
func Percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

// ByteCount writes a number of bytes with a binary unit, such as "1.5MiB".
func ByteCount(n int64) string {
	const kibi = 1024
	if n < kibi {
		return fmt.Sprintf("%dB", n)
	}
	return scaled(float64(n)/kibi, kibi, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
}

// BitRate writes bits a second with a decimal unit, such as "1.5Gbit/s".
func BitRate(bits float64) string {
	return scaled(bits, 1000, "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s")
}

// scaled writes a value with the largest unit that it reaches. Each unit is step times the one before.
func scaled(value, step float64, units ...string) string {
	for value >= step && len(units) > 1 {
		value, units = value/step, units[1:]
	}
	return fmt.Sprintf("%.1f%s", value, units[0])
}
