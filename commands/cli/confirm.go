package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"liqonet.io/liqonet/commands/ui"
)

var errDeclined = errors.New("not confirmed: nothing was changed")

// confirm asks for confirmation before a destructive action. Without a terminal it does not ask, because there is no
// user to answer.
func (e *Env) confirm(ctx context.Context, yes bool, question string) error {
	if yes || !e.InTerminal || !e.ErrTerminal {
		return nil
	}
	fmt.Fprintf(e.Err, "%s [y/N] ", ui.VisibleCell(question))
	answer := make(chan string, 1)
	go func() { // a signal ends the command, independent of the terminal
		text, _ := bufio.NewReader(e.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(e.Err)
		return context.Cause(ctx)
	case text := <-answer:
		if text == "y" || text == "yes" {
			return nil
		}
		return errDeclined
	}
}
