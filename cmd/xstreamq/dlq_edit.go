package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// edit opens body in the user's editor and returns what was saved. A refused or failed edit keeps the file, so that no
// work is lost.
func (a *app) edit(ctx context.Context, body []byte) (_ []byte, err error) {
	editor := a.getenv("VISUAL")
	if editor == "" {
		editor = a.getenv("EDITOR")
	}
	if editor == "" {
		return nil, &usageError{err: errors.New("--edit: no editor"), hint: "EDITOR=vi"}
	}
	pattern := "xstreamq-*.txt"
	wasJSON := isJSON(body)
	if wasJSON {
		pattern = "xstreamq-*.json"
	}
	f, err := os.CreateTemp("", pattern) // 0600: bodies may be private
	if err != nil {
		return nil, fmt.Errorf("--edit: %w", err)
	}
	name := f.Name()
	defer func() {
		if err == nil {
			err = os.Remove(name)
		}
	}()
	_, err = f.Write(body)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("--edit: %w", err)
	}
	// By the shell, as git does it: $EDITOR may hold arguments.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, editor, name)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.err, a.err
	if w, ok := a.out.(pipeWriter); ok && a.outTTY {
		cmd.Stdout = w.w
	}
	if err = cmd.Run(); err != nil {
		return nil, fmt.Errorf("--edit: the editor ended with %w, nothing was redriven; the text is in %s", err, name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--edit: %w", err)
	}
	if !bytes.HasSuffix(body, []byte("\n")) { // editors end the last line, the body did not
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("--edit: the body is empty, nothing was redriven; the file is %s", name)
	case wasJSON && !isJSON(text):
		return nil, fmt.Errorf("--edit: the body was JSON and is not any more, nothing was redriven; the text is in %s", name)
	}
	return text, nil
}
