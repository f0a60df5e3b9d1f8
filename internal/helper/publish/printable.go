package publish

// Printable replaces characters that a terminal would interpret: the kernel accepts any bytes in a name.
func Printable(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}
