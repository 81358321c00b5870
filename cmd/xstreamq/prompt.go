package main

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks before something that cannot be taken back. Without a terminal only --yes says yes.
func (a *app) confirm(format string, args ...any) error {
	if a.yes {
		return nil
	}
	question := escape(fmt.Sprintf(format, args...))
	if err := a.canAsk(question); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errRefused
}

func (a *app) canAsk(question string) error {
	if a.inTTY && a.errTTY {
		return nil
	}
	return &usageError{
		err:  fmt.Errorf("this asks %q, and there is no terminal to ask on", escape(question)),
		hint: "--yes, when you mean it",
	}
}
