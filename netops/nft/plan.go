package nft

// Plan is the difference between two tables as a transaction.
type Plan struct{}

// Diff returns what makes of the table "have" the table "want". A want without a name removes the table.
func Diff(have, want Table) Plan { return Plan{} }

// Empty reports whether there is nothing to do.
func (p Plan) Empty() bool { return true }

// String is the transaction in the input language of nft(8).
func (p Plan) String() string { return "" }

// String is the table in the input language of nft(8).
func (t Table) String() string { return t.Name }
