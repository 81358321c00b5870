package doccheck

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

var commandWord = regexp.MustCompile(`^[a-z][a-z-]*$`)

// checkCommands reports the lines of shell blocks that the CLI, run by the given
// command, would not understand: it is asked for help on each.
func checkCommands(cli []string, blocks []block) (problems []string) {
	for _, b := range blocks {
		if b.info != "sh" {
			continue
		}
		// A backslash at the end joins lines; line numbers then name the first.
		lines := strings.Split(b.text, "\n")
		for i := 0; i < len(lines); i++ {
			at, line := i, lines[i]
			for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
				i++
				line = line[:len(line)-1] + lines[i]
			}
			args, isOurs, err := arguments(line)
			if err == nil && isOurs {
				err = askHelp(cli, args)
			}
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s: %v", b.at(at), strings.TrimSpace(line), err))
			}
		}
	}
	return problems
}

// arguments are what the shell would give the CLI on this line, up to a "--", a
// pipe, a redirection, a comment or a next command.
func arguments(line string) (args []string, isOurs bool, err error) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
	for _, prefix := range []string{"xstreamq", "go run ./cmd/xstreamq"} {
		rest, found := strings.CutPrefix(line, prefix)
		if !found || rest != "" && rest[0] != ' ' {
			continue
		}
		args, err := shellWords(rest)
		return args, true, err
	}
	return nil, false, nil
}

func shellWords(s string) (words []string, err error) {
	var word strings.Builder
	inWord := false
	end := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'' || c == '"':
			n := strings.IndexByte(s[i+1:], c)
			if n < 0 {
				return nil, errors.New("a quote that never ends")
			}
			word.WriteString(s[i+1 : i+1+n])
			inWord = true
			i += n + 1
		case c == ' ':
			end()
		case strings.IndexByte("|<>;&", c) >= 0, c == '#' && !inWord:
			end()
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
		if !inWord && len(words) > 0 && words[len(words)-1] == "--" {
			return words[:len(words)-1], nil
		}
	}
	end()
	return words, nil
}

// askHelp runs the command line with --help, which parses its flags and runs nothing.
func askHelp(cli, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, cli[0], slices.Concat(cli[1:], args, []string{"--help"})...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("with --help: %w: %s", err, firstLine(string(out)))
	}
	_, usage, found := strings.Cut(string(out), "Usage:")
	if !found {
		return errors.New("its help has no Usage")
	}
	// A command that does not exist gets the help of its parent.
	path := commandPath(usage)
	for i, word := range path {
		if i >= len(args) || args[i] != word {
			return fmt.Errorf("the help is that of %q", strings.Join(path, " "))
		}
	}
	if rest := args[len(path):]; strings.Contains(usage, "[command]") && len(rest) > 0 && commandWord.MatchString(rest[0]) {
		return fmt.Errorf("%q has no command %q", strings.Join(append([]string{"xstreamq"}, path...), " "), rest[0])
	}
	return nil
}

// commandPath is the words of the usage line that name the command.
func commandPath(usage string) (path []string) {
	words := strings.Fields(firstLine(usage))
	for _, w := range words[min(1, len(words)):] {
		if !commandWord.MatchString(w) {
			break
		}
		path = append(path, w)
	}
	return path
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
