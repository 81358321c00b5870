// Package doccheck keeps the Markdown pages of this repository true. Its tests
// fail when README.md is missing and when on any page
//
//   - a ```go block is not a whole file that go vet passes from a module of its own,
//     as a user's would, formatted by gofmt;
//   - a ```go fragment block does not parse as declarations or statements, is not
//     formatted, or names something of package xstreamq that is not exported;
//   - a line of a ```sh block that begins with "xstreamq" or "go run ./cmd/xstreamq"
//     (a leading "$ " aside) names a command or a flag that the CLI does not have;
//   - a relative link leads to no file, or its #anchor to no heading.
//
// Blocks of other languages, also ```text for output and ```console, are left alone;
// cmd/xstreamq makes and compares those of docs/cli.md and docs/operations.md, and
// runs the shell blocks of skills/.
package doccheck
