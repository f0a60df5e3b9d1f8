package ui

import (
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestQuantities(t *testing.T) {
	got := []string{
		Seconds(340 * time.Millisecond), Seconds(125 * time.Second), Age(12400 * time.Millisecond),
		RoundTrip(1250 * time.Microsecond), Percent(0.5), ByteCount(1023), ByteCount(1536), ByteCount(3 << 30), OrDash(""),
		BitRate(999), BitRate(1.5e9),
	}
	want := []string{"0.3s", "2m5s", "12s", "1.2ms", "50%", "1023B", "1.5KiB", "3.0GiB", "-", "999.0bit/s", "1.5Gbit/s"}
	assert.Equal(t, "texts", want, got)
}

// TestColumns: columns of the wide table are in no other one, and what is not known is a dash.
func TestColumns(t *testing.T) {
	columns := Columns[string]{
		{Title: "NAME", Cell: func(s string) string { return s }},
		{Title: "UPPER", Wide: true, Cell: strings.ToUpper, Paint: func(cell string) string { return "<" + cell + ">" }},
	}
	for format, want := range map[Format]string{FormatText: "NAME\na\n-\n", FormatWide: "NAME   <UPPER>\na      <A>\n-      <->\n"} {
		var b strings.Builder
		require.NoError(t, columns.Print(&b, format, []string{"a", ""}))
		assert.Equal(t, string(format), want, b.String())
	}
}
