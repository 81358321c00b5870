package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// The JSON of a command is part of the public contract. It is written down with the command, printed in docs/cli.md, and
// compared with what really comes out by the tests.
const (
	jsonForm = "json-form"
	jsonKeys = "json-keys"

	jsonObject  = ""      // one object
	jsonArrayOf = "array" // of objects
	jsonLines   = "lines" // an object a line
)

func withJSON(cmd *cobra.Command, form string, keys ...string) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[jsonForm], cmd.Annotations[jsonKeys] = form, strings.Join(keys, " ")
	return cmd
}
