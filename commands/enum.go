package commands

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// enum is the value of a flag that takes one of a few words.
type enum[T ~string] struct {
	value   *T
	allowed []T
}

// enumFlag adds a flag that takes one of the allowed words to cmd, with completion. The default is *value.
func enumFlag[T ~string](cmd *cobra.Command, value *T, name, shorthand, usage string, allowed ...T) {
	flag := enum[T]{value, allowed}
	cmd.Flags().VarP(flag, name, shorthand, usage)
	complete(cmd, name, cobra.FixedCompletions(flag.words(), cobra.ShellCompDirectiveNoFileComp))
}

var _ pflag.Value = enum[string]{}

func (e enum[T]) String() string {
	if e.value == nil {
		return ""
	}
	return string(*e.value)
}

// Set takes one of the allowed words, in any case.
func (e enum[T]) Set(text string) error {
	i := slices.IndexFunc(e.allowed, func(a T) bool { return strings.EqualFold(string(a), text) })
	if i < 0 {
		return fmt.Errorf("not one of %s", strings.Join(e.words(), ", "))
	}
	*e.value = e.allowed[i]
	return nil
}

// Type is shown in help as the flag's argument.
func (e enum[T]) Type() string { return strings.Join(e.words(), "|") }

func (e enum[T]) words() []string {
	words := make([]string, len(e.allowed))
	for i, a := range e.allowed {
		words[i] = string(a)
	}
	return words
}

// complete sets how a flag's argument is completed. It panics where the flag does not exist: the tree of
// commands is then wrong for every user.
func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
