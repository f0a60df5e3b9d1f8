package ipam

import (
	"io"
	"testing"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/testbed/hostile"
	"liqonet.io/liqonet/ipam"
)

// TestAddressesObeyNobody: a text of others stays in its place.
func TestAddressesObeyNobody(t *testing.T) {
	hostile.CheckAnswers(t, func(text string) map[string]string {
		translate := translateOptions{output: ui.FormatWide}
		return map[string]string{
			"list": hostile.Written(func(w io.Writer) error {
				return reservationColumns().Print(w, ui.FormatWide, []ipam.Reservation{hostile.Filled[ipam.Reservation](text)})
			}),
			"translate": hostile.Written(func(w io.Writer) error { return translate.print(w, hostile.Filled[translatedAddresses](text)) }),
		}
	})
}
