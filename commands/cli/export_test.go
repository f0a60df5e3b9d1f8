package cli

// FlagsOfSections returns the names of the flags in each section of help, for tests of the whole tree of commands.
func FlagsOfSections() map[string]string {
	all := make(map[string]string)
	for _, s := range sections {
		all[s.title] = s.flags
	}
	return all
}
