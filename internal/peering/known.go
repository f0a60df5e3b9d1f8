package peering

import (
	"encoding/json"
	"time"
)

// MarshalJSON omits what is not known: a program could take -1 or 0 for a measurement.
func (s PeeringStatus) MarshalJSON() ([]byte, error) {
	type plain PeeringStatus
	document := struct {
		plain

		HandshakeAge *time.Duration `json:"handshakeAgeNanoseconds,omitempty"`
		RTT          *time.Duration `json:"rttNanoseconds,omitempty"`
		ReportAge    *time.Duration `json:"reportAgeNanoseconds,omitempty"`
		Loss         *float64       `json:"loss,omitempty"`
		RxBytes      *int64         `json:"rxBytes,omitempty"`
		TxBytes      *int64         `json:"txBytes,omitempty"`
	}{plain: plain(s), HandshakeAge: known(s.HandshakeAge), RTT: known(s.RTT), ReportAge: known(s.ReportAge)}
	if document.ReportAge != nil {
		document.Loss, document.RxBytes, document.TxBytes = &s.Loss, &s.RxBytes, &s.TxBytes
	}
	return json.Marshal(document)
}

func known(d time.Duration) *time.Duration {
	if d < 0 {
		return nil
	}
	return &d
}
