// Command shots takes pictures of every page of a dashboard that runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8090/", "the dashboard")
	out := flag.String("out", ".", "directory for the pictures")
	stream := flag.String("stream", "orders", "stream to show")
	group := flag.String("group", "billing", "group to show")
	settle := flag.Duration("settle", 3*time.Second, "wait before each picture")
	flag.Parse()
	if err := shoot(*url, *out, *stream, *group, *settle); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func shoot(url, out, stream, group string, settle time.Duration) error {
	b, err := browser.Start(context.Background())
	if err != nil {
		return err
	}
	defer b.Close()
	sg := "&stream=" + stream + "&group=" + group
	pages := [][2]string{
		{"overview", ""},
		{"group", "?page=group" + sg},
		{"messages", "?page=messages" + sg},
		{"delayed", "?page=delayed" + sg},
		{"dead", "?page=dead" + sg},
		{"server", "?page=server"},
		{"tasks", "?page=tasks"},
	}
	for _, look := range []struct {
		name          string
		width, height int64
		scheme        string
	}{{"light", 1280, 800, "light"}, {"dark", 1280, 800, "dark"}, {"phone", 390, 844, "light"}} {
		for _, page := range pages {
			p, err := b.Page(look.width, look.height, look.scheme)
			if err != nil {
				return err
			}
			if err := p.Go(url + page[1]); err != nil {
				return err
			}
			time.Sleep(settle)
			png, err := p.Shot()
			if err != nil {
				return err
			}
			if said := p.Complaints(); len(said) > 0 {
				fmt.Fprintln(os.Stderr, page[0], said)
			}
			p.Close()
			if err := os.WriteFile(filepath.Join(out, page[0]+"-"+look.name+".png"), png, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
