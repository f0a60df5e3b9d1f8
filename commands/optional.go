package commands

import (
	"strconv"

	"github.com/spf13/cobra"
)

// optional is the value of a flag that says yes, no, or nothing.
type optional struct{ value **bool }

// optionalFlag adds a flag that may be left out: the value is then nil.
func optionalFlag(cmd *cobra.Command, value **bool, name, usage string) {
	cmd.Flags().VarPF(optional{value}, name, "", usage).NoOptDefVal = "true"
}

func (o optional) String() string {
	if o.value == nil || *o.value == nil {
		return ""
	}
	return strconv.FormatBool(**o.value)
}

// Set implements pflag.Value.
func (o optional) Set(text string) error {
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return errBool
	}
	*o.value = &yes
	return nil
}

// Type tells help how the flag is shown: as other flags that say yes or no.
func (optional) Type() string { return "bool" }
