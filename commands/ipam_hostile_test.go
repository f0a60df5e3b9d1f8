package commands

import (
	"io"
	"testing"

	"liqonet.io/liqonet/internal/testbed/hostile"
	"liqonet.io/liqonet/ipam"
)

// TestAddressesObeyNobody: a text of others stays in its place.
func TestAddressesObeyNobody(t *testing.T) {
	hostile.CheckAnswers(t, func(text string) map[string]string {
		translate := translateOptions{output: formatWide}
		return map[string]string{
			"list": hostile.Written(func(w io.Writer) error {
				return table(w, reservationRows([]ipam.Reservation{hostile.Filled[ipam.Reservation](text)}, formatWide))
			}),
			"translate": hostile.Written(func(w io.Writer) error { return translate.print(w, hostile.Filled[translatedAddresses](text)) }),
		}
	})
}
