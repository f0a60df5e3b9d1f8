package nft

// Expr is a match or a statement of a rule.
type Expr struct{ text string }
