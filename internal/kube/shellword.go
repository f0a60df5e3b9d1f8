package kube

import "strings"

// plain has the characters without a special meaning in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+:,./_-"

// ShellWord quotes a text for the command line in a hint, which users copy: a shell reads it as one word. Names of
// contexts come from kubeconfig files, which may be untrusted.
func ShellWord(text string) string {
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
