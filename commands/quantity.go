package commands

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"liqonet.io/liqonet/internal/units"
)

// unknown stands in a table for what nobody has measured.
const unknown = units.Unknown

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
